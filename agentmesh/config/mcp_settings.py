"""The user's settings for MCP servers, as their file is now.

A worker runs for days: trust that a person gives or withdraws meanwhile counts from the next look on.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Final, NamedTuple

from agentmesh.config import forms, mcp, paths, sources
from agentmesh.config.documents import Problem
from agentmesh.config.mcp import Mcp, McpServer
from agentmesh.domain.errors import ConfigError
from agentmesh.domain.text import one_line

_SETTLED: Final = 2 * 10**9
"""Nanoseconds after which a change surely gives a file another time; a newer file is read again each time."""
_NO_TRUST: Final[Mapping[str, str]] = {}
_Stamp = tuple[int, int, int, int, int]
"""A file's device, inode, size, and the times when its content and its metadata last changed."""


class McpConfigured(NamedTuple):
    """The user's own servers, and the settings for all servers."""

    servers: Mapping[str, McpServer]
    settings: Mcp
    problems: tuple[Problem, ...] = ()


class McpSettings:
    """Reads the user's file again after it has changed; for any thread."""

    def __init__(self, servers: Mapping[str, McpServer], settings: Mcp, environ: Mapping[str, str]) -> None:
        """``servers`` and ``settings``: the file's content when the program began."""
        self._file = paths.user_config(environ)
        self._known = McpConfigured(servers, settings)
        self._read: tuple[_Stamp | None, McpConfigured] | None = None
        """The last result, with the stamp of its file."""

    def now(self) -> McpConfigured:
        """Return the current settings; if the file cannot be read, the known servers without any trust."""
        before, stamp = self._read, _stamp(self._file)
        if before is not None and before[0] == stamp and _is_settled(stamp):
            return before[1]
        found = self._from_file()
        self._read = (stamp, found)
        return found

    def _from_file(self) -> McpConfigured:
        try:
            said = sources.toml(self._file)
            servers = mcp.servers_table(said.get("mcpServers", {}))
            settings: Mcp = forms.table(Mcp)(said.get("mcp", {}))
        except (ConfigError, forms.BadValue) as error:
            why = f"no MCP server of a project starts while it is wrong: {one_line(str(error), 300).rstrip('.')}"
            untrusting = self._known.settings._replace(trusted=_NO_TRUST)
            return McpConfigured(self._known.servers, untrusting, (Problem(str(self._file), why, broken=True),))
        self._known = McpConfigured(servers, settings)
        return self._known


def _stamp(file: os.PathLike[str]) -> _Stamp | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _is_settled(stamp: _Stamp | None) -> bool:
    return stamp is None or abs(time.time_ns() - stamp[-1]) > _SETTLED
