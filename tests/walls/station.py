"""A mesh under attack: a worker as people run it, on a database of its own, with a model that asks for the attacks.

Everything is real but the model's wits: the process, its configuration, the embedded database, HTTP and the tools.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psycopg

from agentmesh.app import HostAndUser
from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import PermissionMode
from agentmesh.llm.simulator.reply import ScriptedReply
from agentmesh.llm.simulator.request import ChatRequestView
from agentmesh.llm.simulator.server import Simulator
from agentmesh.store import mailbox, requests, sessions
from agentmesh.store.embedded import EmbeddedServer
from agentmesh.store.schema import upgrade
from agentmesh.store.tx import Database
from agentmesh.tools import toolset
from tests.fixtures.engine import call, do, say, until, who
from tests.fixtures.server import DISPOSABLE
from tests.walls.ground import Ground

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
AT_ONCE = 120
"""Commands of one session, in two steps: a turn ends when three of its steps were refused in the same words."""
_SECONDS = 6
"""That one command may take: some of them wait for ever."""
_PATIENCE = 400
_CREDULOUS = Path(__file__).parent / "credulous.py"


@dataclass(frozen=True, slots=True)
class Job:
    """What one agent is to do, in a session of its own."""

    workdir: Path
    commands: Sequence[str]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model was told of one call."""

    text: str
    """As it was stored: JSON."""
    ran: bool
    """The command was run; otherwise it was refused."""


class Station:
    """A database, and the model server that workers ask; use it as a context manager."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self._scripts: dict[str, Sequence[str]] = {}
        self._model = Simulator(self._answer, record=False)
        self._server = EmbeddedServer(ground.data, settings=DISPOSABLE)
        self._count = 0

    def __enter__(self) -> Self:
        self._server.acquire()
        upgrade(self._server.url())
        self._database = Database(self._server.url(), role="test")
        self._model.start()
        self._begin(PermissionMode.ASK, Job(self.ground.work, ()), self.ground.canaries["rows"])
        return self

    def __exit__(self, *_: object) -> None:
        self._model.stop()
        self._database.close()
        self._server.stop(force=True)

    def attack(self, jobs: Sequence[Job], *, mode: str, credulous: bool = False) -> list[list[Answer]]:
        """Let agents of one worker run these commands, side by side; return what each command came to."""
        roots = [self._begin(PermissionMode(mode), job, "attack") for job in jobs]
        with self._worker(credulous=credulous) as worker, self.connect() as conn:

            def rest() -> bool:
                assert worker.poll() is None, f"the worker ended: {self._log()}"
                busy = conn.execute(_BUSY, [roots]).fetchone()
                return busy is not None and busy[0] == 0

            for root, job in zip(roots, jobs, strict=True):
                self._count += 1
                name = f"attack-{self._count}"
                self._scripts[name] = job.commands
                self._database.run(mailbox.send, None, root, f"[{name}] go")
            until(rest, "the end of the attack", _PATIENCE)
            answers = [self._answers(conn, root) for root in roots]
        missing = Answer("none: the turn failed", ran=False)
        return [
            [*some, *([missing] * (len(job.commands) - len(some)))] for some, job in zip(answers, jobs, strict=True)
        ]

    def rows(self) -> dict[str, list[str]]:
        """Return all rows that belong to the session that stands by, by table, and what there is of everything."""
        with self.connect() as conn:
            ids = [str(row[0]) for row in conn.execute(_BYSTANDING, {"title": self.ground.canaries["rows"]})]
            found = {}
            for (table,) in conn.execute(_TABLES).fetchall():
                rows = (str(row[0]) for row in conn.execute(_ROWS.format(table)))
                found[str(table)] = [row for row in rows if any(each in row for each in ids)]
            found["in all"] = [str(row[0]) for row in conn.execute(_COUNTS)]
        return found

    def connect(self) -> psycopg.Connection:
        """Return a connection to the database, as only we may have one."""
        return psycopg.connect(self._server.url(), autocommit=True)

    def _begin(self, mode: PermissionMode, job: Job, title: str) -> AgentId:
        here, tools = HostAndUser.here(), toolset.definitions(toolset.builtin(self._database))
        new = sessions.NewSession(
            str(job.workdir), here.host, here.os_user, "sim/m", "You attack.", tools, title=title, permission_mode=mode
        )
        root = self._database.run(sessions.start_session, new)
        with self.connect() as conn:
            found = conn.execute("select session_id from agentmesh.agents where id = %s", [root]).fetchone()
        assert found
        self._database.run(requests.set_attended, found[0], False)
        return root

    @contextmanager
    def _worker(self, *, credulous: bool) -> Iterator[subprocess.Popen[bytes]]:
        program = [str(_CREDULOUS)] if credulous else ["-m", "agentmesh"]
        with (self.ground.root / "worker.log").open("wb") as log:
            worker = subprocess.Popen(
                [sys.executable, "-P", *program, "worker", "--concurrency", "4"],
                cwd=self.ground.root,
                env=self._environ(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            try:
                yield worker
            finally:
                worker.send_signal(signal.SIGTERM)
                worker.wait(30)

    def _log(self) -> str:
        return (self.ground.root / "worker.log").read_text()[-3000:]

    def _answers(self, conn: psycopg.Connection, root: AgentId) -> list[Answer]:
        found = conn.execute(_RESULTS, [root]).fetchall()
        return [Answer(json.dumps(result, ensure_ascii=False), "exit_code" in result) for (result,) in found]

    def _answer(self, view: ChatRequestView) -> ScriptedReply:
        commands, half = self._scripts.get(who(view), ()), AT_ONCE // 2
        at = view.steps_since(-1) * half
        calls = [call("bash", command=command, timeout=_SECONDS) for command in commands[at : at + half]]
        return do(*calls) if calls else say("done")

    def configure(self, sandbox: Mapping[str, str]) -> None:
        """Write the configuration for the workers to come."""
        lines = ["[sandbox]", *(f'{key} = "{value}"' for key, value in sandbox.items()), "[providers.sim]"]
        lines += [f'base_url = "{self._model.base_url}"', 'api_key_env = "SIM_API_KEY"', "context_window = 4000000"]
        lines += [f"# {self.ground.canaries['config']}", ""]
        (self.ground.config / "config.toml").write_text("\n".join(lines))

    def _environ(self) -> dict[str, str]:
        ground = self.ground
        folders = {"AGENTMESH_CONFIG_DIR": ground.config, "AGENTMESH_DATA_DIR": ground.data, "HOME": ground.home}
        folders |= {"XDG_STATE_HOME": ground.root / "state", "PYTHONPYCACHEPREFIX": ground.root / "pycache"}
        kept = {name: os.environ[name] for name in ("LANG", "LC_ALL") if name in os.environ}
        keys = dict.fromkeys(("SIM_API_KEY", "OPENAI_API_KEY", "MY_SECRET"), ground.canaries["key"])
        return {**kept, **{name: str(path) for name, path in folders.items()}, **keys, "PATH": PATH, "TERM": "dumb"}


_BUSY = "select count(*) from agentmesh.agents where id = any(%s) and status = 'running'"
_TABLES = """
    select table_name from information_schema.tables
    where table_schema = 'agentmesh' and table_type = 'BASE TABLE' order by 1
"""
_BYSTANDING = """
    select id from agentmesh.sessions where title = %(title)s
    union all
    select a.id from agentmesh.agents a join agentmesh.sessions s on s.id = a.session_id where s.title = %(title)s
"""
_COUNTS = """
    select count(*) from agentmesh.sessions union all select count(*) from agentmesh.agents
    union all select count(*) from agentmesh.mail
    union all select count(*) from agentmesh.sessions where ended_at is not null
"""
_ROWS = "select to_jsonb(t)::text from agentmesh.{} t order by 1"
_RESULTS = """
    select t.content->'result' from agentmesh.transcript t where t.agent_id = %s and t.kind = 'tool_result'
    order by (t.content->>'seq')::bigint, (t.content->>'ordinal')::int
"""
