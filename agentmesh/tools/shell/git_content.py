"""Which files' content a git command shows: rules withhold files by their paths, and Git has them as objects too."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence

from agentmesh.tools.shell.git import split_globals

_SHOWING = frozenset({"annotate", "blame", "cat-file", "diff", "diff-files", "diff-index", "diff-tree", "grep", "show"})
"""Subcommands that show content unless an option says otherwise."""
_PATCHING = frozenset({"log", "reflog", "stash", "status", "whatchanged"})
"""Those that show content only if an option asks for patches."""
_SUMMARIES = frozenset(
    {"--dirstat", "--name-only", "--name-status", "--no-patch", "--numstat", "--quiet", "--raw", "--shortstat", "-s"}
    | {"--stat", "--summary"}
)
_PATCH_LETTERS = "LUWcmpuv"
_PATCH_OPTIONS = (
    *("--binary", "--cc", "--check", "--color-words", "--dd", "--diff-merges", "--function-context", "--no-quiet"),
    *("--patch", "--patch-with-raw", "--patch-with-stat", "--remerge-diff", "--unified", "--verbose", "--word-diff"),
)
"""They may be cut short. No other option that may be used unasked shows content: a test asks git itself."""
_OBJECT = re.compile(r"[^\0{}:]+:[^\0{}:]+|:[^\0{}/:][^\0{}:]*")
"""``HEAD:src/key`` or ``:key``, but not ``:/words``, a commit by its message."""
_SUMMED_UP = frozenset({"diff", "diff-files", "diff-index", "diff-tree", "show"})


def objects_named(words: Sequence[str], bases: Sequence[str]) -> Iterator[str]:
    """Yield the files that words like ``HEAD:src/key`` and ``:(top)key`` may name, as absolute paths."""
    for word in words:
        for at, letter in enumerate(word):
            name = word[at + 1 :].lstrip("/")
            if letter in ":)" and name:
                for base in bases:
                    yield from (os.path.normpath(os.path.join(folder, name)) for folder in _up_to_the_top(base))


def shows_unnamed_content(words: Sequence[str], is_file: Callable[[str], bool]) -> bool:
    """Whether a git command (its words after ``git``) may show content of files that its words do not name.

    Words that are not known have a NUL.
    """
    found = split_globals(words)
    if found is None or not found[1]:
        return True
    name, rest = found[1][0], found[1][1:]
    if name not in _SHOWING and name not in _PATCHING:
        return False
    options = rest[: rest.index("--")] if "--" in rest else rest
    asks_for_patches = any(_asks_for_patches(word) for word in options)
    if name in _PATCHING:
        return (asks_for_patches or [name, *rest[:1]] == ["stash", "show"]) and not _names_files(name, rest, is_file)
    if name in _SUMMED_UP and not asks_for_patches and any(word.partition("=")[0] in _SUMMARIES for word in options):
        return False
    return not _names_files(name, rest, is_file)


def _asks_for_patches(word: str) -> bool:
    if word.startswith("--"):
        name = word.partition("=")[0]
        return len(name) > 2 and any(each.startswith(name) for each in _PATCH_OPTIONS)
    return word.startswith("-") and any(letter in word for letter in _PATCH_LETTERS)


def _names_files(name: str, words: Sequence[str], is_file: Callable[[str], bool]) -> bool:
    """Whether the words name single files, and the command shows no others."""
    if "--" in words:
        paths = list(words[words.index("--") + 1 :])
        return bool(paths) and all(is_file(path) for path in paths)
    operands = [word for word in words if not word.startswith("-")]
    if name in ("cat-file", "show") and operands and all(_OBJECT.fullmatch(word) for word in operands):
        return True
    first = next((at for at, word in enumerate(operands) if is_file(word)), None)
    return name != "grep" and first is not None and all(is_file(word) for word in operands[first:])


def _up_to_the_top(base: str) -> Iterator[str]:
    """Yield a directory and those above it, up to the first that has a repository: ``REV:PATH`` counts from there."""
    while True:
        yield base
        above = os.path.dirname(base)
        if os.path.lexists(os.path.join(base, ".git")) or above == base:
            return
        base = above
