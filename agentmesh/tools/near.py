"""Names similar to one that was not found, so that an error can suggest them."""

from __future__ import annotations

import difflib
import os

_AT_MOST = 3
_LOOK_AT = 2000
"""Names of one directory that are compared."""


def close_names(root: str, parts: tuple[str, ...]) -> list[str]:
    """Return up to three existing paths, relative to ``root``, that a missing path may mean."""
    for depth, part in enumerate(parts):
        directory = os.path.join(root, *parts[:depth])
        if os.path.lexists(os.path.join(directory, part)):
            continue
        names = _names(directory)
        lower = {name.lower(): name for name in names}
        near = difflib.get_close_matches(part.lower(), lower, n=_AT_MOST, cutoff=0.6)
        return [os.path.join(*parts[:depth], lower[name]) for name in near]
    return []


def _names(directory: str) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            return [entry.name for entry, _ in zip(entries, range(_LOOK_AT), strict=False)]
    except OSError:
        return []
