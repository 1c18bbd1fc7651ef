"""Fills two gaps in how Textual reads a terminal: Alt+Enter, and control characters inside a paste."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum

from textual import _ansi_sequences
from textual._xterm_parser import BRACKETED_PASTE_END, BRACKETED_PASTE_START, XTermParser
from textual.message import Message

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""All but tab and the ends of lines."""


class _Missing(Enum):
    ALT_ENTER = "alt+enter"


def teach_alt_enter() -> None:
    """Let Alt+Enter be a key of its own where a terminal sends it as Esc and Enter (tmux, xterm, macOS).

    Textual 8.2 reads it as Enter, which would send a half-written text.
    """
    _ansi_sequences.ANSI_SEQUENCES_KEYS.setdefault("\x1b\r", (_Missing.ALT_ENTER,))  # type: ignore[attr-defined]


class PasteParser(XTermParser):
    """Takes control characters out of pastes before they are parsed.

    Textual 8.2 looks for keys at an ESC inside a paste: the text after it vanishes or acts as keys, even Enter.
    """

    def __init__(self, debug: bool = False) -> None:
        self._pastes = Pastes()
        super().__init__(debug)

    def feed(self, data: str) -> Iterable[Message]:
        """Parse what the terminal sent; empty at its end."""
        cleaned = self._pastes.cleaned(data)
        return super().feed(cleaned) if cleaned or not data else ()


class Pastes:
    """Follows a terminal's input piece by piece, and knows which parts are pasted."""

    def __init__(self) -> None:
        self._is_inside = False
        self._held = ""
        """The beginning of a possible mark at the end of a paste."""
        self._before = ""
        """The last characters outside: a mark may come in two pieces."""

    def cleaned(self, data: str) -> str:
        """Return the input without the control characters inside of pastes; it may hold back a few characters."""
        found: list[str] = []
        data, self._held = self._held + data, ""
        while data:
            data = self._inside(data, found) if self._is_inside else self._outside(data, found)
        return "".join(found)

    def _outside(self, data: str, found: list[str]) -> str:
        """Take what is not pasted, as it is; return the rest."""
        known = self._before + data
        at = known.find(BRACKETED_PASTE_START)
        self._is_inside = at >= 0
        end = at + len(BRACKETED_PASTE_START) - len(self._before) if at >= 0 else len(data)
        found.append(data[:end])
        self._before = "" if at >= 0 else known[-len(BRACKETED_PASTE_START) + 1 :]
        return data[end:]

    def _inside(self, data: str, found: list[str]) -> str:
        """Take what is pasted, cleaned; return the rest."""
        end = data.find(BRACKETED_PASTE_END)
        if end < 0:
            self._held = _beginning_of_end(data)
            found.append(_CONTROL.sub("", data.removesuffix(self._held)))
            return ""
        # What holds the mark of the end itself, from a terminal that lets it pass, would go on as keys: the last one
        # that came before another paste is meant.
        following = data.find(BRACKETED_PASTE_START, end)
        end = data.rfind(BRACKETED_PASTE_END, 0, following if following >= 0 else len(data))
        self._is_inside = False
        found.append(_CONTROL.sub("", data[:end]) + BRACKETED_PASTE_END)
        return data[end + len(BRACKETED_PASTE_END) :]


def _beginning_of_end(data: str) -> str:
    """Return the end of a text with which the mark of a paste's end may begin."""
    lengths = range(len(BRACKETED_PASTE_END) - 1, 0, -1)
    return next((data[-n:] for n in lengths if data.endswith(BRACKETED_PASTE_END[:n])), "")
