"""The lock of a workspace's folder goes with the folder: who waited for it does not hold it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from agentmesh.domain.errors import TreeBusy
from agentmesh.git import lock
from agentmesh.git.lock import LOCK, locked

Waiting = Callable[..., "Future[None]"]


@pytest.fixture
def waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Waiting:
    """Lock the folder on another thread, and return once it waits for who has the lock."""
    waits = threading.Event()

    def sleep(seconds: float) -> None:
        waits.set()
        time.sleep(seconds)

    def hold(**how: float | bool) -> None:
        with locked(tmp_path / "own", **how):  # type: ignore[arg-type]
            pass

    def begin(**how: float | bool) -> Future[None]:
        threads = ThreadPoolExecutor(1)
        done = threads.submit(hold, **how)
        threads.shutdown(wait=False)
        assert waits.wait(20)
        return done

    monkeypatch.setattr(lock, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))
    return begin


def test_who_waits_while_the_folder_is_removed_finds_it_gone(tmp_path: Path, waiting: Waiting):
    with locked(tmp_path / "own"):
        waiter = waiting(make=False)
        (tmp_path / "own" / LOCK).unlink()
        (tmp_path / "own").rmdir()
    assert isinstance(waiter.exception(20), FileNotFoundError)
    assert not (tmp_path / "own").exists()


def test_who_waits_while_the_folder_is_made_anew_waits_for_the_new_lock(tmp_path: Path, waiting: Waiting):
    first = locked(tmp_path / "own")
    first.__enter__()
    waiter = waiting(patience=0.5)
    (tmp_path / "own" / LOCK).unlink()
    with locked(tmp_path / "own"):
        first.__exit__(None, None, None)
        assert isinstance(waiter.exception(20), TreeBusy)
    with locked(tmp_path / "own", patience=0.0):
        pass
