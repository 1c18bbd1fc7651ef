"""The lock of a worker that is starting: taken by one, looked at by all."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from agentmesh.app import starting


def test_it_is_starting_from_the_lock_to_its_release(tmp_path: Path):
    file = tmp_path / "starting"
    assert not starting.is_starting(file), "there is no file"
    lock = starting.take(file, "demo here")
    assert isinstance(lock, starting.Held)
    assert starting.is_starting(file)
    assert starting.take(file, "demo there") == starting.Busy("demo here")
    os.close(lock.descriptor)
    assert not starting.is_starting(file)


def test_one_that_starts_for_too_long_is_not_waited_for(tmp_path: Path):
    file = tmp_path / "starting"
    lock = starting.take(file, "demo here")
    assert isinstance(lock, starting.Held)
    os.utime(file, (0, 0))
    assert not starting.is_starting(file)
    assert starting.take(file, "demo there") is None
    os.close(lock.descriptor)


def test_a_look_is_not_taken_for_a_worker_that_starts(tmp_path: Path, monkeypatch):
    file = tmp_path / "starting"
    file.write_text("demo here")
    looking = os.open(file, os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    real, tries = fcntl.flock, []

    def flock(descriptor: int, kind: int) -> None:
        tries.append(kind)
        if len(tries) == 4:
            real(looking, fcntl.LOCK_UN)
        real(descriptor, kind)

    monkeypatch.setattr(fcntl, "flock", flock)
    lock = starting.take(file, "demo here")
    assert isinstance(lock, starting.Held)
    os.close(looking)
    os.close(lock.descriptor)
