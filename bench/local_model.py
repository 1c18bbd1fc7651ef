"""Three forks of one conversation on a real model server, with and without the prefix gate; only where one is at hand.

``AGENTMESH_BENCH_SERVER`` is its base URL, as in ``http://127.0.0.1:8080/v1``. It has one model, or takes any name, as
llama.cpp does. It should do nothing else meanwhile.
"""

from __future__ import annotations

import os
import random
import sys
import time
from typing import Final

from agentmesh.domain.ids import AgentId
from bench.harness import Bench, Figure, Values, ratio
from bench.place import Mesh
from bench.worker import WorkerProcess

VARIABLE: Final = "AGENTMESH_BENCH_SERVER"
_SIBLINGS: Final = 3
_WORDS: Final = 800
_GATE: Final = 1_000
_ANSWER: Final = 8
"""Tokens of an answer: the figure is about reading."""
_PATIENCE: Final = 1_200.0
_SYLLABLES: Final = ("ba", "do", "ke", "li", "mu", "na", "po", "ri", "sa", "tu")


def run(bench: Bench) -> None:
    """Measure it in a long run, if there is a server."""
    if not bench.full:
        return
    server = os.environ.get(VARIABLE)
    if not server:
        print(f"local_model: no model server is at hand; {VARIABLE} names one", file=sys.stderr, flush=True)
        return
    figure = Figure(
        "local model",
        f"{_SIBLINGS} forks at once of a conversation of {_WORDS:,} words that the server has not read",
        {"first answer, no gate": "s", "first answer": "s", "all, no gate": "s", "all": "s", "all / no gate": "x"},
        [],
        repetitions=1,
        ordinary=1,
        note="A real server, which has read the system prompt and the tools before. An answer has at most "
        f"{_ANSWER} tokens. Not judged, because it is the server's.",
        any_load=True,
    )

    def repeat() -> Values:
        with bench.place.mesh() as mesh:
            _measured(mesh, server, gate=0, siblings=1)  # reads what all share
        with bench.place.mesh() as mesh:
            first_at_once, at_once = _measured(mesh, server, gate=0)
        with bench.place.mesh() as mesh:
            first_gated, gated = _measured(mesh, server, gate=_GATE)
        return {
            "first answer, no gate": first_at_once,
            "first answer": first_gated,
            "all, no gate": at_once,
            "all": gated,
            "all / no gate": ratio(gated, at_once),
        }

    bench.measure(repeat, figure)


def _measured(mesh: Mesh, server: str, *, gate: int, siblings: int = _SIBLINGS) -> tuple[float, float]:
    """Fork siblings; return the seconds until one has its answer, and until all are done."""
    root = _conversation(mesh)
    with WorkerProcess(mesh.url, base_url=server, prefix_gate=gate, max_tokens=_ANSWER):
        began = time.perf_counter()
        for _ in range(siblings):
            mesh.fork(root, "Say yes.")
        mesh.until(
            "select bool_and(status = 'idle') from agentmesh.agents where parent_id = %s", root, seconds=_PATIENCE
        )
        took = time.perf_counter() - began
    first = mesh.one(
        "select extract(epoch from min(c.ended_at) filter (where c.output_tokens > 0) - min(a.created_at))"
        " from agentmesh.agents a left join agentmesh.model_calls c on c.agent_id = a.id where a.parent_id = %s",
        root,
    )
    if first is None:
        why = mesh.one("select string_agg(distinct error, '; ') from agentmesh.model_calls")
        raise RuntimeError(f"the server has answered none of the forks: {why}")
    return float(first), took


def _conversation(mesh: Mesh) -> AgentId:
    """Begin a session whose root has heard words that nobody has ever sent."""
    root = mesh.new_session()
    words = ("".join(random.choices(_SYLLABLES, k=2)) for _ in range(_WORDS))
    mesh.bare.execute(
        "insert into agentmesh.transcript (agent_id, seq, kind, content)"
        " values (%s, 1, 'user', jsonb_build_object('text', %s::text, 'mail_id', 1))",
        [root, " ".join(words)],
    )
    return root
