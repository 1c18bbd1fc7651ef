"""Commits of what cost something: they are tried until the database takes them, and the model is not asked again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from agentmesh.domain.errors import DatabaseBusy, DatabaseError, DatabaseUnreachable
from agentmesh.domain.log import logger

LOG = logger(__name__)

Result = TypeVar("Result")

_AGAIN = 0.5
"""Seconds from one try to the next."""


def keep(
    commit: Callable[[], Result], is_over: Callable[[], bool], what: str, *, also_unreachable: bool = False
) -> Result:
    """Return the commit's result; repeat it while somebody's lock or a full disk is in its way, unless ``is_over``.

    ``also_unreachable``: it may be repeated too when nobody knows whether it was made.
    """
    passing = (DatabaseBusy, DatabaseUnreachable) if also_unreachable else (DatabaseBusy,)
    while True:
        try:
            return commit()
        except DatabaseError as error:
            if not isinstance(error, passing) or is_over():
                raise
            LOG.warning("%s is kept, and stored as soon as possible: %s %s", what, error, error.hint)
            time.sleep(_AGAIN)
