"""Leave a block at the latest when the program ends, while threads can still be joined and the database be asked."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from agentmesh.domain.errors import AgentmeshError
from agentmesh.domain.log import logger

LOG = logger(__name__)


@contextmanager
def until_exit(block: AbstractContextManager[None]) -> Iterator[None]:
    """Enter a block, and leave it with this one, or when the program ends in the middle of it.

    A program may end so in a daemon thread, in a generator or with a block that it only entered. Python itself would
    leave the block later, when its threads stand still, or never.
    """
    process = os.getpid()
    with ExitStack() as stack:

        def leave() -> None:
            if os.getpid() == process:  # a forked process has neither its threads nor its connections
                try:
                    stack.close()
                except AgentmeshError as error:
                    LOG.warning("%s", error)

        stack.enter_context(block)
        atexit.register(leave)
        try:
            yield
        finally:
            atexit.unregister(leave)
