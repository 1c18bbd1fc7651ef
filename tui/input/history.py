"""The inputs that were entered in a directory, kept across runs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from agentmesh.domain import jsontext
from agentmesh.domain.log import logger

LOG = logger(__name__)

_KEPT = 1000
"""Inputs that are kept per directory."""
_LONGEST = 100_000
"""Characters of an input that is kept; longer ones are pastes."""


class History:
    """Inputs entered before, the newest last; walked through with older and newer, like a shell's."""

    def __init__(self, path: Callable[[], Path] | None) -> None:
        """``path`` returns a file, read when it is first needed and appended to with every input; None: no file."""
        self._find_path = path
        self._place: int | None = None
        self._current = ""

    @cached_property
    def _path(self) -> Path | None:
        return self._find_path() if self._find_path else None

    @cached_property
    def _texts(self) -> list[str]:
        return _read(self._path) if self._path else []

    def add(self, text: str) -> None:
        """Remember an input; a repetition of the newest is not a second one. Ends a walk."""
        self.reset()
        self._keep(text)

    def older(self, current: str) -> str | None:
        """Return the input before, None at the first; ``current``, the text in the prompt, comes back at the end."""
        if self._place is None:
            self._current = current
        place = (len(self._texts) if self._place is None else self._place) - 1
        if place < 0:
            return None
        self._place = place
        return self._texts[place]

    def newer(self) -> str | None:
        """Return the input after, at last the text that stood in the prompt; None outside a walk."""
        if self._place is None:
            return None
        self._place += 1
        if self._place < len(self._texts):
            return self._texts[self._place]
        self._place = None
        return self._current

    def newest_first(self) -> list[str]:
        """Return every input once, the newest first."""
        return list(dict.fromkeys(reversed(self._texts)))

    def reset(self) -> None:
        """End a walk (the person edited the shown input); the text before the walk is the newest input now."""
        if self._place is not None:
            self._place = None
            if self._current not in self._texts:
                self._keep(self._current)

    def _keep(self, text: str) -> None:
        if not text.strip() or (self._texts and self._texts[-1] == text):
            return
        self._texts.append(text)
        if self._path and len(text) <= _LONGEST:
            _append(self._path, text)


def history_path(state: Path, workdir: Path) -> Path:
    """Return the file below the user's state folder that keeps the inputs of a directory."""
    import hashlib  # 1.5 ms, not before the first frame

    name = hashlib.sha256(os.fsencode(workdir)).hexdigest()[:16]
    return state / "history" / f"{name}.jsonl"


def _read(path: Path) -> list[str]:
    """Return the inputs in the file, the newest last; rewrite the file when it has grown too long."""
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        LOG.warning("the history of inputs cannot be read: %s", error)
        return []
    texts = [text for line in lines if (text := _line(line))]
    if len(lines) > 2 * _KEPT:
        _rewrite(path, texts[-_KEPT:])
    return texts[-_KEPT:]


def _line(line: str) -> str:
    try:
        text = jsontext.parse(line)
    except ValueError:
        return ""  # another terminal was in the midst of writing, or the disk was full
    return text if isinstance(text, str) else ""


def _append(path: Path, text: str) -> None:
    """Add one line, in one write: several terminals share the file. Only its owner may read it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, json.dumps(text).encode() + b"\n")
        finally:
            os.close(file)
    except OSError as error:
        LOG.warning("the history of inputs cannot be kept: %s", error)


def _rewrite(path: Path, texts: list[str]) -> None:
    try:
        fresh = path.with_suffix(f".{os.getpid()}")
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(file, "w", encoding="utf-8") as out:
            out.writelines(json.dumps(text) + "\n" for text in texts)
        fresh.replace(path)
    except OSError as error:
        LOG.warning("the history of inputs cannot be shortened: %s", error)
