"""What a run of the benchmark says of peers that are not here, and when it fails."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from bench import report, start_peers
from bench.harness import Bench, Figure, Target
from bench.peers.contestants import Contestant, installed


def _bench() -> Bench:
    return Bench(cast("Any", SimpleNamespace(server_pid=os.getpid())), any_load=True)


def _failed(bench: Bench, folder: Path) -> bool:
    return report.write(folder, {}, bench, quick=False, any_load=True)


def _measured(bench: Bench, value: float) -> None:
    bench.measure(lambda: {"value": value}, Figure("P0", "a figure", {"value": "x"}, [Target("value", "<=", 1.0)]))


def test_a_peer_without_an_environment_is_named_and_fails_nothing(tmp_path) -> None:
    bench = _bench()
    _measured(bench, 0.5)
    cast("Any", bench.place).database = nullcontext
    with ExitStack() as stack:
        assert installed(bench, stack, [Contestant("Other", "no_such_peer", "none")]) == []
    assert not _failed(bench, tmp_path)
    assert "**not measured**: no_such_peer has no file" in (tmp_path / "RESULTS.md").read_text()
    told = json.loads((tmp_path / "results.json").read_text())["figures"][1]
    assert told["absent"]
    assert told["failed"].startswith("no_such_peer has no file")


def test_without_newer_pythons_programs_for_the_terminal_are_absent(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(start_peers, "find", lambda: {"3.11": Path("python3.11")})
    bench = _bench()
    start_peers.run(bench, cast("Any", None))
    assert not _failed(bench, tmp_path)
    assert "mistral-vibe needs Python 3.12 or newer, and none was found" in (tmp_path / "RESULTS.md").read_text()


def test_a_missed_target_fails_the_run_beside_an_absent_peer(tmp_path) -> None:
    bench = _bench()
    bench.failed("P3", "a peer", "it cannot be installed", absent=True)
    _measured(bench, 2.0)
    assert _failed(bench, tmp_path)


def test_a_group_that_fails_fails_the_run(tmp_path) -> None:
    bench = _bench()
    _measured(bench, 0.5)
    bench.failed("waking", "the group waking", "OSError: no more")
    assert _failed(bench, tmp_path)
