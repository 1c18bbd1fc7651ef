"""P3's second half: durable peers on the same server, each through its public interface, in turn with ours.

One message to a recipient that waits, and how many messages one sender and eight commit. See `bench.peers.durable`.
"""

from __future__ import annotations

import random
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import psycopg

from agentmesh.domain.ids import AgentId
from agentmesh.store import mailbox
from bench.floor import SCHEMA, SEND, Floor
from bench.harness import Bench, Figure, Target, Values, percentile, ratio
from bench.peers.contestants import BODY, NOTIFIED, PATIENCE, POLLING, Running, installed
from bench.peers.durable.roles import rate
from bench.peers.process import PeerError
from bench.pictures import Bars, Wanted
from bench.place import Mesh
from bench.sending import empty_mailboxes, owned_recipients
from bench.waking import waiters

_PAUSE: Final = 0.004
_SENDERS: Final = 8
_COUNTS: Final = {1: "1 sender", _SENDERS: f"{_SENDERS} senders"}
_SETTLED: Final = 1.0
"""Seconds after a checkpoint, so that its writes are behind."""
_OURS: Final = "agentmesh"
_FLOOR: Final = "floor"
_BARE: Final = "bare psycopg"
_RIVAL: Final = "DBOS"
_GUARANTEES: Final = {
    _OURS: "durable; read and its tool's result stored in one commit: exactly once",
    _FLOOR: "bare psycopg, two processes: durable, one commit, no rules",
}


def run(bench: Bench) -> None:
    """Measure all that can be installed."""
    with ExitStack() as stack:
        notified = installed(bench, stack, NOTIFIED)
        polling = installed(bench, stack, POLLING)
        with ExitStack() as waiting:
            crowd = waiters(waiting, bench, 1)
            floor = waiting.enter_context(Floor(crowd.mesh.url))
            in_turn(bench, crowd.message, lambda: floor.message(BODY), notified)
            if polling:
                one_by_one(bench, crowd.message, polling)
        _rates(bench, stack, [each for each in (*notified, *polling) if each.contestant.sends])


class Field:
    """The peers of one figure: who fails or hangs is left out from then on, and costs its own values only."""

    def __init__(
        self, bench: Bench, figure: Figure, peers: Sequence[Running], values: Callable[[Running], AbstractSet[str]]
    ) -> None:
        self.figure = figure
        self.there = list(peers)
        self._bench = bench
        self._values = values

    @contextmanager
    def with_each(self, peer: Running) -> Iterator[None]:
        """Do something with a peer; should it fail, its processes are ended and it is told."""
        try:
            yield
        except PeerError as error:
            peer.end()
            self.there.remove(peer)
            unjudged = [target.value for target in self.figure.targets if target.value in self._values(peer)]
            what = f"{peer.name}: {self.figure.title}" + "".join(f"; {value}" for value in unjudged)
            self._bench.failed(self.figure.key, what, str(error))
            self.figure.leave_out(self._values(peer), f"{peer.name} ({error})")


def in_turn(bench: Bench, ours: Callable[[], float], floor: Callable[[], float], peers: Sequence[Running]) -> None:
    """Measure those that are notified, message by message in turn with ours and the floor's."""
    names = [_OURS, _FLOOR, *(each.name for each in peers)]
    units = {f"{name} {what}": "ms" for name in names for what in ("p50", "p99")}
    targets = []
    if _RIVAL in names:
        units |= {f"{_OURS} / {_RIVAL}": "x", f"{_OURS} / {_RIVAL}, p99": "x"}
        targets = [Target(f"{_OURS} / {_RIVAL}", "<=", 0.6), Target(f"{_OURS} / {_RIVAL}, p99", "<=", 1.0)]
    labels = _labels(peers)
    figure = Figure(
        "P3 peers",
        "send until the waiting recipient's result is committed, side by side",
        {**units, **{f"{each.name}: has it, p50": "ms" for each in peers}},
        targets,
        repetitions=3,
        note="All durable, on the same server, sender and recipient two processes, message by message in turn, in "
        f"random order. {_told(labels)} Has it: until the recipient's code had the message.",
        picture=Bars(
            {f"{name} p50": f"{name}: {label}" for name, label in labels.items()},
            Wanted(f"≤ 0.6 × {_RIVAL}", 0.6, f"{_RIVAL} p50") if targets else None,
        ),
    )
    field = Field(bench, figure, peers, _of_one)
    messages = bench.size(60, 5, 400)
    with ExitStack() as stack:
        for each in peers:
            with field.with_each(each):
                stack.enter_context(each.waiting())

        def repeat() -> Values:
            had, times = _in_turn(messages, ours, floor, field)
            found = _percentiles(times)
            found |= {f"{name}: has it, p50": statistics.median(seconds) * 1e3 for name, seconds in had.items()}
            if _RIVAL in times:
                for what, behind in (("p50", ""), ("p99", ", p99")):
                    found[f"{_OURS} / {_RIVAL}{behind}"] = ratio(found[f"{_OURS} {what}"], found[f"{_RIVAL} {what}"])
            return found

        bench.measure(repeat, figure)


def one_by_one(bench: Bench, ours: Callable[[], float], peers: Sequence[Running]) -> None:
    """Measure those that poll, one after another."""
    labels = _labels(peers, _FLOOR)
    figure = Figure(
        "polling",
        "the same of those that poll or buffer, as they come and tuned",
        {f"{name} {what}": "ms" for name in labels for what in ("p50", "p99")},
        ordinary=1,
        note="One after another, agentmesh too, as a poller would disturb the others. Messages come at a "
        f"random moment of the polls' period. {_told(labels)}",
        picture=Bars({f"{name} p50": f"{name}: {label}" for name, label in labels.items()}, logarithmic=True),
    )
    field = Field(bench, figure, peers, _of_one)
    messages = bench.size(60, 5, 400)

    def repeat() -> Values:
        times = {_OURS: [ours() for _ in range(messages)]}
        for each in list(field.there):
            with field.with_each(each), each.waiting():
                times[each.name] = _alone(each, max(3, round(messages * each.contestant.share)))
        return _percentiles(times)

    bench.measure(repeat, figure)


def _of_one(peer: Running) -> set[str]:
    """Return the values that there are of a peer alone, and of us against it."""
    name = peer.name
    ours = f"{_OURS} / {name}"
    return {f"{name} p50", f"{name} p99", f"{name}: has it, p50", ours, f"{ours}, p99"}


def _percentiles(times: Mapping[str, Sequence[float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, seconds in times.items():
        found |= {
            f"{name} p50": statistics.median(seconds) * 1e3,
            f"{name} p99": percentile(seconds, 0.99) * 1e3,
        }
    return found


def _in_turn(
    messages: int, ours: Callable[[], float], floor: Callable[[], float], field: Field
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Return the seconds until each had its messages, and until their results were committed."""
    had: dict[str, list[float]] = defaultdict(list)
    times: dict[str, list[float]] = defaultdict(list)
    for _ in range(messages):
        turns: list[Running | str] = [_OURS, _FLOOR, *field.there]
        random.shuffle(turns)  # nobody always follows the same
        for turn in turns:
            time.sleep(_PAUSE)
            if isinstance(turn, Running):
                with field.with_each(turn):
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
        {f"{name}: {word}": "/s" for word in _COUNTS.values() for name in names},
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
    field = Field(bench, figure, peers, lambda each: {f"{each.contestant.module}: {word}" for word in _COUNTS.values()})
    senders = {each.name: stack.enter_context(each.sender()) for each in peers}

    def ours(count: int) -> float:
        mesh.bare.execute("truncate agentmesh.mail")  # a full mailbox refuses
        return rate(_our_sends(mesh, recipients, count), seconds)

    def repeat() -> Values:
        empty_mailboxes(mesh)
        time.sleep(_SETTLED)
        found: dict[str, float] = {}
        for count, word in _COUNTS.items():
            turns: list[Running | str] = [_OURS, _BARE, *field.there]
            random.shuffle(turns)  # what one leaves the disk to write disturbs the next
            for turn in turns:
                if isinstance(turn, Running):
                    with field.with_each(turn):
                        told = senders[turn.name].ask({"rate": count, "seconds": seconds}, PATIENCE)
                        found[f"{turn.contestant.module}: {word}"] = float(told)
                else:
                    found[f"{turn}: {word}"] = ours(count) if turn == _OURS else rate(bare[:count], seconds)
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


def _labels(peers: Sequence[Running], *without: str) -> dict[str, str]:
    labels = _GUARANTEES | {each.name: each.contestant.guarantee for each in peers}
    return {name: label for name, label in labels.items() if name not in without}


def _told(labels: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {label}" for name, label in labels.items()) + "."
