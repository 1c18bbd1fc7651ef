"""Frees the memory of conversations that are no longer kept, at moments when nobody waits.

Their widgets refer to each other, so that only the garbage collector frees them: 0.7 MiB for 200 messages. A collection
looks at every object and delays keys (0.3 s on a busy machine), so it runs when nothing happens. A tour without a pause
gets one now and then, because Python does not return grown memory: 100 agents took 131 MiB, and take 99.
"""

from __future__ import annotations

import gc
from typing import Final

QUIET: Final = 1.0
"""Seconds without a key or streamed text after which a collection disturbs nobody."""
_MOST: Final = 12
"""Dropped conversations after which a collection runs in any case."""


class DroppedConversations:
    """Counts dropped conversations; used in the app's loop only."""

    def __init__(self) -> None:
        self._count = 0

    def add(self) -> None:
        """Note that a conversation was dropped."""
        self._count += 1

    def is_due(self, idle: float) -> bool:
        """Return whether to collect now; ``idle``: seconds since something happened."""
        return self._count >= _MOST or (self._count > 0 and idle >= QUIET)

    def collect(self) -> None:
        """Free their memory."""
        self._count = 0
        gc.collect()
