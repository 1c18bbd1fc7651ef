"""Issue 17, point 10: an error that points at the worker's log names the file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_ASK = "from agentmesh.engine.log_place import log_place; print(log_place())"


def _asked(code: str, stderr: int) -> str:
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=stderr, text=True, check=True)
    return done.stdout


@pytest.mark.skipif(sys.platform not in ("linux", "darwin"), reason="other systems do not name an open file")
def test_17_10_a_worker_whose_stderr_is_a_file_names_it(tmp_path: Path):
    log = tmp_path / "worker 1.log"
    with log.open("wb") as stderr:
        assert _asked(_ASK, stderr.fileno()) == f"{log} has more.\n"


def test_17_10_a_file_that_is_gone_is_not_named(tmp_path: Path):
    log = tmp_path / "worker.log"
    with log.open("wb") as stderr:
        log.unlink()
        assert "worker.log" not in _asked(_ASK, stderr.fileno())


def test_17_10_a_log_file_goes_before_stderr(tmp_path: Path):
    log = tmp_path / "records.jsonl"
    code = f"import logging; logging.getLogger('agentmesh').handlers = [logging.FileHandler({str(log)!r})]; {_ASK}"
    with (tmp_path / "stderr").open("wb") as stderr:
        assert _asked(code, stderr.fileno()) == f"{log} has more.\n"


def test_17_10_where_there_is_no_file_the_process_is_named():
    said = _asked(_ASK, subprocess.DEVNULL)
    assert said.startswith("The worker, process ")
    assert said.endswith(" prints more on stderr.\n")
