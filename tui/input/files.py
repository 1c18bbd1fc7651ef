"""Completion of ``@`` with files of the working directory; what Git ignores is left out."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from agentmesh.domain.log import logger
from agentmesh.tui.widgets.fuzzy import best

LOG = logger(__name__)

_FRESH = 5.0
"""Seconds that a list is good for."""
_WALK_SECONDS = 10.0
_MOST = 50_000
"""Files that are listed; matching more would be felt at every key."""
_ENDS_A_NAME = re.compile(r"""[\s@"'`]""")
_MENTION = re.compile(r"(?:^|(?<=[\s(\"'`]))@([^\s@]*)$")


class Mention(NamedTuple):
    """An ``@`` with what follows it, up to the cursor."""

    start: int
    """Where the ``@`` is."""
    fragment: str


def mention(text: str, cursor: int) -> Mention | None:
    """Return the mention that the cursor stands in: ``@`` at the beginning of a word, up to the cursor."""
    line = text[:cursor].rpartition("\n")[2]
    found = _MENTION.search(line)
    return Mention(cursor - len(line) + found.start(), found[1]) if found else None


def written(path: str) -> str:
    """Return a mention of a file as people write it: between quotes if a bare one would end within the name.

    No mention names a file with quotes of both kinds in its name.
    """
    if not _ENDS_A_NAME.search(path):
        return f"@{path}"
    return f"@'{path}'" if '"' in path else f'@"{path}"'


class Files:
    """The directory's files, listed on a thread of its own, and listed again when the list is some seconds old."""

    def __init__(self, workdir: Path) -> None:
        """Nothing is listed before the first ``matches``."""
        self._workdir = workdir
        self._paths: Sequence[str] = ()
        self._listed_at: float | None = None
        self._listing: threading.Thread | None = None

    def matches(self, fragment: str, limit: int = 15) -> list[str]:
        """Return paths that fit the fragment, best first, from the newest list; empty while the first is made."""
        self._refresh()
        return best(fragment, self._paths, str, limit)

    @property
    def is_complete(self) -> bool:
        """Whether the list has been made once."""
        return self._listed_at is not None

    def settle(self, timeout: float) -> bool:
        """Wait at most so many seconds for the list that is being made; return whether there is one."""
        if self._listing:
            self._listing.join(timeout)
        return self.is_complete

    def _refresh(self) -> None:
        is_fresh = self._listed_at is not None and time.monotonic() - self._listed_at < _FRESH
        if is_fresh or (self._listing and self._listing.is_alive()):
            return
        self._listing = threading.Thread(target=self._list, name="files", daemon=True)
        self._listing.start()

    def _list(self) -> None:
        try:
            # Imported here: pydantic comes with it, and most inputs mention no file.
            from agentmesh.domain.cancel import Cancel
            from agentmesh.domain.pathglob import PathPattern
            from agentmesh.tools.walk import Walk

            walk = Walk(str(self._workdir), Cancel(), _WALK_SECONDS)
            self._paths = tuple(islice(walk.files(PathPattern.parse("**")), _MOST))
        except Exception:
            LOG.exception("the files of %s could not be listed", self._workdir)
        self._listed_at = time.monotonic()
