"""Find the commands of a shell line without a grammar: a second reading, made by bash's own rules.

The judge accepts a line only if this scanner and tree-sitter's grammar see the same commands with the same words. The
scanner knows the plain part of bash and gives up on everything else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

Span = tuple[int, int]
_REDIRECTS = ("&>>", "<<<", "<<-", ">>", "<<", "<>", ">|", ">&", "<&", "&>", "<", ">")
_BEFORE_COMMAND = frozenset({"if", "then", "elif", "else", "while", "until", "do", "!", "{"})
_AFTER_COMMAND = frozenset({"fi", "done", "}", "for"})
_UNSUPPORTED = frozenset({"case", "esac", "select", "function", "coproc", "in", "]]"})
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=", re.ASCII)
_SUBSCRIPT = re.compile(r"[A-Za-z_]\w*\[", re.ASCII)
_ARITHMETIC = re.compile(r"\$?\(\((?:[^()'\"`\\\[\n{}]|\$\{#?\w+\}|\([^()'\"`\\\[\n{}]*\))*\)\)")
_EXPANSION = re.compile(r"\$\{[^{}()'\"`\\$\n]*\}")
_DELIMITER = re.compile(r"[ \t]*(['\"]?)(\w+)\1(?=[ \t\n;&|>]|$)", re.ASCII)
_ACTIVE_IN_DOCUMENT = re.compile(r"[`\\]|\$[({\[]")
_WORD_END = frozenset(" \t\n;&|()<>")


class UnclearError(Exception):
    """The line leaves the part of bash that the scanner knows."""


@dataclass(slots=True)
class Found:
    """The scanner's findings, as offsets in the line's bytes."""

    commands: set[int] = field(default_factory=set)
    """Where the names of commands begin."""
    words: set[Span] = field(default_factory=set)
    """Names and arguments of commands, without the arguments of ``[``."""


def scan(line: bytes) -> Found:
    """Return the commands and words of a line; raise UnclearError."""
    scanner = _Scanner(line.decode("latin-1"))
    scanner.commands_until("")
    if scanner.document:
        raise UnclearError
    return scanner.found


class _Scanner:
    """Walks over one line."""

    def __init__(self, line: str) -> None:
        self._line = line
        self._at = 0
        self.found = Found()
        self.document: tuple[str, bool, bool] | None = None
        """A here-document that begins on the next line: its delimiter, whether tabs are stripped, whether quoted."""

    def _peek(self, ahead: int = 0) -> str:
        return self._line[self._at + ahead : self._at + ahead + 1]

    def commands_until(self, end: str) -> None:
        """Read commands until the text ends, or until the character that closes a substitution."""
        first, target, quiet = True, False, False
        while True:
            char = self._peek()
            if char == end or not char:
                self._close(char == end and not target)
                return
            if char in " \t":
                self._at += 1
            elif char == "#":
                self._comment(end)
            elif self._redirects():
                self._redirect(end)
                target = self._line[self._at - 1] in "<>&|"
            elif char in "\n;&|":
                self._separator(char, end, target)
                first, quiet = True, False
            elif char == "(":
                self._group(first)
                first, quiet = False, True
            else:
                start = self._at
                self._word(end)
                number = self._line[start : self._at].isdigit() and self._peek() in ("<", ">")
                if not target and not number:
                    first, quiet = self._note(start, first, quiet)
                target = False

    def _close(self, fits: bool) -> None:
        if not fits:
            raise UnclearError
        self._at += 1

    def _note(self, start: int, first: bool, quiet: bool) -> tuple[bool, bool]:
        """Record a word; return whether the next one may be a command's name, and whether to skip it."""
        word = self._line[start : self._at]
        if first and word in _UNSUPPORTED:
            raise UnclearError
        if first and word in _BEFORE_COMMAND:
            return True, False
        if first and word in _AFTER_COMMAND:
            return False, True
        if first and word == "[[":
            self._test()
            return False, True
        if first and _ASSIGNMENT.match(word) and self._peek() != "(":
            return True, False
        if first and (_SUBSCRIPT.match(word) or _ASSIGNMENT.match(word)):
            raise UnclearError
        if first:
            self.found.commands.add(start)
            quiet = word == "["
        if first or not quiet:
            self.found.words.add((start, self._at))
        return False, quiet

    def _comment(self, end: str) -> None:
        if end:
            raise UnclearError
        while self._peek() not in ("", "\n"):
            self._at += 1

    def _separator(self, char: str, end: str, target: bool) -> None:
        if target or self._line.startswith(";;", self._at):
            raise UnclearError
        double = self._line[self._at : self._at + 2]
        self._at += 2 if double in ("&&", "||", "|&") else 1
        if char == "\n" and self.document:
            if end:
                raise UnclearError
            self._document(*self.document)
            self.document = None

    def _document(self, delimiter: str, tabs: bool, quoted: bool) -> None:
        while self._at < len(self._line):
            stop = self._line.find("\n", self._at)
            stop = len(self._line) if stop < 0 else stop
            text = self._line[self._at : stop]
            if (text.lstrip("\t") if tabs else text) == delimiter:
                self._at = stop
                return
            if not quoted and _ACTIVE_IN_DOCUMENT.search(text):
                raise UnclearError
            self._at = stop + 1
        raise UnclearError

    def _group(self, first: bool) -> None:
        if not first:
            raise UnclearError
        if self._peek(1) == "(":
            self._match(_ARITHMETIC)
        else:
            self._at += 1
            self.commands_until(")")

    def _redirects(self) -> bool:
        """Whether a redirection, and not a process substitution, begins here."""
        if self._peek() in ("<", ">"):
            return self._peek(1) != "("
        return self._line.startswith("&>", self._at)

    def _redirect(self, end: str) -> None:
        operator = next(one for one in _REDIRECTS if self._line.startswith(one, self._at))
        self._at += len(operator)
        if operator in ("<<", "<<-"):
            found = _DELIMITER.match(self._line, self._at)
            if found is None or self.document or end:
                raise UnclearError
            self.document = (found[2], operator == "<<-", bool(found[1]))
            self._at = found.end()

    def _word(self, end: str) -> None:
        start = self._at
        while (char := self._peek()) and not (char == "`" and end == "`"):
            if char in "<>" and self._peek(1) == "(" and self._at == start:
                self._at += 2
                self.commands_until(")")
            elif char in _WORD_END:
                break
            elif char == "'":
                self._until("'")
            elif char == '"':
                self._string()
            elif char == "\\":
                self._escape(self._at == start)
            elif char == "$":
                self._dollar(quoted=False)
            elif char == "`":
                self._backtick(quoted=False)
            else:
                self._at += 1
        if self._at == start:
            raise UnclearError

    def _escape(self, first: bool) -> None:
        following = self._peek(1)
        if following in ("", "\n") or (first and following in " \t"):
            raise UnclearError
        self._at += 2

    def _until(self, quote: str) -> None:
        stop = self._line.find(quote, self._at + 1)
        if stop < 0:
            raise UnclearError
        self._at = stop + 1

    def _string(self) -> None:
        self._at += 1
        while (char := self._peek()) != '"':
            if not char:
                raise UnclearError
            if char == "\\":
                self._escape(first=False)
            elif char == "$":
                self._dollar(quoted=True)
            elif char == "`":
                self._backtick(quoted=True)
            else:
                self._at += 1
        self._at += 1

    def _dollar(self, *, quoted: bool) -> None:
        following = self._peek(1)
        if self._line.startswith("$((", self._at):
            self._match(_ARITHMETIC)
        elif following == "(":
            self._at += 2
            self.commands_until(")")
        elif following == "{":
            self._match(_EXPANSION)
        elif following == "[" or (following == '"' and not quoted):
            raise UnclearError
        elif following == "'" and not quoted:
            self._at += 2
            while (char := self._peek()) != "'":
                if not char:
                    raise UnclearError
                self._at += 2 if char == "\\" else 1
            self._at += 1
        elif following in ("$", "#", "?", "!", "@", "*", "-"):
            self._at += 2
        else:
            self._at += 1

    def _backtick(self, *, quoted: bool) -> None:
        stop = self._line.find("`", self._at + 1)
        inner = self._line[self._at + 1 : stop]
        if stop < 0 or "\\" in inner or (quoted and '"' in inner) or "$(" in inner:
            raise UnclearError
        self._at += 1
        self.commands_until("`")

    def _match(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self._line, self._at)
        if found is None:
            raise UnclearError
        self._at = found.end()

    def _test(self) -> None:
        """Skip the content of ``[[ ... ]]``, but record the commands in it."""
        while True:
            start = self._at
            char = self._peek()
            if char in ("", "\n", ";") or (char in "<>" and self._peek(1) == "("):
                raise UnclearError
            if char in _WORD_END:
                self._at += 1
                continue
            self._word("")
            if self._line[start : self._at] == "]]":
                return
