"""Get an optional package or an environment variable that a command needs, or say that it is missing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from agentmesh.domain.errors import UsageError


@contextmanager
def optional_package(what_needs: str, package: str, modules: frozenset[str], install: str) -> Iterator[None]:
    """Import optional modules in the block; raise UsageError, which says how to install them, if they are missing.

    ``what_needs`` is the beginning of its sentence, up to the package: ``Metrics need``.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in modules:
            raise
        sentence = f"{what_needs} the Python package {package}, which is not installed."
        raise UsageError(sentence, hint=f"Install it: {install}") from error


def environment_variable(name: str) -> str:
    """Return the text of a variable; raise UsageError if it is not set, or empty."""
    text = os.environ.get(name)
    if not text:
        raise UsageError(f"The environment variable {name} is not set.")
    return text
