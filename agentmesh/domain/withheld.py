"""Which files rules keep from being read or written, for calls that are about many paths."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

from agentmesh.domain.matching import allows, names_any
from agentmesh.domain.parts import WRITING, CallPart, absolute_path
from agentmesh.domain.pathglob import PathPattern, State, plain, restriction
from agentmesh.domain.permissions import Decision, Layer, Permissions

_DEEP = 100
"""Folders deeper than this in a path are not cached."""
_FOLDERS = 4096
"""Folders whose pattern states are cached."""


def withheld(
    rules: Permissions, tool: str, *, asked: bool, session: Layer = (), root: str = ""
) -> Callable[[str], bool] | None:
    """Return a function that says whether rules keep a tool from reading a path; None if no rule can.

    With ``asked``, paths that a rule asks about count too, unless a person's rules for the ``session`` allow them. The
    paths are as rules see them: relative inside the working directory ``root``, absolute outside.
    """
    tools = frozenset({"read"} if tool == "bash" else {tool, "read"})
    denying = _patterns(rules, tools, Decision.DENY)
    asking = _patterns(rules, tools, Decision.ASK) if asked else []
    if not denying and not asking:
        return None
    waived = tuple(rule.pattern for rule in session if rule.effect is Decision.ALLOW and names_any(rule.tool, tools))
    denies, asks = _Restrictions(denying, root), _Restrictions(asking, root)

    def is_withheld(path: str) -> bool:
        return denies.cover(path) or (asks.cover(path) and not _is_waived(path, waived, root))

    return is_withheld


def forbidden(rules: Permissions, *, root: str = "") -> Callable[[str], bool] | None:
    """Return a function that says whether rules deny writing a path; None if no rule can. Paths as in ``withheld``."""
    denying = _patterns(rules, WRITING, Decision.DENY)
    return _Restrictions(denying, root).cover if denying else None


def _patterns(rules: Permissions, tools: frozenset[str], effect: Decision) -> list[str]:
    found = (rule for layer in rules.layers for rule in layer if rule.effect is effect and names_any(rule.tool, tools))
    return list(dict.fromkeys(rule.pattern for rule in found))


def _is_waived(path: str, patterns: tuple[str, ...], root: str) -> bool:
    part = CallPart(frozenset(), path, path=True, absolute=absolute_path(root, path))
    return any(allows(pattern, part) for pattern in patterns)


class _Restrictions:
    """Patterns of rules that restrict, compared with paths as :func:`agentmesh.domain.matching.restricts` does."""

    def __init__(self, patterns: list[str], root: str) -> None:
        compiled = [(pattern.startswith("/"), restriction(pattern)) for pattern in patterns]
        self._everything = any(found is None for _, found in compiled)  # a rule that cannot be read restricts
        self._relative = _Walked(found for is_absolute, found in compiled if found and not is_absolute)
        self._absolute = _Walked(found for is_absolute, found in compiled if found and is_absolute)
        self._root = root

    def cover(self, path: str) -> bool:
        """Whether one of the patterns covers a path, or a folder above it."""
        return (
            self._everything
            or self._relative.cover(path)
            or self._absolute.cover(absolute_path(self._root, path) or path)
        )


class _Walked:
    """A pattern and its cached state after each known folder, because most paths share their folders."""

    def __init__(self, patterns: Iterable[PathPattern]) -> None:
        self._pattern = PathPattern.union(patterns)
        self._start = None if self._pattern.accepts(self._pattern.start) else self._pattern.start
        self._folder = functools.lru_cache(maxsize=_FOLDERS)(self._after)

    def cover(self, path: str) -> bool:
        """Whether the pattern matches a path, or a folder above it."""
        if not self._start:
            return self._start is None
        path = plain(path)
        return (self._from_start if path.count("/") > _DEEP else self._after)(path) is None

    def _from_start(self, path: str) -> State | None:
        """Do the same as :meth:`_after` without a call for each folder, because a path may have thousands."""
        state = self._start
        for name in path.split("/"):
            state = self._step(state, name)
        return state

    def _after(self, path: str) -> State | None:
        """Return the pattern's state after a path; None once it matches."""
        folder, slash, name = path.rpartition("/")
        return self._step(self._folder(folder) if slash else self._start, name)

    def _step(self, state: State | None, name: str) -> State | None:
        if state is None or not name:
            return state
        reached = self._pattern.step(state, name)
        return None if self._pattern.accepts(reached) else reached
