"""Judge a shell command: which parts it has, and which of them are known to only read inside the working directory.

Not a sandbox: it decides whether a person is asked. What is not understood is never taken for harmless.
"""

from __future__ import annotations

import glob
import os
import re
import shlex
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

from agentmesh.domain.shell import ShellPart, ShellReading
from agentmesh.tools.shell.parse import Other, Parsed, Redirect, Simple, parse
from agentmesh.tools.shell.table import READ_ONLY, Spec, inner, runs_unseen
from agentmesh.tools.shell.words import Word

_MAX_MATCHES = 2000
_MAX_DEPTH = 4
_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh"})
_NO_FILE = frozenset({"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "-"})
_PATH_IN_OPTION = re.compile(r"[/~.].*", re.DOTALL)


def shell_reader(workdir: Path) -> Callable[[str], ShellReading]:
    """Return the function that permissions use to take commands apart, for one working directory."""
    return lambda command: read_shell(command, workdir)


def read_shell(command: str, workdir: Path) -> ShellReading:
    """Take a command apart and judge its parts; never raises."""
    return _Reader(os.path.realpath(workdir)).read(command, 0)


class _Reader:
    """Judges the parts of one command line, one after another."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._bases = [root]
        """Directories in which the current part may run: ``cd`` adds one, and may also have failed."""

    def read(self, command: str, depth: int) -> ShellReading:
        """Return the reading of a command line."""
        parsed: Parsed = parse(command)
        parts: list[ShellPart] = []
        problem = parsed.problem
        for piece in parsed.pieces:
            if isinstance(piece, Redirect):
                parts.append(self._redirect(piece))
            elif isinstance(piece, Other):
                parts.append(ShellPart(piece.text, False, "it sets or loops over variables", exact_only=True))
            else:
                parts.append(self._simple(piece))
                script = _script(piece)
                if script is not None and depth < _MAX_DEPTH:
                    below = self.read(script, depth + 1)
                    parts += below.parts
                    problem = problem or below.problem
                elif script is not None or _opaque(piece):
                    problem = problem or f"what `{piece.words[0].text}` runs is not known"
        return ShellReading(command, tuple(parts), problem)

    def _simple(self, piece: Simple) -> ShellPart:
        words = [word.text for word in piece.words]
        text = _joined(words)
        also = [text] if piece.assignments else []
        if "/" in words[0]:
            also.append(_joined([words[0].rsplit("/", 1)[-1], *words[1:]]))
        runs_on = runs_unseen(words)
        if runs_on:
            also += [_joined(words[start:]) for start in range(1, len(words))]
            also += [_joined([words[start].rsplit("/", 1)[-1], *words[start + 1 :]]) for start in range(1, len(words))]
            also += words[1:]
        within = inner(words) if not piece.assignments else None
        if within is not None and not runs_unseen(within):
            # `timeout 9 ls` is as good as `ls`; rules see the command that counts.
            start = len(words) - len(within)
            also.append(text)
            piece, words, text, runs_on = Simple(piece.words[start:]), list(within), _joined(list(within)), False
        reason = self._objection(piece, words)
        return ShellPart(
            text=f"{piece.assignments} {text}".strip(),
            read_only=not reason,
            reason=f"`{_shown(text)}` may do more than read: {reason}" if reason else "",
            also=tuple(dict.fromkeys(also)),
            exact_only=runs_on or bool(piece.assignments),
            reads=self._named_paths(piece),
        )

    def _objection(self, piece: Simple, words: list[str]) -> str:
        """Return why a command is not read-only, or nothing."""
        name, rest = words[0], words[1:]
        if piece.assignments:
            return "it sets variables"
        if name == "cd":
            return self._change_directory(piece)
        if name == "command" and rest[:1] in (["-v"], ["-V"]):
            return ""
        if name == "env" and not rest:
            return ""
        spec = READ_ONLY.get(name)
        if spec is None:
            return "it is not a command known to only read"
        if name == "git" and len(self._bases) > 1:
            return "git may find another repository there"
        return spec.objection(rest) or self._words_objection(name, spec, piece.words[1:])

    def _words_objection(self, name: str, spec: Spec, words: Sequence[Word]) -> str:
        for place, word in enumerate(words):
            if not word.known and (word.glob or not (name == "echo" or (name == "printf" and place))):
                return f"what {word.text} stands for is not known"
            if word.glob and word.text[0] in "*?[" and not spec.harmless:
                return f"a name that {word.text} stands for could be an option"
        options, operands = _sorted(spec, words)
        objections = [self._option_path(word) for word in options]
        objections += [self._operand(name, spec, word) for word in operands]
        return next((found for found in objections if found), "")

    def _operand(self, name: str, spec: Spec, word: Word) -> str:
        """Return what is wrong with an operand, which may be a path, or nothing."""
        if not word.known or not (spec.paths or word.glob or word.tilde):
            return ""
        if not self._inside(word):
            return f"{word.text} is outside the working directory"
        if name == "diff" and any(os.path.isdir(os.path.join(base, word.text)) for base in self._bases):
            return "it follows links below directories"
        return ""

    def _option_path(self, word: Word) -> str:
        """Return what is wrong with a path in an option (``--file=PATH``, ``-fPATH``), or nothing."""
        name, equals, value = word.text.partition("=")
        candidates = [value] if equals and name.startswith("--") else [word.text[2:]]
        if not equals and (found := _PATH_IN_OPTION.search(word.text)):
            candidates.append(found[0])
        for path in candidates:
            if path and not self._inside(Word(path, glob=word.glob, tilde=path.startswith("~"))):
                return f"{path} is outside the working directory"
        return ""

    def _change_directory(self, piece: Simple) -> str:
        if len(piece.words) != 2:
            return "where it goes is not fixed"
        word = piece.words[1]
        if not word.known or word.glob or word.text.startswith("-") or not self._inside(word):
            return f"{word.text} is not known to be inside the working directory"
        self._bases += [
            target
            for target in {os.path.realpath(os.path.join(base, word.text)) for base in self._bases}
            if target not in self._bases
        ]
        return ""

    def _redirect(self, piece: Redirect) -> ShellPart:
        target = piece.target
        text = f"{piece.operator} {target.text}"
        if target.known and target.text in _NO_FILE:
            return ShellPart(text, True)
        paths = tuple(os.path.join(base, target.text) for base in self._bases) if target.known else ()
        if piece.operator == "<":
            fixed = target.known and not target.glob and self._inside(target)
            return ShellPart(text, fixed, "" if fixed else f"`{_shown(text)}` may read outside", reads=paths)
        return ShellPart(text, False, f"`{_shown(text)}` writes to a file", writes=paths)

    def _named_paths(self, piece: Simple) -> tuple[str, ...]:
        """Return what may be paths among the words, for rules about files."""
        paths: list[str] = []
        for word in piece.words[1:]:
            text = word.text.partition("=")[2] if word.text.startswith("-") else word.text
            if text and word.known:
                for base in self._bases:
                    names = self._expanded(word, base) if word.glob else [text]
                    paths += [os.path.join(base, name) for name in names]
        return tuple(dict.fromkeys(paths))

    def _inside(self, word: Word) -> bool:
        """Whether a word, taken as a path, stays in the working directory, links and globs resolved."""
        if word.text in _NO_FILE:
            return True
        if word.tilde or "\0" in word.text:
            return False
        for base in self._bases:
            paths = self._expanded(word, base) if word.glob else [word.text]
            if len(paths) > _MAX_MATCHES:
                return False
            for path in paths:
                real = os.path.realpath(os.path.join(base, path))
                if real != self._root and not real.startswith(self._root.rstrip("/") + "/"):
                    return False
        return True

    def _expanded(self, word: Word, base: str) -> list[str]:
        """Return the word itself and the first files that it stands for."""
        found = glob.iglob(re.sub(r"\[.*?\]", "*", word.text), root_dir=base)
        return [word.text, *islice(found, _MAX_MATCHES)]


def _sorted(spec: Spec, words: Sequence[Word]) -> tuple[list[Word], list[Word]]:
    """Return the options and the operands that may be paths, without patterns and values that are none."""
    skip = 0 if any(_gives_pattern(word.text) for word in words) else spec.patterns
    options: list[Word] = []
    operands: list[Word] = []
    value = ended = False
    for word in words:
        if value:
            value = False
        elif ended or not word.text.startswith("-") or word.text == "-":
            operands.append(word)
        elif word.text == "--":
            ended = True
        elif word.text.split("=")[0] in spec.values | spec.texts:
            value = word.text in spec.values
        else:
            options.append(word)
    return options, operands[skip:]


def _gives_pattern(word: str) -> bool:
    """Whether an option may take the pattern's place, so that the first operand is a file."""
    if word.startswith("--"):
        name = word.partition("=")[0]
        return len(name) > 2 and any(full.startswith(name) for full in ("--regexp", "--expression", "--files"))
    return word.startswith("-") and ("e" in word or "f" in word)


def _script(piece: Simple) -> str | None:
    """Return the command line that ``bash -c '...'``, ``eval '...'`` or ``trap '...'`` runs, when it stands there."""
    words = piece.words
    name = words[0].text.rsplit("/", 1)[-1]
    if name == "eval" and len(words) > 1 and all(word.known for word in words):
        return " ".join(word.text for word in words[1:])
    if name == "trap" and len(words) > 1 and words[1].known:
        return words[1].text
    if name in _SHELLS and len(words) > 2 and words[1].text == "-c" and words[2].known:
        return words[2].text
    return None


def _opaque(piece: Simple) -> bool:
    """Whether a command runs code that is neither in the command line nor in a file it names."""
    words = piece.words
    name = words[0].text.rsplit("/", 1)[-1]
    if name in _SHELLS:
        return len(words) == 1 or not words[1].known or words[1].text.startswith("-")
    return name in ("eval", "trap") and len(words) > 1


def _joined(words: Sequence[str]) -> str:
    return " ".join(shlex.quote(word) if not word or re.search(r"[\s'\"]", word) else word for word in words)


def _shown(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"
