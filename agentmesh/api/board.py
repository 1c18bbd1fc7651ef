"""The board of a session's todos, for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentmesh.domain.errors import UsageError
from agentmesh.domain.text import as_text
from agentmesh.store import todos
from agentmesh.store.todos import BoardTodo

if TYPE_CHECKING:
    from agentmesh.api.link import SessionLink
    from agentmesh.domain.ids import AgentId

_LARGEST = 2**63 - 1


class Board:
    """The todos that all agents of a session share. On a session's board the user acts, on an agent's that agent."""

    def __init__(self, link: SessionLink, agent: AgentId | None = None) -> None:
        self._link = link
        self._agent = agent

    def todos(self) -> Sequence[BoardTodo]:
        """Return the todos that are not done, oldest first, and then the newest 20 that are done."""
        return self._link.run(todos.board, self._link.session, idempotent=True)

    def add(self, content: str, *, after: Sequence[int] = ()) -> int:
        """Put a todo on the board; return its number. ``after`` are numbers of todos that must be done first.

        Raise UnknownTodo for one that is not there, TooManyTodos if 500 are not done.
        """
        content = as_text(content, "a todo")
        return self._link.run(todos.add_todo, *self._who, content, [_number(one) for one in after])

    def claim(self, todo: int | None = None) -> int | None:
        """Take a todo for the agent, or the oldest that is ready; return its number, None if none is ready.

        One agent has it at most. Raise TodoTaken, which says who has it, TodoNotReady or UnknownTodo; UsageError on the
        board of a session: only agents claim.
        """
        if self._agent is None:
            raise UsageError("a todo is claimed by an agent", hint="Call agent.board.claim(), or done() for the user.")
        number = None if todo is None else _number(todo)
        return self._link.run(todos.claim_todo, self._link.session, self._agent, number, idempotent=number is not None)

    def done(self, todo: int, note: str | None = None) -> None:
        """Mark a todo as done, with a note of what came of it. The user may do that with any, an agent with its own.

        Raise TodoTaken, TodoNotReady or UnknownTodo.
        """
        note = None if note is None else as_text(note, "a note")
        self._link.run(todos.finish_todo, *self._who, _number(todo), note, idempotent=True)

    def release(self, todo: int) -> None:
        """Give a claimed todo back: the user may release any, an agent its own. Raise TodoTaken or UnknownTodo."""
        self._link.run(todos.release_todo, *self._who, _number(todo), idempotent=True)

    @property
    def _who(self) -> tuple[object, object]:
        return self._link.session, self._agent


def _number(todo: int) -> int:
    given: Any = todo  # a program need not have been checked for types
    if not isinstance(given, int) or not 1 <= given <= _LARGEST:
        raise UsageError(f"{todo!r} is no number of a todo", hint="board.todos() lists them; each has its id.")
    return todo
