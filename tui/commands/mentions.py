"""Reads ``@`` in the input: at its beginning it names the agent that the text goes to, everywhere else a file."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from agentmesh.app.attaching import AFTER, MENTION
from agentmesh.domain import images

_NAME = r"[a-z0-9][a-z0-9_.-]{0,31}"
_AGENT = re.compile(rf"@({_NAME}|root(?:/{_NAME})+)[,:]?(?:\s+|$)", re.IGNORECASE)
_MOST = 4
"""Files that are looked for: more would not fit into the line."""
_UNITS = ("B", "KiB", "MiB", "GiB")


class Addressed(NamedTuple):
    """A text that begins with ``@name``, or with a path from the root on: ``@root/reader/tester``."""

    name: str
    text: str
    """What follows."""


class NamedFile(NamedTuple):
    """A file that a text names."""

    name: str
    what: str
    """Its size, ``image`` and its size, ``folder``, or ``not found``."""
    is_found: bool


def addressed(text: str) -> Addressed | None:
    """Return the name that a text begins with, whether or not an agent has it; None if it begins otherwise."""
    found = _AGENT.match(text.lstrip())
    return Addressed(found[1].lower(), text.lstrip()[found.end() :].strip()) if found else None


def file_names(text: str) -> Sequence[str]:
    """Return the names that follow an ``@`` in a text, in their order; at most a few."""
    return list(dict.fromkeys("".join(found) for found in MENTION.findall(text)))[:_MOST]


def look_for(names: Sequence[str], workdir: Path) -> Sequence[NamedFile]:
    """Look these names up in a directory."""
    return [_named(name, workdir) for name in names]


def _named(name: str, workdir: Path) -> NamedFile:
    for candidate in dict.fromkeys((name, name.rstrip(AFTER))):
        try:
            facts = os.stat(workdir / Path(candidate).expanduser())
        except (OSError, ValueError, RuntimeError):
            continue
        is_image = candidate.lower().endswith(images.SUFFIXES) and stat.S_ISREG(facts.st_mode)
        what = "folder" if stat.S_ISDIR(facts.st_mode) else _size(facts.st_size)
        return NamedFile(candidate, f"image, {what}" if is_image else what, True)
    return NamedFile(name, "not found", False)


def _size(count: float) -> str:
    """Return ``34 B``, ``1.2 KiB``."""
    power = next((n for n in range(len(_UNITS) - 1) if count < 1024 ** (n + 1)), len(_UNITS) - 1)
    number = count / 1024**power
    return f"{number:.0f} {_UNITS[power]}" if not power or number >= 10 else f"{number:.1f} {_UNITS[power]}"
