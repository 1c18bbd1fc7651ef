"""P23 API: the orchestration as a user's program has it, through the Python API; beside the bare SDK doing the same.

A job is a new session and one prompt; ``bench.program`` is the program. The first job of a process and later ones are
figures of their own.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row

from bench.harness import Bench, Figure, Target, Values, ratio
from bench.machine import tree_seconds
from bench.model_server import NOTE, START, TASKS, Counts, ModelServer, calls, program_work, task_calls
from bench.peers.process import Peer
from bench.place import LIMITS

_OURS: Final = "agentmesh"
_SDK: Final = "openai SDK"
_FORMS: Final[Mapping[str, str]] = {"tasks": TASKS, "forks": START}
_WITHHELD: Final = "ask_user"
"""The tool that a session's agents are not offered when no person is there."""
_PATIENCE: Final = 600.0


def run(bench: Bench) -> None:
    """Measure P23 API with K = 20 (and 200 in a full run)."""
    (bench.place.folder / NOTE).write_text("one line\n")
    with ExitStack() as stack:
        models = stack.enter_context(ModelServer())
        url = stack.enter_context(bench.place.database(str(conninfo_to_dict(bench.place.url)["dbname"])))
        contest = _Contest(bench, models, url)
        for children in [bench.size(20, 5), *([200] if bench.full else [])]:
            for form in _FORMS:
                bench.measure(lambda k=children, by=form: contest.repeat(by, k), _figure(form, children))  # type: ignore[misc]


@dataclass(slots=True)
class _Program:
    """A program's process in one repetition."""

    peer: Peer
    began: float
    seconds: list[float] = field(default_factory=list)
    """Of each job."""
    processor: list[float] = field(default_factory=list)
    whole: float = 0.0
    """Seconds from the process's start to its first answer."""
    session: str = ""
    """Of its newest job; the SDK has none."""

    def job(self, prompt: str) -> None:
        """Let it do a job."""
        done = self.peer.ask({"prompt": prompt}, _PATIENCE)
        self.whole = self.whole or time.monotonic() - self.began
        self.seconds.append(done["seconds"])
        self.processor.append(done["processor"])
        self.session = done.get("session", "")


class _Contest:
    """Both programs, and what the model server counted of each job; one that did other work raises."""

    def __init__(self, bench: Bench, models: ModelServer, url: str) -> None:
        self._models = models
        self._workdir = bench.place.folder
        self._server_pid = bench.place.server_pid
        self._later = bench.size(3, 1, 5)
        self._bare = url
        home = bench.place.folder / "home"
        home.mkdir(exist_ok=True)
        self._variables = {
            "HOME": str(home),
            "AGENTMESH_DATABASE_URL": url,
            "AGENTMESH_MODEL": "model",
            "OPENAI_BASE_URL": models.base_url,
            "OPENAI_API_KEY": "none",
        }

    def repeat(self, form: str, children: int) -> Values:
        """Start both programs anew; let them do a first job each, and later ones in turn."""
        prompt = f"{_FORMS[form]} {children}"
        with self._ours() as ours:
            demanded = self._counted(ours, prompt)
            _require(demanded, form, children)
            self._require_stored(ours.session, form, children)
            with self._theirs(self._told(ours.session)) as theirs:
                self._same(theirs, prompt, demanded)
                server: list[float] = []
                for _ in range(self._later):
                    before = tree_seconds([self._server_pid])
                    self._same(ours, prompt, demanded)
                    server.append(tree_seconds([self._server_pid]) - before)
                    self._same(theirs, prompt, demanded)
        return _values(ours, theirs, statistics.median(server))

    def _counted(self, program: _Program, prompt: str) -> Counts:
        before = self._models.counts()
        program.job(prompt)
        return self._models.counts().minus(before)

    def _same(self, program: _Program, prompt: str, demanded: Counts) -> None:
        if (did := self._counted(program, prompt)) != demanded:
            raise RuntimeError(f"{program.peer.name} did other work: {did}, not {demanded}")

    def _told(self, session: str) -> dict[str, Any]:
        """Return the prompts and tools that our root and its children were sent, for the SDK."""
        with psycopg.connect(self._bare, row_factory=dict_row) as bare:
            found = bare.execute(
                "select system_prompt as system, tools from agentmesh.v_agents where session_id = %s"
                " order by parent_id nulls first limit 2",
                [session],
            ).fetchall()
        for one in found:
            one["tools"] = [tool for tool in one["tools"] if tool["function"]["name"] != _WITHHELD]
        root, child = found
        return {"base_url": self._models.base_url, "workdir": str(self._workdir), **root, "sub_agent": child}

    def _require_stored(self, session: str, form: str, children: int) -> None:
        with psycopg.connect(self._bare) as bare:
            stored = bare.execute(
                "select count(*) from agentmesh.model_calls m join agentmesh.agents a on a.id = m.agent_id"
                " where a.session_id = %s and m.error is null",
                [session],
            ).fetchone()
        if stored != (_calls(form, children),):
            raise RuntimeError(f"{stored} model calls were stored, not {_calls(form, children)}")

    @contextmanager
    def _ours(self) -> Iterator[_Program]:
        began = time.monotonic()
        with Peer(Path(sys.executable), "bench.program", variables=self._variables) as peer:
            peer.ask({"workdir": str(self._workdir), "settings": LIMITS}, _PATIENCE)
            yield _Program(peer, began)

    @contextmanager
    def _theirs(self, told: Mapping[str, Any]) -> Iterator[_Program]:
        began = time.monotonic()
        with Peer(Path(sys.executable), "bench.peers.frameworks.bare_sdk") as peer:
            peer.ask(told, _PATIENCE)
            yield _Program(peer, began)


def _calls(form: str, children: int) -> int:
    return task_calls(children) if form == "tasks" else calls(children)


def _require(did: Counts, form: str, children: int) -> None:
    """Raise if our program left out any of the work; how many tools and what prompts it sent is its own."""
    demanded = program_work(_calls(form, children), children, waits=form == "forks")
    if (did.model_calls, did.streamed, did.tool_calls, did.results, did.answered) != demanded:
        raise RuntimeError(f"the program did other work with {children} {form}: {did}, not {demanded}")


def _values(ours: _Program, theirs: _Program, server: float) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, program in ((_OURS, ours), (_SDK, theirs)):
        found |= {
            f"{name}, later job": statistics.median(program.seconds[1:]),
            f"{name}, first job": program.seconds[0],
            f"{name}, from the process's start to the first answer": program.whole,
            f"processor of {name}, later job": statistics.median(program.processor[1:]),
            f"processor of {name}, first job": program.processor[0],
        }
    found[f"processor of {_OURS}, database, later job"] = server
    for what in _COMPARED:
        found[_ratio(what)] = ratio(found[f"{_OURS}, {what}"], found[f"{_SDK}, {what}"])
    return found


_COMPARED: Final = ("later job", "first job", "from the process's start to the first answer")


def _ratio(what: str) -> str:
    return f"{_OURS} / {_SDK}, {what}"


def _figure(form: str, children: int) -> Figure:
    units = {f"{name}, {what}": "s" for what in _COMPARED for name in (_OURS, _SDK)}
    units |= {_ratio(what): "x" for what in _COMPARED}
    units |= {f"processor of {name}, {what}": "s" for what in _COMPARED[:2] for name in (_OURS, _SDK)}
    units[f"processor of {_OURS}, database, later job"] = "s"
    later, first = _COMPARED[:2]
    return Figure(
        "P23 API",
        f"a user's program, {children} {form} of three tool calls each, and an answer in 50 events",
        units,
        [Target(_ratio(later), "<=", 0.6 if children >= 200 else 0.7), Target(_ratio(first), "<=", 1.3)],
        repetitions=3,
        ordinary=2 if form == "tasks" else 1,
        note="A program opens a mesh, enters mesh.worker() with the default concurrency, and begins a session for each "
        "job, within the time measured. The first job begins when the program has imported agentmesh, and is in "
        "mesh.worker(), or has imported openai and made a client. The time from the process's start holds all imports. "
        "The model server has no delay and counts the same for both: model calls, tool calls, results, tool "
        "definitions, characters of system prompt and of answers. agentmesh stores everything; the SDK, with a thread "
        "for each child, stores nothing.",
    )
