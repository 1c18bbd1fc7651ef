"""Frees the memory of conversations that are no longer kept, at moments when nobody waits.

Their widgets refer to each other, so that only the garbage collector frees them: 0.7 MiB for 200 messages. A collection
looks at every object and delays keys (0.3 s on a busy machine), so it runs when nothing happens. A tour without a pause
gets one now and then, because Python does not return grown memory: 100 agents took 131 MiB, and take 99.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from textual._styles_cache import StylesCache

if TYPE_CHECKING:
    from textual.app import App

QUIET: Final = 1.0
"""Seconds without a key or streamed text after which a collection disturbs nobody."""
_MOST: Final = 12
"""Dropped conversations after which a collection runs in any case."""
_COLLECTIONS: Final = (2_000, 10, 30)
"""Thresholds of the three garbage collections. A full one takes 60 ms and delays keys. With Python's own thresholds it
ran every five seconds while an answer streamed."""


def collect_seldom() -> None:
    """Let Python collect garbage again, but seldom, and without a look at what was imported so far: all of it stays."""
    gc.freeze()
    gc.set_threshold(*_COLLECTIONS)
    gc.enable()


def free_drawn_lines() -> None:
    """Let Textual free the drawn lines of widgets that were removed.

    Textual 8.2 caches a method with the object as part of the key, and so keeps the lines of the last 1,024 widgets:
    70 MiB after half an hour of streamed answers. The method is written for a class, which is the key then.
    """
    cached = vars(StylesCache).get("get_inner_outer")
    if cached is not None and not isinstance(cached, classmethod):
        StylesCache.get_inner_outer = classmethod(cached)  # type: ignore[assignment]


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


class Tidying:
    """Frees dropped conversations of one app when nobody waits; made when it is mounted."""

    def __init__(self, app: App[Any], used_at: Callable[[], float]) -> None:
        """``used_at`` says when something happened last; ``time.monotonic()``."""
        self._app, self._used_at = app, used_at
        self._garbage = DroppedConversations()
        self._timer = app.set_interval(QUIET, self._tidy, pause=True)

    def dropped(self) -> None:
        """Note that a conversation was dropped."""
        self._garbage.add()
        self._timer.resume()
        self._app.call_after_refresh(self._tidy)

    def _tidy(self) -> None:
        if self._garbage.is_due(time.monotonic() - self._used_at()):
            self._garbage.collect()
            self._timer.pause()
