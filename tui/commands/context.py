"""The context of a command: the mesh, the session, and the agent in view."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from agentmesh.domain.errors import AgentmeshError, DatabaseUnreachable, UsageError
from agentmesh.domain.ids import AgentId, MailId
from agentmesh.domain.rows import Ref
from agentmesh.store import agents, mailbox

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.app.databases import Databases
    from agentmesh.domain.rows import Session
    from agentmesh.tui.commands.shell import Shells

Result = TypeVar("Result")

_AGAIN = 0.5
"""Seconds between two attempts to reach the database."""


class CommandContext(NamedTuple):
    """The mesh, the session and the agent in view, for one call."""

    mesh: Mesh
    session: Session
    shells: Shells
    in_view: AgentId
    stopping: threading.Event
    """Set when the screen is left."""
    databases: Databases | None = None
    """All databases, if there are several."""
    last_model: str = ""
    """The model of the root when the screen last saw it; empty before."""

    def run(self, function: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Result:
        """Call a store function."""
        return self.mesh.database.run(function, *args, **kwargs)

    def run_idempotent(self, function: Callable[..., Result], /, *args: Any) -> Result:
        """Call a store function that may be repeated."""
        return self.mesh.database.run(function, *args, idempotent=True)

    def run_persistently(self, function: Callable[..., Result], /, *args: Any) -> Result:
        """Call a store function that may be repeated, until the database answers or the screen is left.

        For messages and answers of a person: after an error they would have to type again what may have arrived.
        """
        while True:
            try:
                return self.run_idempotent(function, *args)
            except DatabaseUnreachable:
                if self.stopping.wait(_AGAIN):
                    raise

    def send(
        self,
        sender: AgentId | None,
        recipient: AgentId,
        text: str,
        images: Sequence[Mapping[str, Any]] = (),
        *,
        urgent: bool = False,
        reply_to: MailId | None = None,
    ) -> None:
        """Send a message once, even if the database has to be asked again, and start a worker; see ``mailbox.send``."""
        sending = partial(mailbox.send, urgent=urgent, reply_to=reply_to)
        self.run_persistently(sending, sender, recipient, text, new_key(), None, images)
        self.ensure_served()

    def agent(self, who: str | None) -> Ref:
        """Return the agent with this name, path or id; ``parent`` is its parent, None the agent in view."""
        if who is None or who.lower() == "parent":
            me = self.run_idempotent(agents.get, self.in_view)
            if who is None:
                return Ref(me.id, me.name)
            if me.parent_id is None:
                raise UsageError(f"{me.name} has no parent", hint="It is the root of the session.")
            who = str(me.parent_id)
        return self.run_idempotent(agents.resolve, self.session.id, who)

    def ensure_served(self) -> None:
        """Start a worker if none runs the session. Errors are ignored: the feed reports them and retries."""
        try:
            self.mesh.ensure_served(self.session)
        except (AgentmeshError, OSError):
            return


def new_key() -> str:
    """Return a key for one message of the screen: a repeated attempt to send it has the same."""
    return f"tui-{uuid.uuid4()}"
