"""The keys that scroll a part of a dialog, whose focus is elsewhere."""

from __future__ import annotations

from textual.containers import VerticalScroll

_SCROLLS = {
    "pageup": VerticalScroll.scroll_page_up,
    "pagedown": VerticalScroll.scroll_page_down,
    "ctrl+home": VerticalScroll.scroll_home,
    "ctrl+end": VerticalScroll.scroll_end,
}


def scroll_by(key: str, part: VerticalScroll) -> bool:
    """Scroll if this is a key for it; return whether it is."""
    if key not in _SCROLLS:
        return False
    _SCROLLS[key](part, animate=False)
    return True
