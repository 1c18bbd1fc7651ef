"""Resolve the words of a command to files: whether they stay in the working directory, and which files they name."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from itertools import islice

from agentmesh.tools.shell.words import Word

_MAX_MATCHES = 2000
STREAMS = frozenset({"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"})
_HOME = re.compile(r"\$\{?(?:HOME|OLDPWD|TMPDIR|XDG_\w+|VIRTUAL_ENV|GOPATH|CARGO_HOME)\b")
_ESCAPED_PATH = re.compile(r"\$'[^']*(?:/|\\[^tn])")
"""``$'...'`` with a path in it, or with characters given as escapes."""


class Paths:
    """The directories in which the commands of a line may run, and the files that words name there."""

    def __init__(self, root: str, objects: str) -> None:
        """``objects``: where the repository of the working directory may take objects from."""
        self.root = root
        self.objects = objects
        self.bases = [root]
        """``cd`` adds a directory and keeps the others, because it may fail."""

    def enter(self, text: str) -> None:
        """Record that later commands may run in another directory."""
        self.bases += [base for base in self.below(text) if base not in self.bases]

    def below(self, text: str) -> list[str]:
        """Return the real directories that a relative one may mean."""
        found = (_real(os.path.join(base, text)) for base in self.bases)
        return list(dict.fromkeys(path for path in found if path is not None))

    def inside(self, word: Word) -> bool:
        """Whether a word, taken as a path, stays in the working directory, with links and patterns resolved."""
        if word.text in STREAMS or word.text == "-":
            return True
        if word.tilde or "\0" in word.text:
            return False
        for base in self.bases:
            paths = self._matches(word, base) if word.glob else [word.text]
            if len(paths) > _MAX_MATCHES:
                return False
            for path in paths:
                real = _real(os.path.join(base, path))
                if real is None or (real != self.root and not real.startswith(self.root.rstrip("/") + "/")):
                    return False
        return True

    def begins_inside(self, word: Word) -> bool:
        """Whether the known beginning of a word with an expansion stays inside."""
        if word.tilde or _HOME.search(word.text) or _ESCAPED_PATH.search(word.text):
            return False
        folder, slash, _ = word.masked.partition("\0")[0].rpartition("/")
        return self.inside(Word(folder + slash, glob=word.glob)) if slash else True

    def dashed(self, word: Word) -> bool:
        """Whether a pattern may expand to a name that a command takes for an option."""
        if word.text.startswith("-"):
            return True
        if word.text[:1] not in "*?[":
            return False
        return any(path.startswith("-") for base in self.bases for path in self._matches(word, base)[1:])

    def named(self, words: Sequence[Word]) -> tuple[str, ...]:
        """Return the words that may be paths, as paths, for rules about files."""
        paths: list[str] = []
        for word in words:
            text = word.text.partition("=")[2] if word.text.startswith("-") else word.text
            if text and word.known:
                for base in self.bases:
                    names = self._matches(word, base) if word.glob else [text]
                    paths += [os.path.join(base, name) for name in names]
        return tuple(dict.fromkeys(paths))

    def _matches(self, word: Word, base: str) -> list[str]:
        """Return the word itself and the first files that its pattern may match, sooner too many than too few."""
        wider = "/".join(part.split("[", 1)[0] + "*" if "[" in part else part for part in word.text.split("/"))
        return [word.text, *islice(glob.iglob(wider, root_dir=base), _MAX_MATCHES)]


def _real(path: str) -> str | None:
    """Return the real path; None if the kernel hides it, as for links of another user's process."""
    try:
        return os.path.realpath(path)
    except OSError:
        return None
