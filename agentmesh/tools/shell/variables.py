"""Judge the variables of a command line: their possible values, and whether an expansion may run or set something."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence

from agentmesh.tools.shell.pieces import Assignment, Piece, Simple
from agentmesh.tools.shell.words import Word

_MAX_VARIANTS = 64
_ORDINARY = re.compile(
    r"(?!(?:http|https|ftp|no|all)_proxy$|auto_resume$|histchars$)[a-z_][a-z0-9_]*|[A-Z]|SHA|FILES?|DIRS?|COUNT|COMMIT|"
    r"BRANCH|BASE|NAME|TOTAL|RESULT|OUT|LINE|ROOT|START|STOP|VERSION"
)
"""Names without a meaning to bash or to any program."""
_BEFORE_COMMAND = {
    "LC_ALL": r"C|POSIX|C\.UTF-8|[a-z]{2}_[A-Z]{2}\.(?:UTF-8|utf8)",
    "LC_COLLATE": "C|POSIX",
    "LC_NUMERIC": "C|POSIX",
    "LANG": r"C|C\.UTF-8",
    "TZ": r"UTC|GMT|[A-Z][A-Za-z]+/[A-Z][A-Za-z_]+",
    "NO_COLOR": r"\d*",
    "COLUMNS": r"\d+",
    "GIT_PAGER": "cat|",
    "PAGER": "cat|",
    "GIT_OPTIONAL_LOCKS": "0",
}
_PATTERN = r"[\w.,/*?@: +=-]*"
_EXPANSION = re.compile(
    rf"\$\{{#?[A-Za-z_]\w*(?:\[[@*0-9]\])?(?:(?:%%?|##?|//?|/[#%]|:?[-+]){_PATTERN}|\^\^?|,,?|:\d+(?::\d+)?)?\}}",
    re.ASCII,
)
_ARITHMETIC = re.compile(r"\$?\(\((?P<expression>[\w\s+*/%<>=!&|?:()${}#-]*)\)\)", re.ASCII)
_SETS = re.compile(r"(?<![<>=!])=(?!=)")
_NUMBER = re.compile(r"-?\d+")
_COUNTED = re.compile(r"\$\(\s*(?:wc -[lwcm] *<[^;&|\n()`]*|(?:[^;&|\n]+\|)+\s*wc -[lwcm]\s*|nproc|seq [\d ]+)\)")
_REVISION = re.compile(
    r"\$\(git (?:-C [\w./]+ )?(?:rev-parse(?: --short(?:=\d+)?| --verify)*|merge-base|rev-list(?: -n ?\d+| -\d+)?)"
    r"(?: [\w./~^@{}][\w./~^@{}-]*)*\)|\$\(pwd\)|<\([^$`]*\)|\$\(\([^`]*\)\)"
)
_NAMED = re.compile(r"\$(?:\{(\w+)\}|(\w+))", re.ASCII)
_FIXED = frozenset({"PWD", "HOME", "OLDPWD"})
_READ_OPTIONS = re.compile("-[rs]+|-r?d|-r?a")


class Variables:
    """The possible values of one command line's variables, whatever the order in which its commands run."""

    def __init__(self, pieces: Iterable[Piece], dashed: Callable[[Word], bool]) -> None:
        """``dashed``: whether a pattern may expand to a name that starts with a dash."""
        self._dashed = dashed
        self._values: dict[str, tuple[Word, ...]] = {}
        for piece in pieces:
            if isinstance(piece, Assignment):
                self._values[piece.name] = (*self._values.get(piece.name, ()), *piece.values)
            elif isinstance(piece, Simple) and piece.words[0].text in ("read", "mapfile", "readarray"):
                for word in piece.words[1:]:
                    self._values[word.text] = (Word("$", known=False, split=True),)

    def variants(self, words: Sequence[Word]) -> list[list[Word]]:
        """Return the commands that a command may become, if the line contains all values."""
        choices = [self._choices(word) for word in words]
        total = 1
        for choice in choices:
            total *= len(choice)
        if total > _MAX_VARIANTS:
            return [list(words)]
        return [[word for group in groups for word in group] for groups in itertools.product(*choices)]

    def _choices(self, word: Word) -> list[list[Word]]:
        names = set() if word.known else {found[1] or found[2] for found in _NAMED.finditer(word.text)}
        texts = [self._texts(name) for name in names]
        if not names or _NAMED.sub("", word.text).count("$") or not all(texts):
            return [[word]]
        chosen: list[list[Word]] = []
        for values in itertools.islice(itertools.product(*texts), _MAX_VARIANTS):
            one = dict(zip(names, values, strict=True))
            text = _NAMED.sub(lambda found: one[found[1] or found[2]], word.text)  # noqa: B023
            parts = text.split() if word.split else [text]
            chosen.append([Word(part, glob=word.split and bool(re.search(r"[*?\[]", part))) for part in parts])
        return chosen

    def _texts(self, name: str) -> list[str]:
        """Return all values of a variable; an empty list if the line does not contain one of them."""
        values = self._values.get(name, ())
        return [value.text for value in values] if all(v.known and not v.glob and not v.tilde for v in values) else []

    def is_number(self, name: str) -> bool:
        """Whether the line sets a variable, and only to numbers."""
        values = self._values.get(name, ())
        return bool(values) and all(self._numeric(value, name) for value in values)

    def _numeric(self, value: Word, name: str = "") -> bool:
        if value.known:
            return _NUMBER.fullmatch(value.text) is not None
        if value.text.startswith("$(("):
            return not self.arithmetic_objection(value.text, name)
        return _COUNTED.fullmatch(value.text) is not None

    def number(self, word: Word) -> bool:
        """Whether a word is certainly a number."""
        found = _NAMED.fullmatch(word.text)
        if found and not word.known:
            return self.is_number(found[1] or found[2])
        return (not word.known and word.text in ("$#", "$?", "$$")) or self._numeric(word)

    def undashed(self, word: Word) -> bool:
        """Whether an unknown word is certainly not an option."""
        start = word.masked[:1]
        if start == "-":
            return False
        found = _REVISION.match(word.text)
        if found and not re.search(r"[$`]", word.text[found.end() :]):
            return True
        if not word.split:
            return start != "\0" or self.number(word) or self._undashed_name(_NAMED.match(word.text))
        names = list(_NAMED.finditer(word.text))
        if re.search(r"[$`{]", _NAMED.sub("", word.text)):
            return self.number(word)
        return all(self._undashed_name(name) for name in names)

    def _undashed_name(self, found: re.Match[str] | None) -> bool:
        name = (found[1] or found[2]) if found else ""
        values = self._values.get(name, ())
        return name in _FIXED or self.is_number(name) or (bool(values) and all(map(self._undashed_value, values)))

    def _undashed_value(self, value: Word) -> bool:
        if value.glob:
            return not self._dashed(value) and not re.search(r"\s", value.text)
        if value.known:
            return not re.search(r"(?:^|\s)-", value.text)
        return _REVISION.fullmatch(value.text) is not None or _COUNTED.fullmatch(value.text) is not None

    def objection(self, text: str) -> str:
        """Return why an expansion or an arithmetic command may do more than read a variable."""
        if text.startswith(("((", "$((")):
            return self.arithmetic_objection(text)
        return "" if _EXPANSION.fullmatch(text) else "it may set a variable or run what one holds"

    def arithmetic_objection(self, text: str, setting: str = "") -> str:
        """Return the objection to arithmetic: bash runs substitutions in the values of its variables."""
        found = _ARITHMETIC.fullmatch(text)
        if found is None or _SETS.search(found["expression"]):
            return "its arithmetic may set a variable or run what one holds"
        names = set(re.findall(r"[A-Za-z_]\w*", found["expression"], re.ASCII)) - {setting}
        unknown = next((name for name in sorted(names) if not self.is_number(name)), "")
        return f"what the arithmetic finds in {unknown} is not known" if unknown else ""


def setting_objection(assignment: Assignment) -> str:
    """Return why a variable must not be set without asking."""
    if not _ORDINARY.fullmatch(assignment.name):
        return f"it sets {assignment.name}, which programs may read"
    return ""


def prefix_objection(name: str, assigned: Sequence[Assignment]) -> str:
    """Return why a variable must not be set for one command."""
    for one in assigned:
        value = one.values[0]
        if name == "read" and one.name == "IFS":
            continue
        if (
            one.name not in _BEFORE_COMMAND
            or not value.known
            or not re.fullmatch(_BEFORE_COMMAND[one.name], value.text)
        ):
            return f"it sets {one.name}"
    return ""


def read_objection(words: Sequence[Word]) -> str:
    """Return the objection to ``read``, which sets the variables that it names."""
    value = False
    for word in words:
        if value:
            value = False
        elif word.known and _READ_OPTIONS.fullmatch(word.text):
            value = word.text.endswith("d")
        elif not word.known or word.glob or not _ORDINARY.fullmatch(word.text):
            return f"it may set {word.text}"
    return ""
