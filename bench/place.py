"""Where it is measured: a throw-away PostgreSQL server, and a fresh database on it for each group of figures."""

from __future__ import annotations

import itertools
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.store import agents, schema, sessions
from agentmesh.store.embedded import EmbeddedServer
from agentmesh.store.tx import Database
from agentmesh.tools import toolset
from agentmesh.tools.prompt import system_prompt

HOST, USER = "bench", "bench"
PUPPET: Final = "puppet/puppet"
"""The model that does what it is told; see ``bench.puppet``."""
LIMITS: Final = {"max_children": 100_000, "max_agents": 100_000, "max_tokens": 10**12, "max_cost_usd": 10**6}
"""The work of some figures needs more agents than a session's defaults allow. Unread mail stays at its default."""


class Place:
    """An embedded server in a folder of its own, gone afterwards. fsync is on."""

    def __init__(self, folder: Path | None = None) -> None:
        """``folder``: on whose disk; by default the system's temporary one."""
        self.folder = Path(tempfile.mkdtemp(prefix="agentmesh-bench-", dir=folder))
        self.folder.chmod(0o711)  # as root the server belongs to a user of its own, who has to pass
        self._server = EmbeddedServer(self.folder, settings={"max_connections": "200"})
        self._count = itertools.count(1)

    def __enter__(self) -> Self:
        try:
            self.url = self._server.acquire()
            schema.upgrade(self.url)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(force=True)
        self._server.release()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def server_pid(self) -> int:
        """The postmaster's process."""
        return self._server.status().pid or 0

    def binary(self, name: str) -> Path:
        """Return one of PostgreSQL's programs."""
        return self._server.binary(name)

    @contextmanager
    def mesh(self, **limits: Any) -> Iterator[Mesh]:
        """Lend a fresh database with a session in it."""
        with self.database(str(psycopg.conninfo.conninfo_to_dict(self.url)["dbname"])) as url:
            mesh = Mesh(url, self.folder, {**LIMITS, "ask_agents": 0, **limits})
            try:
                yield mesh
            finally:
                mesh.close()

    @contextmanager
    def database(self, template: str = "template0") -> Iterator[str]:
        """Lend a fresh database, by default an empty one."""
        name = f"bench_{next(self._count)}"
        made = sql.SQL("create database {} template {}")
        self._administer(made.format(sql.Identifier(name), sql.Identifier(template)))
        try:
            yield make_conninfo(self.url, dbname=name)
        finally:
            self._administer(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))

    def _administer(self, statement: sql.Composed) -> None:
        with psycopg.connect(make_conninfo(self.url, dbname="postgres"), autocommit=True) as admin:
            admin.execute(statement)


class Mesh:
    """One database with a session, as the benchmark sees it: through the store, like any client."""

    def __init__(self, url: str, workdir: Path, limits: dict[str, Any]) -> None:
        self.url = url
        self.database = Database(url, role="bench", pool_size=8)
        self.bare = psycopg.connect(url, autocommit=True)
        self._workdir = workdir
        self._limits = limits
        self._names = itertools.count(1)
        self.root = self.new_session()
        self.session = self.session_of(self.root)

    def close(self) -> None:
        """Close the connections."""
        self.bare.close()
        self.database.close()

    def reconnect(self) -> None:
        """Connect anew after the server's connections were cut."""
        self.bare.close()
        self.bare = psycopg.connect(self.url, autocommit=True)

    def new_session(self, model: str = PUPPET, workdir: Path | None = None) -> AgentId:
        """Begin a session, by default in the place's folder; return its idle root."""
        workdir = workdir or self._workdir
        tools = toolset.builtin(self.database)
        new = sessions.NewSession(
            workdir=str(workdir),
            host=HOST,
            os_user=USER,
            model=model,
            system_prompt=system_prompt(workdir),
            tools=toolset.definitions(tools),
            limits=self._limits,
        )
        # What the model bills is known, as in a database that has been used: else one call would go ahead of all
        # others, and in some benches it never ends.
        self.bare.execute("insert into agentmesh.model_bills (model) values (%s) on conflict do nothing", [model])
        return self.database.run(sessions.start_session, new)

    def session_of(self, agent: AgentId) -> SessionId:
        """Return an agent's session."""
        return SessionId(self.one("select session_id from agentmesh.agents where id = %s", agent))

    def fork(self, parent: AgentId, prompt: str | None = None, prefix: str = "a") -> AgentId:
        """Fork a child under a name that none had."""
        return self.database.run(agents.fork, parent, f"{prefix}{next(self._names)}", prompt)

    def forever_running(self, parent: AgentId, count: int) -> list[AgentId]:
        """Make children that others can wait for: external agents, running, whose turns no worker runs."""
        made = [self.fork(parent) for _ in range(count)]
        self.bare.execute(
            "update agentmesh.agents set external = true, status = 'running', turn = 1, started_turn = 1"
            " where id = any (%s)",
            [made],
        )
        return made

    def settle_storage(self) -> None:
        """Vacuum and write a checkpoint, so that neither falls into a measurement."""
        self.bare.execute("vacuum analyze")
        self.bare.execute("checkpoint")

    def until(self, query: str, *values: Any, seconds: float = 120.0) -> None:
        """Wait until the query says true."""
        deadline = time.monotonic() + seconds
        while not self.one(query, *values):
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {seconds:g} s: {query}")
            time.sleep(0.002)

    def one(self, query: str, *values: Any) -> Any:
        """Return the first column of the first row, None without one."""
        row = self.bare.execute(query, values).fetchone()
        return row and row[0]
