"""Who takes part beside us: the durable peers, their settings, what each guarantees, and their processes."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from psycopg.conninfo import conninfo_to_dict

from bench.harness import Bench
from bench.peers.environments import NotInstalledError, environment
from bench.peers.process import Peer, PeerError

BODY: Final = "x" * 100
PATIENCE: Final = 75.0
"""Seconds for one message: DBOS looks after 60 s for what no notification told it, the others sooner."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """A peer with the settings it runs with."""

    name: str
    module: str
    guarantee: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    period: float = 0.0
    """Seconds between its polls; 0 where it is notified. Messages come at a random moment of it."""
    share: float = 1.0
    """Of the messages that the others get, for those that take long."""
    sends: bool = True
    """Its rate is measured too."""


NOTIFIED: Final = (
    Contestant("DBOS", "dbos", "durable; recv consumes and records a step in one commit: exactly once"),
    Contestant(
        "pgqueuer", "pgqueuer", "batch_size=1; durable job, its end another commit: at least once", {"batch_size": 1}
    ),
    Contestant("procrastinate", "procrastinate", "durable job, its end another commit: at least once"),
    Contestant(
        "pgmq notified", "pgmq", "NOTIFY unthrottled; durable, archived in another commit: at least once",
        {"notified": True}, sends=False,
    ),
)  # fmt: skip
POLLING: Final = (
    Contestant("pgqueuer as it comes", "pgqueuer", "notified, but ends of jobs are buffered for 100 ms",
        period=0.1, share=0.2, sends=False),
    Contestant("pgmq as it comes", "pgmq", "durable, polls every 100 ms: at least once", {"notified": False},
        period=0.1, share=0.2),
    Contestant("absurd as it comes", "absurd", "polls every 250 ms; durable, the event a checkpoint of its task",
        {"poll_interval": 0.25}, period=0.25, share=0.1),
    Contestant("absurd, 10 ms", "absurd", "as above, polls every 10 ms", {"poll_interval": 0.01},
        period=0.01, share=0.4, sends=False),
)  # fmt: skip


class Running:
    """A contestant with its database, ready to be measured."""

    def __init__(
        self, contestant: Contestant, open_peer: Callable[[str, str], Peer], patience: float = PATIENCE
    ) -> None:
        self.contestant = contestant
        self.name = contestant.name
        self._open = open_peer
        self._patience = patience
        self._runs = itertools.count()
        self._started: list[Peer] = []
        self._sender: Peer | None = None
        self._recipient: Peer | None = None

    def install(self) -> None:
        """Install its schema."""
        with self._open("install", "install") as peer:
            peer.ask(None)

    def sender(self) -> Peer:
        """Return a process that sends, for its rate."""
        return self._start("sender", "nobody")

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Run its recipient and its sender meanwhile; the first message, which warms both, is behind them."""
        run = f"run-{next(self._runs)}"
        with self._start("recipient", run) as self._recipient, self._start("sender", run) as self._sender:
            self._recipient.ask("ready", self._patience)
            self.message()
            yield

    def end(self) -> None:
        """End its processes at once, those that hang too."""
        for peer in self._started:
            peer.kill()

    def message(self) -> tuple[float, float]:
        """Send one message; return the seconds until the recipient had it, and until its result was committed."""
        assert self._recipient is not None
        assert self._sender is not None
        self._recipient.say("taken")
        began = self._sender.ask({"one": BODY}, self._patience)
        had, committed = self._recipient.hear(self._patience)
        return (had - began) / 1e9, (committed - began) / 1e9

    def _start(self, role: str, run: str) -> Peer:
        self._started.append(self._open(role, run))
        return self._started[-1]


def installed(bench: Bench, stack: ExitStack, contestants: Sequence[Contestant]) -> list[Running]:
    """Give each a database with its schema; who cannot be installed is told and left out."""
    found = []
    for contestant in contestants:
        try:
            python = environment(contestant.module)
            running = Running(
                contestant, _opener(bench, stack.enter_context(bench.place.database()), python, contestant)
            )
            running.install()
        except (NotInstalledError, PeerError) as error:
            absent = isinstance(error, NotInstalledError)
            bench.failed("P3", f"{contestant.name}: messages side by side", str(error), absent=absent)
        else:
            found.append(running)
    return found


def _opener(bench: Bench, url: str, python: Path, contestant: Contestant) -> Callable[[str, str], Peer]:
    known = conninfo_to_dict(url)
    database = {name: str(known[name]) for name in ("host", "port", "user", "dbname") if name in known}
    # absurd's tool looks for psql
    path = f"{bench.place.binary('psql').parent}{os.pathsep}{os.environ.get('PATH', '')}"

    def open_peer(role: str, run: str) -> Peer:
        told = (role, json.dumps(database), json.dumps(dict(contestant.settings)), run)
        return Peer(python, f"bench.peers.durable.{contestant.module}", *told, variables={"PATH": path})

    return open_peer
