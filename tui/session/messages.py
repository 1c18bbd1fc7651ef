"""Messages from the feed to the app, posted from the feed's thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from textual.message import Message

from agentmesh.tui.widgets.message import message

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.domain.ids import AgentId
    from agentmesh.domain.rows import Request, Row, Session
    from agentmesh.store.board import Elsewhere, Ran
    from agentmesh.tui.session.state import Board, Details


class FromFeed(Message):
    """News that the feed has read."""


@message
class BoardChanged(FromFeed):
    """Agents or waits of the session changed; the board is a snapshot that nobody changes."""

    board: Board


@message
class RowsArrived(FromFeed):
    """Rows of a followed agent: first the newest window, then what was appended."""

    agent_id: AgentId
    rows: list[Row]
    inherited: list[Row] | None
    """With the first window of a forked agent: its inherited rows, oldest first; else None."""
    more: bool
    """Whether older rows are left to ask for."""
    first: bool
    """Whether this is the answer to ``follow``: it replaces what was shown."""
    inherited_count: int = 0
    """How many rows it inherited in all; ``inherited`` holds the newest of them."""


@message
class OlderRows(FromFeed):
    """Rows of an agent before those that are shown."""

    agent_id: AgentId
    rows: list[Row]
    more: bool


@message
class TextStreamed(FromFeed):
    """The agent's model is writing; the finished text arrives as a row."""

    agent_id: AgentId
    text: str
    anew: bool = False
    """Whether to drop the text streamed before: the message begins again, or pieces of it may be missing."""


@message
class OutputShown(FromFeed):
    """A call that runs has written these lines last; its result arrives as a row."""

    agent_id: AgentId
    key: str
    """The key of the call's entry."""
    text: str


@message
class LinkChanged(FromFeed):
    """The way to the database or to a worker changed."""

    sentence: str | None
    """The problem in a sentence; None when all is well."""


@message
class Moved(FromFeed):
    """The session is in another database now; this feed reads no more."""

    mesh: Mesh
    session: Session


@message
class Noticed(FromFeed):
    """Something happened to an agent (None: to the session) that a person may want to know, unless it is in view."""

    agent_id: AgentId | None
    text: str
    severity: Literal["information", "warning", "error"]


@message
class Missed(FromFeed):
    """An agent that was sought has been reaped: no board has it."""

    agent_id: AgentId
    name: str


@message
class RequestSettled(FromFeed):
    """A request no longer waits for a person: somebody has answered it, or its turn has ended."""

    request: Request


@message
class DetailsRead(FromFeed):
    """Details of the agents that a board was opened for, beside their states."""

    details: dict[AgentId, Details]
    ran: dict[AgentId, list[Ran]] | None
    """When agents worked within the last minutes; None if that was not read this time."""


@message
class EverybodyRead(FromFeed):
    """The agents of all sessions, for a board that shows them."""

    agents: list[Elsewhere]
    missing: tuple[str, ...] = ()
    """The databases that have not answered."""


@message
class LinesStreamed(FromFeed):
    """The last line of what agents write just now."""

    lines: dict[AgentId, str]
