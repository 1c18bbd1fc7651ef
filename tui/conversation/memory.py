"""What conversations leave behind that are no longer kept, and when it is thrown away.

Their widgets hold each other, so that only the garbage collector frees them: 0.7 MiB each, of 200 messages. It looks
at all that lives then, which keeps keys waiting (0.3 s when busy). So it looks when nothing happens; and in a tour
without a pause now and then, for memory that has grown is not given back: 100 agents seen took 131 MiB, and take 99.
"""

from __future__ import annotations

import gc
from typing import Final

QUIET: Final = 1.0
"""Seconds without a key or streamed text after which nothing happens."""
_MOST: Final = 12
"""Conversations that are left behind before it is looked in any case."""


class DroppedConversations:
    """Counts them; of the app's loop."""

    def __init__(self) -> None:
        self._count = 0

    def add(self) -> None:
        """Note that a conversation was left behind."""
        self._count += 1

    def is_due(self, idle: float) -> bool:
        """Tell whether they are thrown away now; ``idle``: seconds since something happened."""
        return self._count >= _MOST or (self._count > 0 and idle >= QUIET)

    def collect(self) -> None:
        """Free their memory."""
        self._count = 0
        gc.collect()
