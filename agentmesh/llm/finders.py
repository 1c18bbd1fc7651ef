"""Finders of modules that are asked only for a while, in a program with other threads that import too."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder


@contextmanager
def asked_first(finder: MetaPathFinder) -> Iterator[None]:
    """Have every import ask ``finder`` before all others while the block runs.

    ``sys.meta_path`` is another list each time: an import of another thread may be going through the old one. It would
    pass over one finder if the list lost one before it, and say that there is no such module.
    """
    sys.meta_path = [finder, *sys.meta_path]
    try:
        yield
    finally:
        sys.meta_path = [one for one in sys.meta_path if one is not finder]
