"""Records as JSON lines, and the file that they go to."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agentmesh.export.secrets import Redactor
from agentmesh.telemetry import record_ids
from agentmesh.telemetry.lines import BoundedFile, JsonLines


@pytest.fixture
def log(tmp_path):
    """A logger of our own, writing lines to a small file."""
    with logging_to(BoundedFile(tmp_path / "log", most_bytes=2_000), JsonLines(Redactor())) as logger:
        yield logger


@contextmanager
def logging_to(handler: logging.Handler, formatter: logging.Formatter):
    """A logger that nobody else has, for a while."""
    logger = logging.getLogger("tests.lines")
    handler.setFormatter(formatter)
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.DEBUG)
    try:
        yield logger
    finally:
        logger.handlers = []
        handler.close()


def read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_a_record_is_one_line_whatever_is_in_it(log, tmp_path):
    log.warning("two\nlines \x1b[31m and “quotes” %s", "key sk-" + "a1" * 20)
    (record,) = read(tmp_path / "log")
    assert record["event"] == "log"
    assert record["level"] == "warning"
    assert record["pid"] == os.getpid()
    assert "\x1b" not in record["message"]
    assert "“quotes” key ***" in record["message"]


def test_ids_and_figures_stand_beside_the_words(log, tmp_path):
    with record_ids.records_about({"agent": "a", "parent": None}):
        log.info("called", extra={record_ids.EVENT: "tool.call", record_ids.FIGURES: {"ms": 3, "error": None}})
    log.info("later")
    first, second = read(tmp_path / "log")
    assert (first["event"], first["agent"], first["ms"]) == ("tool.call", "a", 3)
    assert "parent" not in first
    assert "error" not in first
    assert "agent" not in second


def test_an_error_is_told_without_a_traceback(log, tmp_path):
    try:
        int("what was wrong")
    except ValueError:
        log.exception("it failed")
    (record,) = read(tmp_path / "log")
    assert record["error"] == "ValueError(\"invalid literal for int() with base 10: 'what was wrong'\")"
    assert record["at"].startswith("test_lines.py:")
    assert "Traceback" not in json.dumps(record)


def test_a_full_file_becomes_the_older_one_and_the_one_before_is_gone(log, tmp_path):
    for number in range(200):
        log.info("number %d", number)
    assert {file.name for file in tmp_path.iterdir()} == {"log", "log.1"}
    numbers = [int(record["message"].split()[1]) for name in ("log.1", "log") for record in read(tmp_path / name)]
    assert numbers == list(range(numbers[0], 200)), "no line is lost at the turn"
    assert all((tmp_path / name).stat().st_size < 2_400 for name in ("log", "log.1"))


def test_a_file_that_was_moved_away_is_begun_anew(log, tmp_path):
    log.info("before")
    (tmp_path / "log").rename(tmp_path / "kept")
    log.info("after")
    assert [record["message"] for record in read(tmp_path / "log")] == ["after"]
    assert [record["message"] for record in read(tmp_path / "kept")] == ["before"]


def _write(file: Path, name: str) -> None:
    with logging_to(BoundedFile(file, most_bytes=20_000), JsonLines()) as logger:
        for number in range(300):
            logger.info("%s %d", name, number)


def test_processes_that_share_a_file_tear_no_line_and_keep_its_bound(tmp_path):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(tmp_path / "log", f"w{number}")) for number in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    found = [record for name in ("log.1", "log") for record in read(tmp_path / name)]
    for who in ("w0", "w1", "w2"):
        numbers = [int(number) for name, number in (record["message"].split() for record in found) if name == who]
        assert numbers == list(range(300 - len(numbers), 300)), "no line is lost at a turn"
    assert (tmp_path / "log").stat().st_size < 21_000
    assert (tmp_path / "log.1").stat().st_size < 21_000


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux's")
def test_a_disk_that_is_full_fails_nobody(capsys):
    with logging_to(BoundedFile(Path("/dev/full")), JsonLines()) as logger:
        logger.info("nowhere")
    assert capsys.readouterr().err == ""
