"""A mesh as a program opens it: sessions, workers, and the program's own tools and types."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, overload

from agentmesh import app
from agentmesh.api import declaring
from agentmesh.api.declaring import Effects, Function
from agentmesh.api.runtime import Runtime
from agentmesh.api.session import Session
from agentmesh.domain.errors import UsageError
from agentmesh.domain.ids import SessionId
from agentmesh.domain.log import logger
from agentmesh.domain.rows import SessionSummary
from agentmesh.domain.states import PermissionMode
from agentmesh.domain.text import one_line, storable
from agentmesh.store import requests, sessions

if TYPE_CHECKING:
    from agentmesh.config.agent_types import AgentType

LOG = logger(__name__)

_TYPE = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")


class Mesh:
    """A program's access to everything; a context manager, for any number of threads. ``agentmesh.open`` makes one."""

    def __init__(self, core: app.Mesh, *, background_workers: bool = True) -> None:
        self.core = core
        """The composition root; its interface may change."""
        self._runtime = Runtime(core, background_workers=background_workers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop this process's workers, end all waits and streams, close all connections; idempotent.

        No agent is stopped: running ones go on with the next worker.
        """
        self._runtime.hearing.close()
        self.core.close()

    # Sessions

    def start_session(
        self,
        workdir: str | os.PathLike[str] = ".",
        *,
        model: str | None = None,
        title: str = "",
        permission_mode: str | None = None,
        attended: bool = False,
    ) -> Session:
        """Begin a session in a directory, with an idle root; raise NoModel if no usable model is named.

        ``permission_mode`` is ``ask``, ``edits``, ``all`` or ``plan``. ``attended``: a person answers requests (see
        ``Session.answer``); otherwise calls that would ask are refused at once.
        """
        try:
            mode = PermissionMode(permission_mode) if permission_mode else None
        except ValueError:
            known = ", ".join(PermissionMode)
            raise UsageError(f"there is no permission mode {permission_mode!r}", hint=f"Modes: {known}.") from None
        row = self.core.start_session(Path(workdir), model=model, title=title, mode=mode)
        if not attended:
            self.core.database.run(requests.set_attended, row.id, False, idempotent=True)
        return Session(self._runtime, row)

    def resume_session(
        self, session: SessionId | str | None = None, *, workdir: str | os.PathLike[str] = "."
    ) -> Session:
        """Return a handle to a session: by its id or its first digits, or by default the newest of a directory.

        Whether a person answers its requests stays unchanged. Raise UnknownSession.
        """
        row = self.core.find_session(session=None if session is None else str(session), workdir=Path(workdir))
        found = Session(self._runtime, row)
        found.skip_events()
        return found

    def list_sessions(self, workdir: str | os.PathLike[str] | None = None) -> Sequence[SessionSummary]:
        """Return the newest sessions, or those of one directory if it is given."""
        where = None if workdir is None else str(Path(workdir).resolve())
        return self.core.database.run(sessions.list_sessions, where, idempotent=True)

    # Workers

    @contextmanager
    def worker(self, *, concurrency: int | None = None, session: Session | None = None) -> Iterator[None]:
        """Run agents in this process while the block lasts, for all sessions of this host and user, or for one.

        ``concurrency``: model calls and tools at once. When the block ends, running agents are handed over.
        """
        with self._runtime.worker(session.id if session else None, concurrency):
            yield

    def start_background_worker(self, session: Session) -> bool:
        """Start a worker process if none serves the session; return whether one was started.

        It ends by itself when nothing has run and no screen was open for 60 s. It has none of this program's tools.
        """
        return self._runtime.start_background_worker(session.id)

    def ensure_served(self, session: Session, *, must: bool = False) -> None:
        """Make sure that a worker serves the session; with ``must`` raise UsageError if none does and none will."""
        self._runtime.ensure_served(session.id, session.root.id, must=must)

    # Tools and types of the program's own

    @overload
    def tool(self, function: Function, /) -> Function: ...

    @overload
    def tool(
        self, function: None = None, /, *, effect: Effects | None = None, name: str | None = None
    ) -> Callable[[Function], Function]: ...

    def tool(
        self, function: Callable[..., Any] | None = None, /, *, effect: Effects | None = None, name: str | None = None
    ) -> Callable[..., Any]:
        """Register a tool for the agents of sessions that begin from now on: a decorator, with or without options.

        See ``agentmesh.tool``. Call it before the first worker. Raise UsageError if the function cannot become a tool.
        """
        from agentmesh.api.tools import PythonTool

        def register(declared: Callable[..., Any]) -> Callable[..., Any]:
            made = PythonTool(declared, self._runtime, declaring.declared(declared, effect, name))
            self._add(made.name, self.core.tool_names(), "tool")
            self.core.own_tools[made.name] = made
            return declared

        return register if function is None else register(function)

    def add_agent_type(self, kind: AgentType) -> None:
        """Register a type of sub-agent for ``task`` in sessions that begin from now on.

        It replaces a type of the same name, and may grant the tools that sub-agents otherwise do not have. Call it
        before the first worker.
        """
        from agentmesh.config.agent_types import unknown_tools

        if not _TYPE.fullmatch(kind.name):
            raise UsageError(f"a type cannot be called {one_line(kind.name, 60)!r}", hint="Use a-z, 0-9, _, . and -.")
        if not kind.description.strip() or not kind.system_prompt.strip():
            raise UsageError(f"the type {kind.name} needs a description and a system prompt")
        if unknown := unknown_tools(kind, self.core.tool_names()):
            raise UsageError(
                f"the type {kind.name} names unknown tools: {', '.join(unknown)}",
                hint=f"Tools: {', '.join(self.core.tool_names())}. Register your own first.",
            )
        self._add(kind.name, self.core.own_types, "type")
        said = storable(one_line(kind.description, 1000))
        self.core.own_types[kind.name] = replace(kind, description=said, source="this program", trusted=True)

    def _add(self, name: str, taken: Iterable[str], what: str) -> None:
        if name in taken:
            raise UsageError(f"there is a {what} {name} already", hint="Give yours another name.")
        if self._runtime.has_worker:
            raise UsageError(
                f"the {what} {name} comes too late: a worker is running already",
                hint="Register everything before mesh.worker().",
            )
