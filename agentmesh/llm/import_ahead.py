"""Imports the client of model servers before it is needed, while its caller waits for something else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import MetaPathFinder
from typing import Final

from agentmesh.domain.log import logger
from agentmesh.llm.finders import asked_first

LOG = logger(__name__)

THREAD: Final = "import ahead"
"""Name of the thread."""


def import_ahead() -> None:
    """Begin to import the modules for the first model call, on a thread, while a program opens its database.

    Only a program of our own may call it: it leaves the SDK without ``openai.DefaultAioHttpxClient``.
    """
    threading.Thread(target=_import, name=THREAD, daemon=True).start()


def _import() -> None:
    try:
        with _without("aiohttp"):  # the SDK imports it if it is there, which takes a third of its own import
            import_module("agentmesh.llm.wire")
    except Exception:
        LOG.debug("the client of model servers cannot be imported; the first call says why", exc_info=True)


@contextmanager
def _without(package: str) -> Iterator[None]:
    """Let imports of this thread find no such package, as if it were not installed."""
    thread = threading.get_ident()

    class Finder(MetaPathFinder):
        def find_spec(self, fullname: str, *_: object) -> None:
            if fullname == package and threading.get_ident() == thread:
                raise ModuleNotFoundError(f"{package} is left out", name=package)

    with asked_first(Finder()):
        yield
