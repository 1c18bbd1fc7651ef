"""P32: siblings whose conversations begin alike, and a model server that reads a beginning faster if it has read it.

The server reads one request at a time, so many tokens a second, and keeps what it has read. A request uses what was
kept when it came: so requests that come together each pay for all.

The same with a server that has slots, as llama.cpp: each keeps one conversation, and a request goes to the free slot
that has most of it.
"""

from __future__ import annotations

import hashlib
import json
import random
import threading
import time
from typing import Final

from agentmesh.llm.simulator.reply import ScriptedReply
from agentmesh.llm.simulator.request import ChatRequestView
from agentmesh.llm.simulator.server import Simulator
from bench.harness import Bench, Figure, Target, Values, ratio
from bench.place import Mesh
from bench.worker import WorkerProcess

_TOKENS_PER_SECOND: Final = 80_000
_BYTES_PER_TOKEN: Final = 4
_SIBLINGS: Final = 8
_TOKENS: Final = 8_000
_SIBLINGS_TOO: Final = (2, 32)
_TOKENS_TOO: Final = (2_000, 32_000)
"""Further sizes of the long form."""
_LONG: Final = 32_000
"""Tokens of a prefix that is worth a slot."""
_SLOTS: Final = 4
_SLOTS_TOO: Final = (1, 2, 8)
_WRITING: Final = 0.02
"""Seconds that a server with slots writes an answer."""
_GATE: Final = 2_000
_HIGH: Final = 1_000_000


class Prefill:
    """The server's reading; for any thread."""

    def __init__(self) -> None:
        self._reading = threading.Lock()
        self._kept: set[str] = set()

    def answer(self, view: ChatRequestView) -> ScriptedReply:
        """Read what is not kept, then answer."""
        hashes, sizes = _beginnings(view)
        new = next((n for n, name in enumerate(hashes) if name not in self._kept), len(hashes))
        with self._reading:
            time.sleep(sum(sizes[new:]) / _TOKENS_PER_SECOND)
            self._kept.update(hashes)
        return ScriptedReply("done")


class Slots:
    """The reading and writing of a server with slots; for any thread."""

    def __init__(self, number: int) -> None:
        self._changed = threading.Condition()
        self._free: list[list[str]] = [[] for _ in range(number)]
        """What each free slot keeps, as hashes of all beginnings; the one used last at the end."""
        self._reading = threading.Lock()

    def answer(self, view: ChatRequestView) -> ScriptedReply:
        """Read what the slot does not have, then write."""
        hashes, sizes = _beginnings(view)
        with self._changed:
            self._changed.wait_for(lambda: self._free)
            slot = max(self._free, key=lambda kept: len(_common(kept, hashes)))
            self._free.remove(slot)
        try:
            with self._reading:
                time.sleep(sum(sizes[len(_common(slot, hashes)) :]) / _TOKENS_PER_SECOND)
            time.sleep(_WRITING)
        finally:
            with self._changed:
                self._free.append(hashes)
                self._changed.notify()
        return ScriptedReply("done")


def _common(kept: list[str], hashes: list[str]) -> list[str]:
    return [one for one, other in zip(kept, hashes, strict=False) if one == other]


def _beginnings(view: ChatRequestView) -> tuple[list[str], list[int]]:
    """Return a hash of each beginning of a request, and how many tokens each adds."""
    hashes, sizes = [], []
    hashed = hashlib.sha256()
    for part in (view.body.get("tools"), *view.messages):
        text = json.dumps(part).encode()
        hashed.update(text)
        hashes.append(hashed.hexdigest())
        sizes.append(len(text) // _BYTES_PER_TOKEN)
    return hashes, sizes


def run(bench: Bench) -> None:
    """Measure P32."""
    _run_slots(bench)
    further = bench.size(0, 0, len(_SIBLINGS_TOO))
    with (
        Simulator(Prefill().answer, record=False) as server,
        bench.place.mesh() as plain,
        bench.place.mesh() as gated,
        bench.place.mesh() as short,
        WorkerProcess(plain.url, concurrency=40, base_url=server.base_url, prefix_gate=0),
        WorkerProcess(gated.url, concurrency=40, base_url=server.base_url, prefix_gate=_GATE),
        WorkerProcess(short.url, concurrency=40, base_url=server.base_url, prefix_gate=_HIGH),
    ):
        _measure(bench, (plain, gated, short), _SIBLINGS, _TOKENS)
        for siblings in _SIBLINGS_TOO[:further]:
            _measure(bench, (plain, gated, short), siblings, _TOKENS)
        for tokens in _TOKENS_TOO[:further]:
            _measure(bench, (plain, gated, short), _SIBLINGS, tokens)


def _measure(bench: Bench, meshes: tuple[Mesh, Mesh, Mesh], siblings: int, tokens: int) -> None:
    is_judged = (siblings, tokens) == (_SIBLINGS, _TOKENS)
    figure = Figure(
        f"P32 {siblings} × {tokens:,}",
        f"{siblings} siblings with a cold prefix of {tokens:,} tokens, until all are done",
        {
            "all at once": "s",
            "one first": "s",
            "a shorter prefix": "s",
            "one first / at once": "x",
            "shorter / at once": "x",
        },
        [Target("one first / at once", "<=", 0.35), Target("shorter / at once", "<=", 1.1)] if is_judged else [],
        ordinary=2,
        note=f"The server reads {_TOKENS_PER_SECOND:,} tokens a second, one request at a time, and keeps what it has"
        " read. A shorter prefix: the setting prefix_gate is higher than the prefix is long.",
    )

    def repeat() -> Values:
        at_once, first, shorter = (_fan_out(mesh, siblings, tokens) for mesh in meshes)
        return {
            "all at once": at_once,
            "one first": first,
            "a shorter prefix": shorter,
            "one first / at once": ratio(first, at_once),
            "shorter / at once": ratio(shorter, at_once),
        }

    bench.measure(repeat, figure)


def _run_slots(bench: Bench) -> None:
    for slots in (_SLOTS, *_SLOTS_TOO[: bench.size(0, 0, len(_SLOTS_TOO))]):
        with (
            Simulator(Slots(slots).answer, record=False) as server,
            bench.place.mesh() as plain,
            bench.place.mesh() as turns,
            WorkerProcess(plain.url, concurrency=40, base_url=server.base_url, prefix_gate=_GATE),
            WorkerProcess(turns.url, concurrency=40, base_url=server.base_url, prefix_gate=_GATE, slots=slots),
        ):
            _measure_slots(bench, (plain, turns), slots)


def _measure_slots(bench: Bench, meshes: tuple[Mesh, Mesh], slots: int) -> None:
    figure = Figure(
        f"P32 {slots} slots",
        f"{_SIBLINGS} siblings with a prefix of {_LONG:,} tokens on a server with {slots} slots, until all are done",
        {"all at once": "s", "in turn": "s", "in turn / at once": "x"},
        [Target("in turn / at once", "<=", 0.8)] if slots == _SLOTS else [],
        ordinary=2,
        note=f"The server reads {_TOKENS_PER_SECOND:,} tokens a second, one slot at a time, and writes each answer in"
        f" {_WRITING:g} s. All at once: after the first token of the first one, as without slots.",
    )

    def repeat() -> Values:
        at_once, in_turn = (_fan_out(mesh, _SIBLINGS, _LONG) for mesh in meshes)
        return {"all at once": at_once, "in turn": in_turn, "in turn / at once": ratio(in_turn, at_once)}

    bench.measure(repeat, figure)


def _fan_out(mesh: Mesh, siblings: int, tokens: int) -> float:
    """Fork siblings from a root that no server has read; return the seconds until all are done."""
    root = mesh.new_session()
    text = random.randbytes(tokens * _BYTES_PER_TOKEN // 2).hex()
    mesh.bare.execute(
        "insert into agentmesh.transcript (agent_id, seq, kind, content)"
        " values (%s, 1, 'user', jsonb_build_object('text', %s::text, 'mail_id', 1))",
        [root, text],
    )
    began = time.perf_counter()
    for _ in range(siblings):
        mesh.fork(root, "work")
    mesh.until("select bool_and(status = 'idle') from agentmesh.agents where parent_id = %s", root)
    return time.perf_counter() - began
