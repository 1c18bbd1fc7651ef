"""Vim's keys for the input: insert and normal mode, counts, the operators d, c and y with motions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from textual.widgets import TextArea

_WORD = re.compile(r"\w+|[^\w\s]+")
_OPERATORS = "dcy"
_KEYS: Mapping[str, str] = MappingProxyType({"backspace": "h", "space": "l", "delete": "x"})
"""Keys without a character of their own that mean a command."""
_AS_OPERATOR: Mapping[str, tuple[str, str]] = MappingProxyType({"x": ("d", "l"), "D": ("d", "$"), "C": ("c", "$")})
_MOST = 9999


class _Target(NamedTuple):
    """Where a motion leads."""

    at: int
    is_inclusive: bool = False
    """Whether an operator takes the character there too."""
    is_linewise: bool = False


class VimKeys:
    """Takes the keys of normal mode for a text area. In insert mode it takes Esc only."""

    def __init__(self, area: TextArea, walk: Callable[[str], None], changed: Callable[[], None]) -> None:
        """``walk`` goes to an older or newer input at the first or last line; ``changed`` hears of another mode."""
        self._area, self._walk, self._changed = area, walk, changed
        self.is_normal = False
        self._pending = ""
        """The typed beginning of a command: a count, an operator, ``g``."""
        self._register, self._is_linewise = "", False

    def take(self, key: str, character: str | None) -> bool:
        """Take a key; return whether it was Vim's."""
        if key == "escape":
            return self._escape()
        if not self.is_normal:
            return False
        letter = _KEYS.get(key) or (character if character and character.isprintable() else None)
        if letter is None:
            return False
        self._pending += letter
        self._act()
        return True

    def insert(self) -> None:
        """Go to insert mode."""
        self._pending = ""
        if self.is_normal:
            self.is_normal = False
            self._area.history.checkpoint()
            self._changed()

    def _escape(self) -> bool:
        if self.is_normal:
            was, self._pending = self._pending, ""
            return bool(was)
        self.is_normal = True
        row, column = self._area.cursor_location
        self._area.move_cursor((row, max(column - 1, 0)))
        self._changed()
        return True

    def _act(self) -> None:
        """Carry the pending command out once it is whole; forget it if it can become no command."""
        found = re.fullmatch(r"([1-9]\d*)?([dcy])?([1-9]\d*)?(g?.?)", self._pending, re.DOTALL)
        if found is None:
            self._pending = ""
            return
        operator, rest = found[2] or "", found[4]
        if rest in ("", "g"):
            return
        self._pending = ""
        count = min(int(found[1] or 1) * int(found[3] or 1), _MOST)
        if not operator and rest in _AS_OPERATOR:
            operator, rest = _AS_OPERATOR[rest]
        if operator:
            self._operate(operator, rest, count)
        elif rest in _COMMANDS:
            _COMMANDS[rest](self, count)
        elif rest in "jk":
            for _ in range(count):
                self._walk("newer" if rest == "j" else "older")
        elif target := self._target(rest, count):
            self._move(target.at)
        if self.is_normal:
            self._stay_on_characters()

    # Places, counted in characters from the beginning

    @property
    def _here(self) -> int:
        return self._index(self._area.cursor_location)

    def _move(self, at: int) -> None:
        self._area.move_cursor(self._location(at))

    def _index(self, location: tuple[int, int]) -> int:
        row, column = location
        return sum(len(self._area.document.get_line(n)) + 1 for n in range(row)) + column

    def _location(self, at: int) -> tuple[int, int]:
        before = self._area.text[:at]
        return before.count("\n"), at - before.rfind("\n") - 1

    def _stay_on_characters(self) -> None:
        """Keep the cursor off the end of a line that has characters, as Vim does."""
        row, column = self._area.cursor_location
        if column and column == len(self._area.document.get_line(row)):
            self._area.move_cursor((row, column - 1))

    def _line(self, at: int) -> tuple[int, int]:
        """Return the beginning and the end of the line of a place."""
        text = self._area.text
        end = text.find("\n", at)
        return text.rfind("\n", 0, at) + 1, len(text) if end < 0 else end

    def _target(self, motion: str, count: int) -> _Target | None:
        text, here = self._area.text, self._here
        begin, end = self._line(here)
        match motion:
            case "h":
                return _Target(max(here - count, begin))
            case "l":
                return _Target(min(here + count, end))
            case "0":
                return _Target(begin)
            case "^":
                return _Target(begin + len(text[begin:end]) - len(text[begin:end].lstrip()))
            case "$":
                return _Target(end)
            case "gg":
                return _Target(0, is_linewise=True)
            case "G":
                return _Target(self._line(len(text))[0], is_linewise=True)
        return _word_target(text, here, motion, count)

    # What changes the text

    def _operate(self, operator: str, motion: str, count: int) -> None:
        here = self._here
        if motion == operator or motion in "jk":
            self._operate_on_lines(operator, *self._lines(motion, count))
            return
        if operator == "c" and motion == "w" and self._area.text[here : here + 1].strip():
            motion = "e"  # as Vim does: the blank after the word stays
        target = self._target(motion, count)
        if target is None:
            return
        start, end = sorted((here, target.at))
        if target.is_linewise:
            self._operate_on_lines(operator, self._line(start)[0], self._line(end)[1])
            return
        if motion == "w":
            end = min(end, max(self._line(here)[1], here))  # a word at the end of a line leaves the line's end alone
        end += target.is_inclusive
        self._register, self._is_linewise = self._area.text[start:end], False
        if operator != "y":
            self._delete(start, end)
        self._move(start)
        if operator == "c":
            self.insert()

    def _lines(self, motion: str, count: int) -> tuple[int, int]:
        """Return the beginning and the end of the lines that ``dd``, ``3dd``, ``dj`` or ``dk`` mean."""
        row, last = self._area.cursor_location[0], self._area.document.line_count - 1
        first = max(row - count, 0) if motion == "k" else row
        until = row if motion == "k" else min(row + count - (motion != "j"), last)
        return self._index((first, 0)), self._line(self._index((until, 0)))[1]

    def _operate_on_lines(self, operator: str, begin: int, end: int) -> None:
        text = self._area.text
        self._register, self._is_linewise = text[begin:end], True
        if operator == "c":
            self._delete(begin, end)
            self._move(begin)
            self.insert()
        elif operator == "d":
            is_last = end == len(text)
            self._delete(begin - (is_last and begin > 0), end + (not is_last))
            self._move(self._line(min(begin, len(self._area.text)))[0])

    def _delete(self, start: int, end: int) -> None:
        self._area.history.checkpoint()
        self._area.delete(self._location(start), self._location(end), maintain_selection_offset=False)

    def _put(self, count: int, *, before: bool) -> None:
        if not self._register:
            return
        begin, end = self._line(self._here)
        self._area.history.checkpoint()
        if self._is_linewise:
            lines = "\n".join([self._register] * count)
            self._insert(f"{lines}\n" if before else f"\n{lines}", begin if before else end)
            self._move(begin if before else end + 1)
        else:
            at = self._here if before else min(self._here + 1, end)
            self._insert(self._register * count, at)
            self._move(at + len(self._register) * count - 1)

    def _insert(self, text: str, at: int) -> None:
        self._area.insert(text, self._location(at), maintain_selection_offset=False)

    def put_after(self, count: int) -> None:
        """Do ``p``."""
        self._put(count, before=False)

    def put_before(self, count: int) -> None:
        """Do ``P``."""
        self._put(count, before=True)

    def undo(self, count: int) -> None:
        """Do ``u``."""
        for _ in range(count):
            self._area.undo()

    def append(self, _count: int) -> None:
        """Do ``a``."""
        self._move(min(self._here + 1, self._line(self._here)[1]))
        self.insert()

    def insert_here(self, _count: int) -> None:
        """Do ``i``."""
        self.insert()

    def insert_first(self, _count: int) -> None:
        """Do ``I``."""
        if target := self._target("^", 1):
            self._move(target.at)
        self.insert()

    def append_last(self, _count: int) -> None:
        """Do ``A``."""
        self._move(self._line(self._here)[1])
        self.insert()

    def open_below(self, _count: int) -> None:
        """Do ``o``."""
        end = self._line(self._here)[1]
        self.insert()
        self._insert("\n", end)
        self._move(end + 1)

    def open_above(self, _count: int) -> None:
        """Do ``O``."""
        begin = self._line(self._here)[0]
        self.insert()
        self._insert("\n", begin)
        self._move(begin)


_COMMANDS: Mapping[str, Callable[[VimKeys, int], None]] = MappingProxyType(
    {
        "i": VimKeys.insert_here,
        "a": VimKeys.append,
        "I": VimKeys.insert_first,
        "A": VimKeys.append_last,
        "o": VimKeys.open_below,
        "O": VimKeys.open_above,
        "p": VimKeys.put_after,
        "P": VimKeys.put_before,
        "u": VimKeys.undo,
    }
)


def _word_target(text: str, here: int, motion: str, count: int) -> _Target | None:
    words = [(one.start(), one.end() - 1) for one in _WORD.finditer(text)]
    match motion:
        case "w":
            return _Target(_nth([begin for begin, _ in words if begin > here], count, len(text)))
        case "b":
            return _Target(_nth([begin for begin, _ in words if begin < here][::-1], count, 0))
        case "e":
            ends = [end for _, end in words if end > here]
            return _Target(_nth(ends, count, max(len(text) - 1, 0)), is_inclusive=True)
    return None


def _nth(places: list[int], count: int, otherwise: int) -> int:
    return places[count - 1] if len(places) >= count else otherwise
