"""P3's second half: durable peers on the same server, each through its public interface, in turn with ours.

One message to a recipient that waits, and how many messages one sender and eight commit. See `bench.peers.durable`.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final

import psycopg

from agentmesh.domain.ids import AgentId
from agentmesh.store import mailbox
from bench.floor import SCHEMA, SEND, Floor
from bench.harness import Bench, Figure, Target, Values, percentile, ratio
from bench.peers.contestants import BODY, NOTIFIED, POLLING, Running, installed
from bench.peers.durable.roles import rate
from bench.pictures import Bars, Wanted
from bench.place import Mesh
from bench.sending import empty_mailboxes, owned_recipients
from bench.waking import waiters

_PAUSE: Final = 0.004
_SENDERS: Final = 8
_SETTLED: Final = 1.0
"""Seconds after a checkpoint, so that its writes are behind."""
_OURS: Final = "agentmesh"
_BARE: Final = "bare psycopg"
_GUARANTEES: Final = {
    _OURS: "durable; read and its tool's result stored in one commit: exactly once",
    "floor": "bare psycopg, two processes: durable, one commit, no rules",
}


def run(bench: Bench) -> None:
    """Measure all that can be installed."""
    with ExitStack() as stack:
        notified = installed(bench, stack, NOTIFIED)
        polling = installed(bench, stack, POLLING)
        _latency(bench, notified, polling)
        _rates(bench, stack, [each for each in (*notified, *polling) if each.contestant.sends])


def _latency(bench: Bench, notified: Sequence[Running], polling: Sequence[Running]) -> None:
    names = [_OURS, "floor", *(each.name for each in notified)]
    units = {f"{name} {what}": "ms" for name in names for what in ("p50", "p99")}
    targets = []
    if "DBOS" in names:
        units |= {"agentmesh / DBOS": "x", "agentmesh / DBOS, p99": "x"}
        targets = [Target("agentmesh / DBOS", "<=", 0.6), Target("agentmesh / DBOS, p99", "<=", 1.0)]
    labels = _GUARANTEES | {each.name: each.contestant.guarantee for each in (*notified, *polling)}
    figure = Figure(
        "P3 peers",
        "send until the waiting recipient's result is committed, side by side",
        {**units, **{f"{each.name}: has it, p50": "ms" for each in notified}},
        targets,
        repetitions=3,
        note="All durable, on the same server, sender and recipient two processes, message by message in turn, in "
        f"random order. {_told(labels, names)} Has it: until the recipient's code had the message.",
        picture=Bars(
            {f"{name} p50": f"{name}: {labels[name]}" for name in names},
            Wanted("≤ 0.6 × DBOS", 0.6, "DBOS p50") if targets else None,
        ),
    )
    slow_names = [each.name for each in polling]
    slow = Figure(
        "polling",
        "the same of those that poll or buffer, as they come and tuned",
        {f"{name} {what}": "ms" for name in (_OURS, *slow_names) for what in ("p50", "p99")},
        ordinary=1,
        note="One after another, agentmesh too, as a poller would disturb the others. Messages come at a "
        f"random moment of the polls' period. {_told(labels, slow_names)}",
        picture=Bars({f"{name} p50": f"{name}: {labels[name]}" for name in (_OURS, *slow_names)}, logarithmic=True),
    )
    messages = bench.size(60, 5, 400)
    with ExitStack() as stack:
        crowd = waiters(stack, bench, 1)
        floor = stack.enter_context(Floor(crowd.mesh.url))
        for each in notified:
            stack.enter_context(each.waiting())

        def repeat() -> Values:
            had, times = _in_turn(messages, crowd.message, lambda: floor.message(BODY), notified)
            found = _percentiles(times)
            found |= {f"{name}: has it, p50": statistics.median(seconds) * 1e3 for name, seconds in had.items()}
            if targets:
                found["agentmesh / DBOS"] = ratio(found["agentmesh p50"], found["DBOS p50"])
                found["agentmesh / DBOS, p99"] = ratio(found["agentmesh p99"], found["DBOS p99"])
            return found

        def repeat_slow() -> Values:
            times = {_OURS: [crowd.message() for _ in range(messages)]}
            for each in polling:
                with each.waiting():
                    times[each.name] = _alone(each, max(3, round(messages * each.contestant.share)))
            return _percentiles(times)

        bench.measure(repeat, figure)
        if polling:
            bench.measure(repeat_slow, slow)


def _percentiles(times: Mapping[str, Sequence[float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, seconds in times.items():
        found |= {
            f"{name} p50": statistics.median(seconds) * 1e3,
            f"{name} p99": percentile(seconds, 0.99) * 1e3,
        }
    return found


def _in_turn(
    messages: int, ours: Callable[[], float], floor: Callable[[], float], peers: Sequence[Running]
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Return the seconds until each had its messages, and until their results were committed."""
    had: dict[str, list[float]] = {each.name: [] for each in peers}
    times: dict[str, list[float]] = {name: [] for name in (_OURS, "floor", *had)}
    turns: list[Running | str] = [_OURS, "floor", *peers]
    for _ in range(messages):
        random.shuffle(turns)  # nobody always follows the same
        for turn in turns:
            time.sleep(_PAUSE)
            if isinstance(turn, Running):
                first, last = turn.message()
                had[turn.name].append(first)
                times[turn.name].append(last)
            else:
                times[turn].append(ours() if turn == _OURS else floor())
    return had, times


def _alone(each: Running, messages: int) -> list[float]:
    """Return the seconds until its results were committed."""
    times = []
    for _ in range(messages):
        time.sleep(_PAUSE + random.uniform(0, each.contestant.period))
        times.append(each.message()[1])
    return times


def _rates(bench: Bench, stack: ExitStack, peers: Sequence[Running]) -> None:
    names = [_OURS, _BARE, *(each.contestant.module for each in peers)]
    figure = Figure(
        "rates",
        "messages per second that one sender and eight commit, side by side",
        {f"{name}: {count}": "/s" for count in ("1 sender", f"{_SENDERS} senders") for name in names},
        repetitions=3,
        ordinary=2,
        note="From one process each, 8 on threads (pgqueuer: tasks of its loop), to mailboxes that nobody reads; each "
        "commit durable. agentmesh locks its recipient, keeps the mailbox's limit and notifies; bare psycopg is the "
        "floor's insert with its NOTIFY. absurd emits events, pgmq has its NOTIFY off, DBOS sends from outside a "
        "workflow.",
        picture=Bars({f"{name}: {_SENDERS} senders": f"{name}, {_SENDERS} senders" for name in names}),
    )
    seconds = 0.1 if bench.quick else 0.3
    mesh = stack.enter_context(bench.place.mesh())
    recipients = owned_recipients(mesh, _SENDERS)
    mesh.bare.execute(SCHEMA)
    bare = _bare_senders(stack, mesh)
    senders = {each.contestant.module: stack.enter_context(each.sender()) for each in peers}

    def measured(name: str, count: int) -> float:
        if name == _OURS:
            mesh.bare.execute("truncate agentmesh.mail")  # a full mailbox refuses
            return rate(_our_sends(mesh, recipients, count), seconds)
        if name == _BARE:
            return rate(bare[:count], seconds)
        return float(senders[name].ask({"rate": count, "seconds": seconds}))

    def repeat() -> Values:
        empty_mailboxes(mesh)
        time.sleep(_SETTLED)
        found: dict[str, float] = {}
        for count, word in ((1, "1 sender"), (_SENDERS, f"{_SENDERS} senders")):
            random.shuffle(names)  # what one leaves the disk to write disturbs the next
            found |= {f"{name}: {word}": measured(name, count) for name in names}
        return found

    bench.measure(repeat, figure)


def _our_sends(mesh: Mesh, recipients: Sequence[AgentId], count: int) -> list[Callable[[str], Any]]:
    """Return so many senders: one alone goes round, as a mailbox has a limit; several have a recipient each."""
    shares = [list(recipients[number::count]) for number in range(count)]

    def sender(mine: list[AgentId]) -> Callable[[str], Any]:
        def send(body: str) -> Any:
            mine.append(mine.pop(0))
            return mesh.database.run(mailbox.send, None, mine[-1], body)

        return send

    return [sender(mine) for mine in shares]


def _bare_senders(stack: ExitStack, mesh: Mesh) -> list[Callable[[str], Any]]:
    def sender(recipient: str) -> Callable[[str], Any]:
        connection = stack.enter_context(psycopg.connect(mesh.url, autocommit=True))
        return lambda body: connection.execute(SEND, [recipient, body])

    return [sender(f"00000000-0000-4000-8000-00000000001{number}") for number in range(_SENDERS)]


def _told(labels: Mapping[str, str], names: Sequence[str]) -> str:
    return "; ".join(f"{name}: {labels[name]}" for name in names) + "."
