"""A peer that fails costs its own values only."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bench import report
from bench.durable import in_turn, one_by_one
from bench.harness import Bench
from bench.peers.contestants import Contestant, Running
from bench.peers.process import Peer

pytestmark = pytest.mark.timeout(180)


class Peers:
    """Makes peers, and knows their processes."""

    def __init__(self) -> None:
        self.pids: dict[str, list[int]] = {}

    def make(self, name: str, how: str = "well", after: int = 0, patience: float = 60.0) -> Running:
        """Make one whose recipient takes so many messages, then does ``how``."""

        def started(role: str, _: str) -> Peer:
            peer = Peer(Path(sys.executable), "tests.bench.durable_peer", how, role, str(after))
            self.pids.setdefault(name, []).append(peer.pid)
            return peer

        return Running(Contestant(name, "durable_peer", "none"), started, patience)

    def hanging(self, after: int) -> Running:
        """Make one that hangs, which is noticed soon."""
        return self.make("hanging", "hangs", after, patience=3.0)


@pytest.fixture
def peers() -> Peers:
    return Peers()


@pytest.fixture
def bench() -> Bench:
    return Bench(cast("Any", SimpleNamespace(server_pid=os.getpid())), quick=True, any_load=True)


def _second() -> float:
    return 1.0


def _measure(bench: Bench, running: list[Running]) -> None:
    in_turn(bench, _second, _second, running)


def _measure_one_by_one(bench: Bench, running: list[Running]) -> None:
    one_by_one(bench, _second, running)


def _ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("after", [0, 3])
@pytest.mark.parametrize("measure", [_measure, _measure_one_by_one])
def test_who_hangs_or_dies_costs_its_own_values_only(
    measure: Callable[[Bench, list[Running]], None], after: int, bench: Bench, peers: Peers
) -> None:
    measure(bench, [peers.hanging(after), peers.make("dying", "dies", after), peers.make("DBOS")])
    *failed, figure = bench.figures
    told = {each.title.partition(":")[0]: each.failed for each in failed}
    assert told == {
        "hanging": "durable_peer did not answer within 3 s",
        "dying": "durable_peer has ended with 9: no memory left",
    }
    assert {value.split()[0].rstrip(":") for value in figure.units} <= {"agentmesh", "floor", "DBOS"}
    assert {figure.verdict(target) for target in figure.targets} <= {"pass"}
    assert len(figure.column("DBOS p50")) == 1
    assert all(_ended(pid) for pids in peers.pids.values() for pid in pids)


def test_against_dbos_it_is_judged_although_another_fails(bench: Bench, peers: Peers) -> None:
    _measure(bench, [peers.make("dying", "dies", after=3), peers.make("DBOS")])
    _, figure = bench.figures
    assert {target.value: figure.verdict(target) for target in figure.targets} == {
        "agentmesh / DBOS": "pass",
        "agentmesh / DBOS, p99": "pass",
    }


def test_what_its_failure_leaves_unjudged_is_said_in_the_report(bench: Bench, peers: Peers, tmp_path: Path) -> None:
    _measure(bench, [peers.make("DBOS", "dies", after=3), peers.make("pgqueuer")])
    assert report.write(tmp_path, {}, bench, quick=True, any_load=True)
    text = (tmp_path / "RESULTS.md").read_text()
    row = next(line for line in text.splitlines() if "**not measured**" in line)
    assert "agentmesh / DBOS" in row
    assert "durable_peer has ended with 9: no memory left" in row
    assert "Not measured: DBOS (durable_peer has ended with 9: no memory left)." in text
    assert "| pgqueuer p50 |" in text
    assert "| DBOS p50 |" not in text
    assert "pgqueuer p50" in json.loads((tmp_path / "results.json").read_text())["figures"][-1]["values"]
    assert "≤ 0.6" not in (tmp_path / "pictures" / "p3-peers.svg").read_text()
