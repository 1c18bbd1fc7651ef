"""Bloat: how much larger the tables are than their rows after a million steps, with the server's own autovacuum."""

from __future__ import annotations

from typing import Final

from bench.harness import Bench, Figure, Target, Values, ratio
from bench.place import Mesh
from bench.sending import owned_recipients, pgbench
from bench.stepping import FIRST, STEP, begin, example_step

_AGENTS: Final = 16
_ROUNDS: Final = 20
_SIZE: Final = "select sum(pg_total_relation_size(relid)) from pg_stat_user_tables where schemaname = 'agentmesh'"
_CHANGING: Final = (
    "select coalesce(sum(pg_total_relation_size(relid)), 0) from pg_stat_user_tables where schemaname = 'agentmesh'"
    " and relname in ('agents', 'activity', 'sessions', 'session_usage', 'workers', 'reservations', 'bookings', 'wait')"
)
_DEAD: Final = "select max(n_dead_tup) from pg_stat_user_tables where schemaname = 'agentmesh'"
_VACUUMS: Final = "select sum(autovacuum_count) from pg_stat_user_tables where schemaname = 'agentmesh'"
_MIB: Final = 2**20


def run(bench: Bench) -> None:
    """Measure it; a run that is neither full nor quick has no time for it."""
    if not (bench.full or bench.quick):
        return
    each = bench.size(0, 10, 1_000_000 // (_AGENTS * _ROUNDS))
    rounds = bench.size(0, 2, _ROUNDS)
    figure = Figure(
        "bloat",
        f"bloat: the tables after {each * rounds * _AGENTS:,} steps",
        {
            "all tables": "MiB",
            "all tables / rewritten": "x",
            "changing tables": "MiB",
            "changing tables, rewritten": "MiB",
            "growth of the last tenth / of the first": "x",
            "dead rows of one table, at most": "",
            "autovacuums": "",
            "steps per second": "",
        },
        [
            Target("all tables / rewritten", "<=", 1.5),
            Target("growth of the last tenth / of the first", "<=", 1.2),
        ],
        repetitions=1,
        ordinary=1,
        note=f"pgbench makes the steps of P33 in {_AGENTS} connections, for {rounds} times {_AGENTS} agents. Only "
        "autovacuum cleans up. Rewritten: after VACUUM FULL, so with the same rows and no waste. Changing tables: "
        "agents, activity, sessions, session_usage, workers, reservations, bookings and wait; all others mostly grow. "
        "Commits do not wait for the disk here, which changes no table. Dead rows are looked at after each round.",
        any_load=True,
    )

    def repeat() -> Values:
        with bench.place.mesh() as mesh:
            return _grow(bench, mesh, each, rounds)

    bench.measure(repeat, figure)


def _grow(bench: Bench, mesh: Mesh, each: int, rounds: int) -> Values:
    """Make the steps; return how large the tables have become."""
    mesh.bare.execute(
        "do $$ begin execute format('alter database %I set synchronous_commit = off', current_database()); end $$"
    )
    sizes, rates, dead = [float(mesh.one(_SIZE))], [], 0.0
    for _ in range(rounds):
        agents = owned_recipients(mesh, _AGENTS)
        step = example_step()
        leases = [begin(mesh, agent, step) for agent in agents]
        rates.append(pgbench(bench, mesh, [STEP.format(**lease, **step) for lease in leases], each, seq=FIRST))
        sizes.append(float(mesh.one(_SIZE)))
        dead = max(dead, float(mesh.one(_DEAD)))
    made, wanted = mesh.one("select sum(model_calls) from agentmesh.agents"), rounds * _AGENTS * (each + 1)
    if made != wanted:
        raise RuntimeError(f"{made} steps were made, not {wanted}")
    tenth = max(rounds // 10, 1)
    changing, vacuums = float(mesh.one(_CHANGING)), float(mesh.one(_VACUUMS))
    mesh.bare.execute("vacuum full")
    return {
        "all tables": sizes[-1] / _MIB,
        "all tables / rewritten": ratio(sizes[-1], float(mesh.one(_SIZE))),
        "changing tables": changing / _MIB,
        "changing tables, rewritten": float(mesh.one(_CHANGING)) / _MIB,
        "growth of the last tenth / of the first": ratio(sizes[-1] - sizes[-1 - tenth], sizes[tenth] - sizes[0]),
        "dead rows of one table, at most": dead,
        "autovacuums": vacuums,
        "steps per second": ratio(len(rates), sum(1 / rate for rate in rates)),
    }
