"""P16, P27, and what it takes to look at long transcripts and at many agents."""

from __future__ import annotations

import statistics
from typing import Final

from agentmesh.domain.ids import AgentId
from bench.harness import Bench, Figure, Target, Values
from bench.place import Mesh
from bench.screen import CHILD, PARENT, Screen, tui

_LONG: Final = 2_000
_LINES: Final = 50_000
_PREVIOUS: Final = b"\x1b[1;5D"
"""Ctrl+Left."""
_HISTORY: Final = """
insert into agentmesh.transcript (agent_id, seq, kind, content)
select %s, n, case when n %% 2 = 1 then 'user' else 'assistant' end,
  jsonb_build_object('text', format(e'message %%s with *some* words\n\nand end-of-%%s.', n, n), 'mail_id', n)
from generate_series(1, %s) n
"""
"""Each message has three lines on the screen, and a blank one below."""


def run(bench: Bench) -> None:
    """Measure P16, P27, and switching."""
    _switching(bench)
    _memory(bench)


def _switching(bench: Bench) -> None:
    messages, lines = bench.size(_LONG, 200), bench.size(_LINES, 2000)
    switching = Figure(
        "switching",
        f"to an agent with {messages:,} messages",
        {"first visit": "ms", "back to it": "ms"},
        repetitions=5,
        ordinary=2,
        note="From the key until its last message was read from the terminal; back: to and fro, median of five.",
    )
    opening = Figure(
        "P16",
        f"opening a transcript of {lines:,} lines",
        {"opened": "ms", "memory more": "MiB"},
        [Target("opened", "<=", 300), Target("memory more", "<=", 40)],
        repetitions=5,
        note="From the key until its last message was read from the terminal; resident memory of the TUI's process.",
    )
    with bench.place.mesh() as mesh:
        _child(mesh, lines // 4)
        _child(mesh, messages)
        mesh.settle_storage()

        def repeat() -> Values:
            with tui(mesh.url, mesh.session, bench.place.folder) as screen:
                screen.until(b"cost $")
                screen.drain(1.0)

                def go(key: bytes, text: bytes) -> float:
                    since = screen.place
                    pressed = screen.send(key)
                    took = screen.until(text, since) - pressed
                    screen.drain(0.3)
                    return took * 1e3

                end = f"end-of-{messages}.".encode()
                first = go(CHILD, end)
                back = []
                for _ in range(5):
                    go(PARENT, b" below")
                    back.append(go(CHILD, end))
                before = screen.resident
                opened = go(_PREVIOUS, f"end-of-{lines // 4}.".encode())
                return {
                    "first visit": first,
                    "back to it": statistics.median(back),
                    "opened": opened,
                    "memory more": screen.resident - before,
                }

        bench.measure(repeat, switching, opening)


def _child(mesh: Mesh, messages: int) -> AgentId:
    made = mesh.fork(mesh.root)
    mesh.bare.execute(_HISTORY, [made, messages])
    return made


def _memory(bench: Bench) -> None:
    crowd, messages = bench.size(50, 10, 100), bench.size(200, 20)
    figure = Figure(
        "P27",
        f"memory of the TUI's process, {messages} messages an agent",
        {"one agent": "MiB", f"{crowd} agents": "MiB", "all seen": "MiB", "seen twice": "MiB"},
        [Target("all seen", "<=", 150)],
        repetitions=3,
        ordinary=1,
        note="Resident: of one agent and of many two seconds after the start, then after each of them was in view.",
    )

    def repeat() -> Values:
        with bench.place.mesh() as mesh:
            mesh.bare.execute(_HISTORY, [mesh.root, messages])
            with tui(mesh.url, mesh.session, bench.place.folder) as screen:
                alone = _settled(screen)
        with bench.place.mesh() as mesh:
            children = [_child(mesh, messages) for _ in range(crowd - 1)]
            with tui(mesh.url, mesh.session, bench.place.folder) as screen:
                begun = _settled(screen)
                end = f"end-of-{messages}.".encode()
                _see(screen, CHILD, end)
                for _ in children[1:]:
                    _see(screen, _PREVIOUS, end)
                once = _settled(screen)
                for _ in children:
                    _see(screen, _PREVIOUS, end)
                twice = _settled(screen)
        return {"one agent": alone, f"{crowd} agents": begun, "all seen": once, "seen twice": twice}

    bench.measure(repeat, figure)


def _see(screen: Screen, key: bytes, end: bytes) -> None:
    """Go to an agent; wait until its last message was read from the terminal."""
    since = screen.place
    screen.send(key)
    screen.until(end, since)


def _settled(screen: Screen) -> float:
    """Return the resident memory in MiB, when nothing happens any more."""
    screen.until(b"cost $")
    screen.drain(2.0)
    return screen.resident
