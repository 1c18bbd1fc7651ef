"""P18: rows of transcripts, written by 16 at once, against bare inserts."""

from __future__ import annotations

from typing import Final

from bench.harness import Bench, Figure, Target, Values, ratio
from bench.pictures import Bars, Wanted
from bench.sending import pgbench

_WRITERS: Final = 16
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
    each = bench.size(1000, 10, 2000)
    figure = Figure(
        "P18",
        f"appending to transcripts, {_WRITERS} writers with an agent each",
        {"agentmesh": "rows/s", "bare insert": "rows/s", "agentmesh / bare insert": "x"},
        [Target("agentmesh / bare insert", ">=", 0.5)],
        repetitions=3,
        note="Both by pgbench with prepared statements, each row a durable commit: agentmesh.append, by which the "
        "engine writes its rows, and the same row with the next number into a table with nothing but its key. Neither "
        "notifies. Both tables have rows before, else PostgreSQL plans for empty ones. A connection appends "
        f"{each} rows: its first row takes milliseconds, more of them for a table with checks and keys, and a pool "
        "keeps its connections.",
        picture=Bars(
            {"agentmesh": "agentmesh.append: checked, three indexes", "bare insert": "insert: a primary key"},
            Wanted("≥ 0.5 × insert", 0.5, "bare insert"),
        ),
    )
    with bench.place.mesh() as mesh:
        mesh.bare.execute(_TABLE)
        agents = [mesh.fork(mesh.root) for _ in range(_WRITERS)]

        def rate(statement: str) -> float:
            return pgbench(bench, mesh, [statement.format(agent, _TEXT) for agent in agents], each)

        def repeat() -> Values:
            ours, bare = rate(_OURS), rate(_BARE)
            return {"agentmesh": ours, "bare insert": bare, "agentmesh / bare insert": ratio(ours, bare)}

        rate(_OURS), rate(_BARE)
        mesh.settle_storage()
        bench.measure(repeat, figure)
