"""P33: steps a second of one worker with 16 agents, against pgbench with nothing but the statements of those steps."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any, Final

from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import AgentStatus
from bench import scale_crowd
from bench.cost import flushed
from bench.harness import Bench, Figure, Target, Values, ratio
from bench.machine import tree_seconds
from bench.model_server import NOTE, STEPS, ModelServer
from bench.pictures import Bars, Wanted
from bench.place import PUPPET, Mesh
from bench.sending import owned_recipients, pgbench
from bench.worker import WorkerProcess

_AGENTS: Final = 16
_MOST_ROUNDS: Final = 5
"""Before the measurement, at most: until a round is no faster than those before."""

FIRST: Final = 2
"""The row of an agent's first answer; before it comes the mail that began its turn."""
_BEGIN: Final = "select agentmesh.begin_step(%s, row(%s, %s, null, null, null)::agentmesh.caller, 0)"
_FINISH: Final = (
    "select agentmesh.finish_step(%s, row(%s, %s, null, null, null)::agentmesh.caller, %s, %s, %s) ->> 'seq'"
)
STEP: Final = """select agentmesh.begin_step('{agent}', row({worker}, {epoch}, :seq, 0, null)::agentmesh.caller,
  :seq, '{results}', 20000, 32768, null, null);
select agentmesh.finish_step('{agent}', row({worker}, {epoch}, null, null, null)::agentmesh.caller,
  '{content}', '{calls}', '{usage}'::jsonb || jsonb_build_object('nonce', gen_random_uuid()));
\\set seq :seq + 2
"""
"""``seq`` is the row of the step before. The next two rows are the result of its call and the next answer."""


def run(bench: Bench) -> None:
    """Measure P33."""
    steps, rounds = bench.size(24, 5, 40), bench.size(2, 1, 8)
    (bench.place.folder / NOTE).write_text("".join(f"line {n}\n" for n in range(1, steps + 1)))
    figure = Figure(
        "P33",
        f"steps per second: {_AGENTS} agents of one worker, all on this machine's processors",
        {
            "agentmesh": "steps/s",
            "pgbench": "steps/s",
            "agentmesh / pgbench": "x",
            "worker": "ms per step",
            "database": "ms per step",
            "model server": "ms per step",
            "database, pgbench": "ms per step",
            "flushes": "per step",
        },
        [Target("agentmesh / pgbench", ">=", 0.6)],
        repetitions=3,
        ordinary=1,
        note=f"A step is a model call and a call of read; each agent makes {steps} of them in a turn, {rounds} turns "
        "are measured after some that warm up. Worker, database and model server share the processors. pgbench "
        f"executes the same two statements of a step with rows of the same size, in {_AGENTS} connections, each step "
        "of an agent after the other, and nothing else: no model, no tool, no request is made. Milliseconds are "
        "processor time. Flushes are of the database's log.",
        picture=Bars(
            {"agentmesh": "agentmesh: models, tools and rows", "pgbench": "pgbench: the rows only"},
            Wanted("≥ 0.6 × pgbench", 0.6, "pgbench"),
        ),
    )
    with (
        bench.place.mesh() as mesh,
        ModelServer() as models,
        WorkerProcess(mesh.url, concurrency=_AGENTS, base_url=models.base_url) as worker,
    ):
        _warm(mesh, steps)
        step = _newest_step(mesh)
        pids = {"worker": worker.pid, "database": bench.place.server_pid, "model server": models.pid}

        def repeat() -> Values:
            crowds, done = [_fork(mesh) for _ in range(rounds)], _AGENTS * steps * rounds
            flushes, before = flushed(mesh), {who: tree_seconds([pid]) for who, pid in pids.items()}
            rate = done / sum(_work(mesh, crowd, steps) for crowd in crowds)
            used = {who: (tree_seconds([pid]) - before[who]) / done * 1e3 for who, pid in pids.items()}
            flushes = flushed(mesh) - flushes
            bare, bare_used = _bare(bench, step, steps * rounds)
            return {
                "agentmesh": rate,
                "pgbench": bare,
                "agentmesh / pgbench": ratio(rate, bare),
                **used,
                "database, pgbench": bare_used,
                "flushes": flushes / done,
            }

        bench.measure(repeat, figure)


def _fork(mesh: Mesh) -> list[AgentId]:
    """Make new agents: with a conversation that grows from turn to turn, steps would too."""
    return scale_crowd.fork_idle(mesh.bare, [mesh.root], _AGENTS, f"s{time.monotonic_ns()}")


def _warm(mesh: Mesh, steps: int) -> None:
    """Let agents work until a round is no faster than the ones before."""
    took: list[float] = []
    for n in range(_MOST_ROUNDS):
        took.append(_work(mesh, _fork(mesh), steps))
        if n == 0:
            mesh.settle_storage()
        if n > 1 and took[-1] > 0.95 * min(took[:-1]):
            return


def _work(mesh: Mesh, crowd: Sequence[AgentId], steps: int) -> float:
    """Let each of them make so many steps; return the seconds until the last has ended its turn."""
    began = time.monotonic()
    mesh.bare.execute("select agentmesh.send(null, id, %s) from unnest(%s) as id", [f"{STEPS} {steps}", crowd])
    mesh.until("select not exists (select from agentmesh.agents where id = any (%s) and status = 'running')", crowd)
    took = time.monotonic() - began
    made = mesh.one("select sum(model_calls) from agentmesh.agents where id = any (%s)", crowd)
    if made != len(crowd) * steps:
        raise RuntimeError(f"{made} steps were made, not {len(crowd) * steps}")
    return took


def _newest_step(mesh: Mesh) -> dict[str, Any]:
    """Return what the worker has stored of a step: its answer, calls, usage, and the result of its call."""
    answer, call_id, name, arguments, result = (
        mesh.bare.execute(
            "select t.content, c.call_id, c.name, c.arguments, r.content -> 'result' from agentmesh.tool_calls c"
            " join agentmesh.transcript t on t.agent_id = c.agent_id and t.seq = c.seq"
            " join agentmesh.transcript r on r.agent_id = c.agent_id and r.seq = c.result_seq"
            " order by c.agent_id desc, c.seq desc limit 1"
        ).fetchone()
        or (None,) * 5
    )
    usage = mesh.one(
        "select to_jsonb(m) - '{id,agent_id,turn,created_at}'::text[] from agentmesh.model_calls m"
        " where m.finish_reason = 'tool_calls' limit 1"
    )
    return {
        "results": [{"ordinal": 0, "result": result}],
        "content": answer,
        "calls": [{"call_id": call_id, "name": name, "arguments": arguments}],
        "usage": usage,
    }


def _bare(bench: Bench, step: dict[str, Any], steps: int) -> tuple[float, float]:
    """Let pgbench store so many steps of each agent, in a database of its own.

    Return steps a second, and milliseconds of the database's processor per step.
    """
    written = literals(step)
    with bench.place.mesh() as mesh:
        agents = owned_recipients(mesh, _AGENTS)
        leases = [begin(mesh, agent, written) for agent in agents]
        mesh.settle_storage()
        server = tree_seconds([bench.place.server_pid])
        rate = pgbench(bench, mesh, [STEP.format(**lease, **written) for lease in leases], steps, seq=FIRST)
        used = (tree_seconds([bench.place.server_pid]) - server) / (len(agents) * steps) * 1e3
        calls = mesh.one("select sum(model_calls) from agentmesh.agents")
        if calls != len(agents) * (steps + 1):
            raise RuntimeError(f"pgbench stored {calls} model calls, not {len(agents) * (steps + 1)}")
        if mesh.one("select count(*) from agentmesh.agents where status = %s", AgentStatus.RUNNING) != len(agents):
            raise RuntimeError("pgbench ended a turn")
        return rate, used


def begin(mesh: Mesh, agent: AgentId, written: dict[str, str]) -> dict[str, Any]:
    """Make the first step of an agent, which reads its mail; return what the next ones need."""
    worker, epoch = mesh.bare.execute(
        "select worker_id, epoch from agentmesh.agents where id = %s", [agent]
    ).fetchone() or (None, None)
    mesh.bare.execute(_BEGIN, [agent, worker, epoch])
    seq = mesh.one(_FINISH, agent, worker, epoch, written["content"], written["calls"], written["usage"])
    if int(seq) != FIRST:
        raise RuntimeError(f"the first answer is row {seq}, not {FIRST}")
    return {"agent": agent, "worker": worker, "epoch": epoch}


def example_step() -> dict[str, str]:
    """Return a step that reads a file, as large as one of P33, for ``STEP``."""
    result = {"content": "".join(f"{n:>6}\tline {n}\n" for n in range(1, 25)), "is_error": False}
    arguments = {"path": NOTE}
    usage = {
        "model": PUPPET,
        "finish_reason": "tool_calls",
        "turn": 1,
        "input_tokens": 2_000,
        "output_tokens": 40,
        "cached_tokens": 1_500,
    }
    return literals(
        {
            "results": [{"ordinal": 0, "result": result}],
            "content": {"text": "I look at the next line of the note."},
            "calls": [{"call_id": "call_1", "name": "read", "arguments": arguments}],
            "usage": usage,
        }
    )


def literals(step: dict[str, Any]) -> dict[str, str]:
    """Return its JSON as pgbench takes it between quotes: it reads a colon before a word as one of its variables."""
    return {name: json.dumps(value).replace("'", "''") for name, value in step.items()}
