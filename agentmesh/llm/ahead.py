"""Imports the client of model servers before it is needed, while its caller waits for something else."""

from __future__ import annotations

import threading
from importlib import import_module
from typing import Final

from agentmesh.domain.log import logger

LOG = logger(__name__)

THREAD: Final = "import ahead"
"""Name of the thread."""


def import_ahead() -> None:
    """Begin to import what the first model call needs, on a thread; for a program that has yet to open its database."""
    threading.Thread(target=_import, name=THREAD, daemon=True).start()


def _import() -> None:
    try:
        import_module("agentmesh.llm.wire")
    except Exception:
        LOG.debug("the client of model servers cannot be imported; the first call says why", exc_info=True)
