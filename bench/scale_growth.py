"""Growth: forks by depth and width, kills by the size of the tree, fan-in by the number of agents awaited."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Final

from agentmesh.domain.ids import AgentId
from agentmesh.store import agents, mailbox
from bench import scale_crowd
from bench.harness import Bench, Figure, Target, Values, ratio
from bench.killing import timed_kill
from bench.machine import memory
from bench.pictures import Curve
from bench.place import Mesh
from bench.puppet import instruction
from bench.worker import WorkerProcess

_DEPTH: Final = 10
_LOCKS: Final = "select count(*) from pg_locks where pid = pg_backend_pid()"


def run(bench: Bench) -> None:
    """Measure all of them."""
    _depth(bench)
    _width(bench)
    _kill(bench)
    _fan_in(bench)


def _depth(bench: Bench) -> None:
    forks = bench.size(60, 5)
    depths = (1, 2, 4, 7, _DEPTH)
    figure = Figure(
        "fork depth",
        f"fork with a prompt at depth 1 to {_DEPTH}",
        {**{f"depth {depth}": "ms" for depth in depths}, f"depth {_DEPTH} / 1": "x"},
        [Target(f"depth {_DEPTH} / 1", "<=", 1.25)],
        repetitions=3,
        note="p50, in turn; each ancestor has ten messages of its own.",
        picture=Curve("depth", {"fork": {depth: f"depth {depth}" for depth in depths}}),
    )
    with bench.place.mesh(max_depth=_DEPTH) as mesh:
        chain = [mesh.root]
        while len(chain) < _DEPTH:
            chain.append(mesh.fork(chain[-1]))
        for agent in chain:
            mesh.bare.execute(
                "insert into agentmesh.transcript (agent_id, seq, kind, content)"
                """ select %s, n, 'assistant', '{"text": "words"}' from generate_series(1, 10) n""",
                [agent],
            )
        mesh.settle_storage()

        def repeat() -> Values:
            times: dict[int, list[float]] = {depth: [] for depth in depths}
            for _ in range(forks):
                for depth in depths:
                    times[depth].append(_fork(mesh, chain[depth - 1], None))
            shown = {f"depth {depth}": statistics.median(took) for depth, took in times.items()}
            return {**shown, f"depth {_DEPTH} / 1": ratio(shown[f"depth {_DEPTH}"], shown["depth 1"])}

        bench.measure(repeat, figure)


def _width(bench: Bench) -> None:
    forks = bench.size(40, 5)
    widths = [10, 100, 1_000, *([10_000] if bench.full else [])]
    most = widths[-1]
    figure = Figure(
        "fork width",
        f"fork with a prompt from a parent that has 10 to {most:,} living children",
        {
            **{f"{width:,} children": "ms" for width in widths},
            **{f"{width:,} children of one name": "ms" for width in widths},
            "1,000 / 10": "x",
        },
        [Target("1,000 / 10", "<=", 2.0)],
        repetitions=3,
        note="p50; each width in a session of its own. The children are counted, because the limits are exact, so it "
        "grows with them, slowly. Of one name: as /fork and agents that do not think of another name make them: "
        "fork, fork-2, fork-3, ...",
        picture=Curve(
            "living children",
            {
                "a name of its own": {width: f"{width:,} children" for width in widths},
                "the same name": {width: f"{width:,} children of one name" for width in widths},
            },
        ),
    )
    with bench.place.mesh() as mesh:
        parents = {width: mesh.new_session() for width in widths}
        same = {width: mesh.new_session() for width in widths}
        for width in widths:
            scale_crowd.fork_idle(mesh.bare, [parents[width]], width, "w")
            made = scale_crowd.fork_idle(mesh.bare, [same[width]], width, "fork")
            mesh.bare.execute("update agentmesh.agents set name = 'fork' where id = %s", [made[0]])
        mesh.settle_storage()

        def repeat() -> Values:
            values: dict[str, float] = {}
            for width in widths:
                own = [_fork(mesh, parents[width], None) for _ in range(forks)]
                one = [_fork(mesh, same[width], "fork") for _ in range(forks)]
                values[f"{width:,} children"] = statistics.median(own)
                values[f"{width:,} children of one name"] = statistics.median(one)
            return {**values, "1,000 / 10": ratio(values["1,000 children"], values["10 children"])}

        bench.measure(repeat, figure)


def _fork(mesh: Mesh, parent: AgentId, name: str | None) -> float:
    began = time.perf_counter()
    if name is None:
        mesh.fork(parent, "work")
    else:
        mesh.database.run(agents.fork, parent, name, "work")
    return (time.perf_counter() - began) * 1e3


def _kill(bench: Bench) -> None:
    sizes = [200, 1_000, 10_000] if bench.full else [20, 60] if bench.quick else [50, 200, 1_000]
    few, most = sizes[0], sizes[-1]
    figure = Figure(
        "kill",
        f"kill of trees of up to {most:,} agents, ten waiters each",
        {
            **{f"{size:,} agents": "ms" for size in sizes},
            **{f"{size:,} agents: last waiter told": "ms" for size in sizes},
            f"{few:,} agents: entries in the lock table": "",
            f"{most:,} agents: entries in the lock table": "",
            "an agent more": "ms",
        },
        [Target(f"{most:,} agents: entries in the lock table", "<=", 128)],
        repetitions=2,
        ordinary=1,
        note="One commit. Each waiter waits for a tenth of the tree; told: its tool result is committed. The locks of "
        "the agents are in their rows, not in the table that max_locks_per_transaction sizes: its entries do not grow.",
        picture=Curve(
            "agents in the tree",
            {
                "kill": {size: f"{size:,} agents" for size in sizes},
                "last waiter told after it": {size: f"{size:,} agents: last waiter told" for size in sizes},
            },
        ),
    )
    with bench.place.mesh(max_agents=1_000_000, max_children=1_000_000) as mesh, WorkerProcess(mesh.url) as worker:
        waiting = [mesh.fork(mesh.root) for _ in range(10)]

        def repeat() -> Values:
            values: dict[str, float] = {}
            for size in sizes:
                top, tree = _tree(mesh, size)
                for n, waiter in enumerate(waiting):
                    told = instruction(("wait", {"timeout": 600, "from_agents": _names(mesh, tree[n::10])}))
                    mesh.database.run(mailbox.send, None, waiter, told)
                mesh.until("select count(*) = %s from agentmesh.wait", len(waiting))
                mesh.settle_storage()
                values[f"{size:,} agents: entries in the lock table"] = _locks(mesh, top)
                kill, told_after = timed_kill(mesh, worker, top, size, waiting)
                values[f"{size:,} agents"] = kill
                values[f"{size:,} agents: last waiter told"] = told_after
            values["an agent more"] = (values[f"{most:,} agents"] - values[f"{few:,} agents"]) / (most - few)
            return values

        bench.measure(repeat, figure)


def _tree(mesh: Mesh, size: int) -> tuple[AgentId, list[AgentId]]:
    """Make a tree of running agents, four levels deep; return its top, and all of them."""
    prefix = f"t{mesh.one('select count(*) from agentmesh.agents')}"
    (top,) = scale_crowd.fork_running(mesh.bare, [mesh.root], 1, prefix)
    middle = scale_crowd.fork_running(mesh.bare, [top], max(size // 100, 1), f"{prefix}m")
    leaves = scale_crowd.fork_running(mesh.bare, middle, (size - 1 - len(middle)) // len(middle), f"{prefix}l")
    rest = scale_crowd.fork_running(mesh.bare, leaves[:1], size - 1 - len(middle) - len(leaves), f"{prefix}r")
    return top, [top, *middle, *leaves, *rest]


def _locks(mesh: Mesh, top: AgentId) -> float:
    """Return how many entries the kill has in the lock table before it commits; it is rolled back."""
    with mesh.bare.transaction(force_rollback=True):
        mesh.bare.execute("select count(*) from agentmesh.kill(%s)", [top])
        return float(mesh.one(_LOCKS))


def _names(mesh: Mesh, some: Sequence[AgentId]) -> list[str]:
    """Return their names: shorter than ids, so that ten thousand fit into one message to the puppet."""
    return list(mesh.one("select array_agg(name) from agentmesh.agents where id = any (%s)", list(some)))


def _fan_in(bench: Bench) -> None:
    sizes = [10, 100, 1_000, 10_000] if bench.full else [10, 50] if bench.quick else [10, 100, 1_000]
    most = sizes[-1]
    figure = Figure(
        "fan-in",
        f"a wait for up to {most:,} agents at once",
        {
            **{f"{size:,} awaited": "ms" for size in sizes},
            **{f"{size:,} awaited: to begin": "ms" for size in sizes},
            **{f"{size:,} awaited: in all, each": "ms" for size in sizes},
            **{f"{size:,} awaited: statements": "" for size in sizes},
            f"{most:,} awaited: memory of the worker": "MiB",
        },
        [Target(f"{most:,} awaited: memory of the worker", "<=", 300)],
        repetitions=2,
        ordinary=1,
        note="The result is committed so long after the last message; to begin: from the prompt until the "
        "wait stands; in all: from the first send, per message, one process sending; statements: of the worker while "
        "it waits. P7 has the targets.",
        picture=Curve(
            "agents awaited",
            {
                "after the last message": {size: f"{size:,} awaited" for size in sizes},
                "to begin": {size: f"{size:,} awaited: to begin" for size in sizes},
            },
        ),
    )
    with bench.place.mesh(max_unread=1_000_000) as mesh, WorkerProcess(mesh.url) as worker:
        senders = scale_crowd.fork_running(mesh.bare, [mesh.root], most, "s")
        mesh.settle_storage()

        def repeat() -> Values:
            values: dict[str, float] = {}
            for size in sizes:
                values |= _gather(mesh, worker, senders[:size])
            return values

        bench.measure(repeat, figure)


def _gather(mesh: Mesh, worker: WorkerProcess, senders: Sequence[AgentId]) -> Values:
    """Let the root wait for all of these, and all of them send."""
    names, size = _names(mesh, senders), len(senders)
    began = time.monotonic_ns()
    mesh.database.run(mailbox.send, None, mesh.root, instruction(("wait", {"timeout": 3600, "from_agents": names})))
    waiting = worker.next("waiting", mesh.root)
    first = time.monotonic_ns()
    for sender in senders:
        mesh.database.run(mailbox.send, sender, mesh.root, "x" * 100)
    last = time.monotonic_ns()
    taken = worker.next("taken", mesh.root)
    if taken["outcome"] != "complete":
        raise RuntimeError(f"the wait ended with {taken}")
    worker.next("finished", mesh.root)
    return {
        f"{size:,} awaited": (taken["at"] - last) / 1e6,
        f"{size:,} awaited: to begin": (waiting["at"] - began) / 1e6,
        f"{size:,} awaited: in all, each": (taken["at"] - first) / 1e6 / size,
        f"{size:,} awaited: statements": taken["statements"] - waiting["statements"],
        f"{size:,} awaited: memory of the worker": memory(worker.pid) / 2**20,
    }
