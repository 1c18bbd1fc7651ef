"""What a feed or actions posted, waited for without sleeping; and the program's way to a test's database."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from agentmesh import app
from agentmesh.config.schema import Provider
from agentmesh.config.settings import Settings
from agentmesh.store.tx import Database

Kind = TypeVar("Kind")


class Posted:
    """Stands where the app would: takes messages from threads."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self._queue: SimpleQueue[Any] = SimpleQueue()

    def __call__(self, message: Any) -> bool:
        self._queue.put(message)
        return True

    def next(self, kind: type[Kind], fits: Callable[[Kind], bool] = lambda _: True, timeout: float = 20) -> Kind:
        """Return the next message of a kind that fits; all others before it are kept in ``seen``."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                message = self._queue.get(timeout=max(deadline - time.monotonic(), 0.001))
            except Empty:
                raise AssertionError(f"no {kind.__name__} that fits; there were {self.seen[-10:]}") from None
            self.seen.append(message)
            if isinstance(message, kind) and fits(message):
                return message

    def so_far(self, kind: type[Kind]) -> list[Kind]:
        """Return all messages of a kind until now."""
        while not self._queue.empty():
            self.seen.append(self._queue.get())
        return [message for message in self.seen if isinstance(message, kind)]


def mesh_of(database: Database, folder: Path, environ: dict[str, str] | None = None) -> app.Mesh:
    """Return the program's mesh over this database."""
    openai = Provider(base_url="https://api.openai.com/v1", api_key_env="OPENAI_API_KEY")
    settings = Settings(folder, {"openai": openai}, frozenset({"openai"}), database_url=database.url)
    return app.Mesh(settings, database, None, environ or {})
