"""A mesh as a program opens it: sessions, workers, and the program's own tools and types."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NoReturn, Self, overload

from agentmesh import app
from agentmesh.api import declaring
from agentmesh.api.arguments import of_kind, path_of, text_of
from agentmesh.api.declaring import Effects, Function
from agentmesh.api.runtimes import Runtimes
from agentmesh.api.session import Session
from agentmesh.api.until_exit import until_exit
from agentmesh.domain.errors import AmbiguousAgent, UnknownAgent, UsageError
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.log import logger
from agentmesh.domain.rows import SessionSummary
from agentmesh.domain.states import PermissionMode
from agentmesh.domain.text import one_line, storable
from agentmesh.store import agents, requests, sessions

if TYPE_CHECKING:
    from agentmesh.api.agent import Agent
    from agentmesh.api.runtime import Runtime
    from agentmesh.config.agent_types import AgentType

LOG = logger(__name__)

_MOST_LISTED = 50
_MOST_AT_ONCE = 1000
_TYPE = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")


class Mesh:
    """A program's access to everything; a context manager, for any number of threads. ``agentmesh.open`` makes one."""

    def __init__(self, runtimes: Runtimes) -> None:
        self._runtimes = runtimes

    @property
    def core(self) -> app.Mesh:
        """The composition root of the only database; its interface may change."""
        return self._runtimes.core

    @property
    def databases(self) -> tuple[str, ...]:
        """The names of the databases, if the mesh is on several."""
        return self._runtimes.names

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise UsageError("a mesh belongs to its process", hint="Call agentmesh.open() in the other one.")

    def close(self) -> None:
        """Stop this process's workers, end all waits and streams, close all connections; idempotent.

        No agent is stopped: running ones go on with the next worker.
        """
        self._runtimes.close()

    # Sessions

    def start_session(
        self,
        workdir: str | os.PathLike[str] = ".",
        *,
        model: str | None = None,
        title: str | None = None,
        permission_mode: str | None = None,
        attended: bool = False,
        database: str | None = None,
    ) -> Session:
        """Begin a session in a directory, with an idle root; raise NoModel if no usable model is named.

        Raise UsageError if there is no such directory. If the mesh is on several databases, it begins in the one with
        this name, by default in one drawn by weight.
        ``permission_mode`` is ``ask``, ``edits``, ``all`` or ``plan``. ``attended``: a person answers requests (see
        ``Session.answer``); otherwise calls that would ask are refused at once.
        """
        where, named, titled = path_of(workdir, "workdir"), text_of(model, "model"), text_of(title, "title") or ""
        try:
            mode = PermissionMode(permission_mode) if permission_mode else None
        except ValueError:
            known = ", ".join(PermissionMode)
            raise UsageError(f"there is no permission mode {permission_mode!r}", hint=f"Modes: {known}.") from None
        runtime = self._runtimes.for_new_session() if database is None else self._runtimes.named(database)
        row = runtime.core.start_session(where, model=named, title=titled, mode=mode)
        if not attended:
            runtime.core.database.run(requests.set_attended, row.id, False, idempotent=True)
        return Session(runtime, row)

    def resume_session(
        self, session: SessionId | str | None = None, *, workdir: str | os.PathLike[str] = "."
    ) -> Session:
        """Return a handle to a session: by its id or its first digits, or by default the newest of a directory.

        It is found in whichever database it is. Whether a person answers its requests stays unchanged. Raise
        UnknownSession.
        """
        named = None if session is None else str(session)
        where = path_of(workdir, "workdir")
        runtime = self._runtimes.find(named, where)
        found = Session(runtime, runtime.core.find_session(session=named, workdir=where))
        found.skip_events()
        return found

    def find_agent(self, agent: AgentId | str) -> Agent:
        """Return a handle to an agent of any session, by its id or its first digits.

        It is found in whichever database it is. Raise UnknownAgent, or AmbiguousAgent if several ids begin so.
        """
        who = str(agent)
        runtime = self._runtimes.of_agent(who)
        found = runtime.core.database.run(agents.anywhere, who.strip(), idempotent=True) if runtime else []
        if runtime is None or not found:
            raise UnknownAgent(f"there is no agent {one_line(who, 60)!r}", hint="Give 4 or more digits of its id.")
        if len(found) > 1:
            raise AmbiguousAgent(f"{one_line(who, 60)!r} fits several agents", hint="Give more of the id.")
        [(ref, session)] = found
        row = runtime.core.database.run(sessions.get, session, idempotent=True)
        return Session(runtime, row).agent(ref.id)

    def list_sessions(
        self, workdir: str | os.PathLike[str] | None = None, *, database: str | None = None, limit: int = _MOST_LISTED
    ) -> Sequence[SessionSummary]:
        """Return the newest sessions of all databases, or of one directory or database; at most ``limit``.

        A database that does not answer is left out, and the log says so.
        """
        if not 1 <= of_kind(limit, int, "limit") < 2**63:
            raise UsageError("the limit of sessions is a whole number from 1, below 2**63")
        where = None if workdir is None else str(path_of(workdir, "workdir").resolve())

        def listed(core: app.Mesh) -> Sequence[SessionSummary]:
            return core.database.run(sessions.list_sessions, where, limit, idempotent=True)

        if database is not None:
            return listed(self._runtimes.named(database).core)
        found = chain.from_iterable(self._runtimes.ask(listed).values())
        return sorted(found, key=lambda one: one.created_at, reverse=True)[:limit]

    # Workers

    @contextmanager
    def worker(self, *, concurrency: int | None = None, session: Session | None = None) -> Iterator[None]:
        """Run agents in this process while the block lasts, for all sessions of this host and user, or for one.

        ``concurrency``: model calls and tools at once, in each database. Databases that do not answer are served once
        they do. When the block or the program ends, running agents are handed over.
        """
        if concurrency is not None and not 1 <= of_kind(concurrency, int, "concurrency") <= _MOST_AT_ONCE:
            raise UsageError(
                f"concurrency is 1 to {_MOST_AT_ONCE:,}, not {concurrency}",
                hint="Leave it out for that of the configuration.",
            )
        self._runtimes.first.hearing.require_open()
        if session is None:
            block = self._runtimes.worker(concurrency)
        else:
            block = self._runtime_of(session).worker(session.id, concurrency)
        with until_exit(block):
            yield

    def start_background_worker(self, session: Session) -> bool:
        """Start a worker process if none serves the session; return whether one was started.

        It ends by itself when nothing has run and no screen was open for 60 s. It has none of this program's tools.
        """
        return self._runtime_of(session).start_background_worker(session.id)

    def ensure_served(self, session: Session, *, must: bool = False) -> None:
        """Make sure that a worker serves the session; with ``must`` raise UsageError if none does and none will."""
        runtime = self._runtime_of(session)
        (runtime.require_served if must else runtime.try_to_serve)(session.id, session.root.id)

    def _runtime_of(self, session: Session) -> Runtime:
        return self._runtimes.of_session(of_kind(session, Session, "session", "Give the handle, not its id.").id)

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
        from agentmesh.api.context import ToolContext
        from agentmesh.api.functions import signature
        from agentmesh.api.tools import PythonTool

        def register(declared: Callable[..., Any]) -> Callable[..., Any]:
            wanted = declaring.declared(declared, effect, name)
            known = signature(declared, ToolContext, wanted.name)
            self._check_new(known.name, self._runtimes.first.core.tool_names(), "tool")

            def give(runtime: Runtime) -> None:
                runtime.core.own_tools[known.name] = PythonTool(declared, runtime, known, wanted.effect)

            self._runtimes.give(give)
            return declared

        return register if function is None else register(function)

    def add_agent_type(self, kind: AgentType) -> None:
        """Register a type of sub-agent for ``task`` in sessions that begin from now on.

        It replaces a type of the same name, and may grant the tools that sub-agents otherwise do not have. Call it
        before the first worker.
        """
        from agentmesh.config.agent_types import AgentType, unknown_tools

        kind = of_kind(kind, AgentType, "a type of sub-agent", "Give agentmesh.AgentType(...).")
        if not _TYPE.fullmatch(kind.name):
            raise UsageError(f"a type cannot be called {one_line(kind.name, 60)!r}", hint="Use a-z, 0-9, _, . and -.")
        if not kind.description.strip() or not kind.system_prompt.strip():
            raise UsageError(f"the type {kind.name} needs a description and a system prompt")
        core = self._runtimes.first.core
        if unknown := unknown_tools(kind, core.tool_names()):
            raise UsageError(
                f"the type {kind.name} names unknown tools: {', '.join(unknown)}",
                hint=f"Tools: {', '.join(core.tool_names())}. Register your own first.",
            )
        self._check_new(kind.name, core.own_types, "type")
        said = storable(one_line(kind.description, 1000))
        own = replace(kind, description=said, source="this program", trusted=True)

        def give(runtime: Runtime) -> None:
            runtime.core.own_types[own.name] = own

        self._runtimes.give(give)

    def _check_new(self, name: str, taken: Iterable[str], what: str) -> None:
        if name in taken:
            raise UsageError(f"there is a {what} {name} already", hint="Give yours another name.")
        if self._runtimes.has_worker:
            raise UsageError(
                f"the {what} {name} comes too late: a worker is running already",
                hint="Register everything before mesh.worker().",
            )
