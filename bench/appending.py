"""P18: rows of transcripts, written by 16 at once, against bare inserts."""

from __future__ import annotations

import statistics
from typing import Final

from bench.harness import Bench, Figure, Target, Values, ratio
from bench.pictures import Bars, Wanted
from bench.sending import pgbench

_WRITERS: Final = 16
_ROUNDS: Final = 2
_TEXT: Final = "x" * 200
_TABLE: Final = """
create table bare_transcript (
  agent_id uuid not null, seq bigint not null, kind text not null, content jsonb not null,
  created_at timestamptz not null default clock_timestamp(), primary key (agent_id, seq)
)
"""
_BARE: Final = """insert into bare_transcript (agent_id, seq, kind, content)
select '{0}', coalesce(max(seq), 0) + 1, 'assistant', '{{"text": "{1}"}}'
from bare_transcript where agent_id = '{0}';"""
_OURS: Final = """select agentmesh.append('{0}', 'assistant', '{{"text": "{1}"}}');"""


def run(bench: Bench) -> None:
    """Measure P18."""
    each = bench.size(500, 10)
    figure = Figure(
        "P18",
        f"appending to transcripts, {_WRITERS} writers with an agent each",
        {"agentmesh": "rows/s", "bare insert": "rows/s", "agentmesh / bare insert": "x"},
        [Target("agentmesh / bare insert", ">=", 0.7)],
        repetitions=3,
        note="Both by pgbench with prepared statements, each row a durable commit: agentmesh.append, by which the "
        "engine writes its rows, and the same row with the next number into a table with nothing but its key. Neither "
        f"notifies. Rows per second of {_ROUNDS} rounds of each, in turn; both tables have rows before, else "
        f"PostgreSQL plans for empty ones. A connection appends {each} rows: its first ones are planned, and a pool "
        "keeps its connections.",
        picture=Bars(
            {"agentmesh": "agentmesh.append: checked, three indexes", "bare insert": "insert: a primary key"},
            Wanted("≥ 0.7 × insert", 0.7, "bare insert"),
        ),
    )
    with bench.place.mesh() as mesh:
        mesh.bare.execute(_TABLE)
        agents = [mesh.fork(mesh.root) for _ in range(_WRITERS)]

        def rate(statement: str) -> float:
            return pgbench(bench, mesh, [statement.format(agent, _TEXT) for agent in agents], each)

        def repeat() -> Values:
            rates = [(rate(_OURS), rate(_BARE)) for _ in range(_ROUNDS)]
            ours, bare = (statistics.harmonic_mean(side) for side in zip(*rates, strict=True))
            return {"agentmesh": ours, "bare insert": bare, "agentmesh / bare insert": ratio(ours, bare)}

        rate(_OURS), rate(_BARE)
        mesh.settle_storage()
        bench.measure(repeat, figure)
