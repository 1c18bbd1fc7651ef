"""Abilities of model servers, as their answers have shown; a configuration that says otherwise comes first.

:meth:`Capabilities.heed` takes in findings of other processes; ``Capabilities.on_news`` passes on findings of this
process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from agentmesh.domain.rows import Capability
from agentmesh.llm.provider import Provider


class Capabilities:
    """The known abilities of the servers of a process's models; thread-safe."""

    def __init__(self) -> None:
        self.on_news: Callable[[Capability], None] = lambda _found: None
        """Called with new abilities of a server, in the thread that found them out."""
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str, str], Capability] = {}

    def of(self, provider: Provider, model: str) -> Capability:
        """Return the known abilities; each is None if nothing is known."""
        key = (provider.name, provider.address, model)
        return self._known.get(key) or Capability(*key)

    def learn(self, provider: Provider, model: str, **found: Any) -> None:
        """Record abilities that a server has shown; None is no news."""
        with self._lock:
            known = self.of(provider, model)
            news = {name: each for name, each in found.items() if each is not None and getattr(known, name) != each}
            if not news:
                return
            self._known[known[:3]] = known._replace(**news)
        self.on_news(Capability(*known[:3], **news))

    def heed(self, found: Capability) -> bool:
        """Record findings of other processes about a server; return whether any of them was new."""
        with self._lock:
            key = found[:3]
            before = self._known.get(key, Capability(*key))
            self._known[key] = before._replace(**{n: each for n, each in found._asdict().items() if each is not None})
            return self._known[key] != before
