"""Paths of images that a terminal pastes when files are dropped on it: they become mentions, which attach them."""

from __future__ import annotations

import os
import shlex
from urllib.parse import unquote, urlsplit

from agentmesh.domain.images import SUFFIXES
from agentmesh.tui.input.files import written

_LONGEST = 4096
_BEGINS = ("/", "~", "'", '"', "file://")


def as_mentions(pasted: str) -> str | None:
    """Return ``@path`` for each image that a paste names by its path, None if it is anything else.

    Terminals quote blanks in a path or put backslashes before them; some paste a ``file://`` address.
    """
    text = pasted.strip()
    if not text.startswith(_BEGINS) or len(text) > _LONGEST or not text.lower().rstrip("'\"").endswith(SUFFIXES):
        return None
    if os.path.isabs(text) and _is_image(text):  # pasted as it is, blanks too
        return f"{written(text)} "
    try:
        paths = [_path(word) for word in shlex.split(text)]
    except ValueError:
        return None
    if not all(map(_is_image, paths)):
        return None
    return "".join(f"{written(path)} " for path in paths)


def _path(word: str) -> str:
    return unquote(urlsplit(word).path) if word.startswith("file://") else os.path.expanduser(word)


def _is_image(path: str) -> bool:
    is_named = os.path.isabs(path) and path.lower().endswith(SUFFIXES) and path.isprintable() and '"' not in path
    return is_named and os.path.isfile(path)
