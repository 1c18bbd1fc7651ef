"""Carries out calls off the screen's thread. Each ends in one ActionDone; ``handlers`` has what each does."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from agentmesh.domain.errors import AgentmeshError, UnknownAgent, UnknownSession
from agentmesh.domain.log import logger
from agentmesh.tui.commands.calls import CUSTOM, CUSTOM_CHILD, END_SHELL, INTERRUPT_TREE, SHELL, Call, Done, Failed
from agentmesh.tui.commands.messages import ActionDone
from agentmesh.tui.commands.pending import RUNNING
from agentmesh.tui.commands.shell import Shells

if TYPE_CHECKING:
    from textual.message import Message

    from agentmesh.app import Mesh
    from agentmesh.app.databases import Databases
    from agentmesh.domain.ids import AgentId
    from agentmesh.domain.rows import Session
    from agentmesh.tui.session.schema_watch import SchemaWatch

LOG = logger(__name__)

_SLOW = frozenset(
    {
        CUSTOM,
        CUSTOM_CHILD,
        SHELL,
        END_SHELL,
        INTERRUPT_TREE,
        "context",
        "diff",
        "export",
        "interrupt",
        "merge",
        "search",
        "sql",
        "timeline",
    }
)
"""Calls that may take long or must not wait for others; each gets its own thread."""
_OFFERS = ("model", ())
"""``/model`` alone asks the servers for their models."""
_STOP_SECONDS = 2.0


class CommandRunner:
    """Carries out calls for one session in the order submitted; slow ones delay no other."""

    def __init__(
        self,
        mesh: Mesh,
        session: Session,
        post: Callable[[Message], Any],
        schema: SchemaWatch,
        databases: Databases | None = None,
        last_model: Callable[[], str] = str,
    ) -> None:
        """``post`` is ``app.post_message``; it is given one ActionDone per call.

        ``databases`` are all of them, if there are several. ``last_model`` returns the root's, as last seen.
        """
        self._mesh, self._databases, self._schema = mesh, databases, schema
        self._last_model = last_model
        self._session = session
        self._post = post
        self._shells = Shells()
        self._stopping = threading.Event()
        self._queue: SimpleQueue[tuple[Call, AgentId] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="actions", daemon=True)

    def start(self) -> None:
        """Begin to carry out."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the submitted calls, accept no more, and end running shell commands; idempotent."""
        self._stopping.set()
        self._queue.put(None)
        self._shells.close()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def submit(self, call: Call, in_view: AgentId) -> None:
        """Carry out a call for the agent in view; returns at once. Not for commands that are ``on_screen``."""
        if call.name in RUNNING:
            self._shells.expect(in_view)
        if call.name in _SLOW or call[:2] == _OFFERS:
            threading.Thread(target=self._do, args=(call, in_view), name=call.name, daemon=True).start()
        else:
            self._queue.put((call, in_view))

    def _run(self) -> None:
        while (submitted := self._queue.get()) is not None:
            self._do(*submitted)

    def _do(self, call: Call, in_view: AgentId) -> None:
        from agentmesh.tui.commands.advice import on_screen
        from agentmesh.tui.commands.command_rows import record
        from agentmesh.tui.commands.context import CommandContext
        from agentmesh.tui.commands.handlers import HANDLERS  # after the session is shown

        outcome: Done | Failed
        try:
            if call.name != END_SHELL:
                self._schema.check()
            ctx = CommandContext(
                self._mesh, self._session, self._shells, in_view, self._stopping, self._databases, self._last_model()
            )
            outcome = HANDLERS[call.name](ctx, *call.args)
            record(ctx, call, outcome)
        except AgentmeshError as error:
            gone = self._without_session(error)
            outcome = Failed(gone or error.message, "" if gone else on_screen(error.advice), call.typed)
        except Exception:
            LOG.exception("%s failed in session %s", call.name, self._session.id)
            outcome = Failed(f"agentmesh itself failed at {call.name}", "The log has the details.", call.typed)
        finally:
            if call.name in RUNNING:
                self._shells.forget(in_view)
        self._post(ActionDone(call, in_view, outcome))

    def _without_session(self, error: AgentmeshError) -> str:
        """Say that the session is gone if that is why an agent is missing; empty if it is there."""
        from agentmesh.store import sessions
        from agentmesh.tui.session.worker_check import sentence

        if isinstance(error, UnknownAgent):
            try:
                self._mesh.database.run(sessions.require_still, self._session.id, idempotent=True)
            except UnknownSession as gone:
                return sentence(gone)
        return ""
