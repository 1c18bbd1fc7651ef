"""MCP servers in the configuration: a person's own file, and a project's ``.mcp.json``.

A project's file comes with a checkout that anybody may have written, and a server is a program. So none of its servers
starts until the person has trusted the file with exactly this content.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

from agentmesh.config import documents, forms, paths
from agentmesh.config.documents import Problem
from agentmesh.config.forms import BadValue, boolean, decimal, entries, matching, optional, shown, text, word
from agentmesh.domain import jsontext
from agentmesh.domain.text import one_line
from agentmesh.domain.tool_names import MCP_PREFIX

PROJECT_FILE: Final = ".mcp.json"

_NONE: Final[Mapping[str, Any]] = {}
_MOST_BYTES: Final = 1024 * 1024
_NAME: Final = matching(r"\w[\w .-]{0,31}", "should be a name of at most 32 letters, digits, '_', '-', '.' and blanks")
_VARIABLE: Final = matching(r"[A-Za-z_]\w*", "should be the name of an environment variable")
_HEADER: Final = matching(r"[!-9;-~]+", "should be the name of a header")
_DIGEST: Final = matching(r"[0-9a-f]{64}", "should be a SHA-256 in 64 hexadecimal digits")
_ADDRESS: Final = matching(r"(https?://|\$\{)\S+", "should be a URL, as in https://example.com/mcp")
_LINE: Final = matching(r".*\S.*", "should be one line of text, not empty")


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise BadValue("should be a list of texts")
    return tuple(text(each) for each in value)


class McpServer(NamedTuple):
    """How to reach a server: a command, or a URL. ``${NAME}`` is a variable of the environment, read when it starts."""

    command: Annotated[str | None, optional(_LINE)] = None
    """Program that speaks MCP on its standard input and output."""
    args: Annotated[tuple[str, ...], _texts] = ()
    """Its arguments."""
    env: Annotated[Mapping[str, str], entries(_VARIABLE, text)] = _NONE
    """Further variables for it; it gets few of this program's own."""
    cwd: Annotated[str | None, optional(_LINE)] = None
    """Where it runs; by default in the session's working directory."""
    url: Annotated[str | None, optional(_ADDRESS)] = None
    """Address of a server that speaks streamable HTTP."""
    headers: Annotated[Mapping[str, str], entries(_HEADER, text)] = _NONE
    """Further headers of every request."""
    type: Annotated[
        Literal["stdio", "http", "streamable-http", "streamableHttp"] | None,
        optional(word("stdio", "http", "streamable-http", "streamableHttp")),
    ] = None
    """``command`` or ``url`` already says it; accepted because other programs write it."""
    disabled: Annotated[bool, boolean] = False
    """``true``: it does not start."""
    timeout: Annotated[float | None, optional(decimal(gt=0, le=86_400))] = None
    """Seconds for one call; by default ``mcp.call_timeout``."""
    tools: Annotated[tuple[str, ...], _texts] = ("*",)
    """Which of its tools agents get: the server's own names, or patterns."""

    def __repr__(self) -> str:
        return shown(self, hidden=("args", "env", "url", "headers"))


class Mcp(NamedTuple):
    """Settings for all MCP servers."""

    start_timeout: Annotated[float, decimal(gt=0, le=3600)] = 20.0
    """Seconds in which a server must have started and listed its tools."""
    call_timeout: Annotated[float, decimal(gt=0, le=86_400)] = 120.0
    """Seconds for one call."""
    trusted: Annotated[Mapping[str, str], entries(_LINE, _DIGEST)] = _NONE
    """The ``.mcp.json`` files whose servers may start, each with the SHA-256 of its content."""


def server(value: Any) -> McpServer:
    """Return one entry of a table of servers; raise BadValue."""
    made: McpServer = forms.table(McpServer)(value)
    if (made.command is None) == (made.url is None):
        raise BadValue("should have either a command or a url")
    return made


servers_table: Final = entries(_NAME, server)
"""The form of ``mcpServers``."""


class NamedServer(NamedTuple):
    """A server that may start."""

    name: str
    """As written in the file."""
    settings: McpServer
    source: str
    """The file that names it."""

    @property
    def slug(self) -> str:
        """Its part in the names of its tools."""
        return slug(self.name)

    @property
    def key(self) -> str:
        """A key that is the same for the same settings; never shown, because it is derived from secrets in them."""
        known = [self.name, *(getattr(self.settings, name) for name in forms.keys(McpServer))]
        from hashlib import sha256

        return sha256(json.dumps(known).encode()).hexdigest()


class McpServers(NamedTuple):
    """The servers that are configured for a working directory."""

    servers: Mapping[str, NamedServer] = _NONE
    """The servers that may start, by slug."""
    problems: tuple[Problem, ...] = ()
    """The servers that do not start and why, in words for people."""


def slug(name: str) -> str:
    """Return a name with only the characters that model servers allow in the name of a tool."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


def read(workdir: Path, own: Mapping[str, McpServer], settings: Mcp, environ: Mapping[str, str]) -> McpServers:
    """Return the servers of a person's own configuration and of the project's file; never raise."""
    user_file = paths.user_config(environ)
    found: dict[str, NamedServer] = {}
    problems: list[Problem] = []
    candidates = [NamedServer(name, each, str(user_file)) for name, each in own.items()]
    of_project, told = _of_project(workdir / PROJECT_FILE, workdir, settings, user_file)
    problems += told
    for each in (*candidates, *of_project):
        if each.settings.disabled:
            continue
        if (other := found.get(each.slug)) is not None:
            shown = one_line(each.name, 40)
            words = f"the MCP server {shown} is left out: {other.source} has one of that name already"
            problems.append(Problem(each.source, words))
            continue
        found[each.slug] = each
    return McpServers(found, tuple(problems))


def _of_project(file: Path, workdir: Path, settings: Mcp, user_file: Path) -> tuple[list[NamedServer], list[Problem]]:
    """Return the servers of a project's file if it is trusted, and the problems to report."""
    try:
        content, tables = _tables(file, workdir)
    except FileNotFoundError:
        return [], []
    except documents.Unreadable as error:
        return [], [Problem(str(file), str(error), broken=True)]
    if not tables:
        return [], []
    from hashlib import sha256  # most directories have no such file

    path, digest = str(file.resolve()), sha256(content.encode()).hexdigest()
    if settings.trusted.get(path) != digest:
        return [], [Problem(str(file), _untrusted(tables, path, digest, settings, user_file))]
    found, problems = [], []
    for name, value in tables.items():
        try:
            known, unknown = _known(value)
            found.append(NamedServer(str(_NAME(name)), server(known), str(file)))
        except BadValue as error:
            key = one_line(".".join((name, *error.key)), 80)
            problems.append(Problem(str(file), f"{key} {error.complaint}; this server does not start", broken=True))
            continue
        if unknown:
            words = f"{one_line(name, 40)} has keys that mean nothing here: {one_line(', '.join(unknown), 100)}"
            problems.append(Problem(str(file), words))
    return found, problems


def _untrusted(tables: Mapping[str, Any], path: str, digest: str, settings: Mcp, user_file: Path) -> str:
    names = one_line(", ".join(tables), 120)
    why = "the file has changed since you trusted it" if path in settings.trusted else "you have not trusted the file"
    line = f'{json.dumps(path, ensure_ascii=False)} = "{digest}"'
    return f"its MCP servers ({names}) do not start: {why}. Read it, then put {line} below [mcp.trusted] in {user_file}"


def _tables(file: Path, workdir: Path) -> tuple[str, Mapping[str, Any]]:
    """Return the text of a project's file, and the servers that it names."""
    content, left_out = documents.read(file, _MOST_BYTES, below=workdir)
    if left_out:
        raise documents.Unreadable(f"is larger than {_MOST_BYTES >> 20} MiB, and is not read")
    try:
        document = jsontext.parse(content)
    except ValueError as error:
        raise documents.Unreadable(f"is not valid JSON: {one_line(str(error), 120)}") from error
    tables = document.get("mcpServers", {}) if isinstance(document, dict) else None
    if not isinstance(tables, dict):
        raise documents.Unreadable('should be a JSON object with the key "mcpServers"')
    return content, tables


def _known(value: Any) -> tuple[Any, list[str]]:
    """Return a server without keys that only other programs know, and those keys."""
    if not isinstance(value, dict):
        return value, []
    ours = forms.keys(McpServer)
    return {k: v for k, v in value.items() if k in ours}, [k for k in value if k not in ours]


def named(tool: str, servers: Mapping[str, NamedServer]) -> Iterator[tuple[NamedServer, str]]:
    """Yield the servers that a tool's name may mean, with the tool's own part of it; the longest server name first."""
    rest = tool.removeprefix(MCP_PREFIX)
    for each in sorted(servers, key=len, reverse=True):
        if tool.startswith(MCP_PREFIX) and rest.startswith(f"{each}__"):
            yield servers[each], rest[len(each) + 2 :]


def may_mean(pattern: str, name: str) -> bool:
    """Whether a pattern matches a tool's name; a name ``mcp__x__*`` stands for any tool of a server."""
    if fnmatch.fnmatchcase(name, pattern):
        return True
    if not (name.startswith(MCP_PREFIX) and name.endswith("*")):
        return False
    ours, theirs = name[:-1], re.split(r"[*?\[]", pattern, maxsplit=1)[0]
    return theirs.startswith(ours) or (ours.startswith(theirs) and theirs != pattern)
