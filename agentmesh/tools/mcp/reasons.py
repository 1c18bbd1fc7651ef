"""Why a server cannot be used, in words that can follow its name."""

from __future__ import annotations

from agentmesh.domain.text import one_line
from agentmesh.tools.mcp.secrets import MissingVariable
from agentmesh.tools.mcp.transport import UNREAD, Pipes, Way, Web, first_mistake

_CLOSED = "Connection closed"
"""The SDK's message with its code for a lost connection. Servers use that code (-32000) for errors of their own."""


class ServerFailed(Exception):
    """A server cannot be used; the text says why and can follow the server's name."""


def is_closed(error: BaseException) -> bool:
    """Return whether the SDK reports a lost connection; a server that says the same cannot be told from it."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import CONNECTION_CLOSED

    return isinstance(error, MCPError) and error.code == CONNECTION_CLOSED and error.message == _CLOSED


def reason(error: BaseException, way: Way | None, start_timeout: float) -> str:
    """Return why a server failed while it started or was used; the text may still contain secrets."""
    from mcp.shared.exceptions import MCPError
    from pydantic import ValidationError

    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, MissingVariable):
        return f"needs the variable {error}, which is not set"
    if isinstance(error, TimeoutError):
        return f"did not start within {start_timeout:g} s{way.last_words() if way else ''}"
    if isinstance(error, ValidationError):
        return f"answered with an invalid message ({first_mistake(error)})"
    if isinstance(error, MCPError) and error.data == UNREAD:
        return f"answered with an invalid message ({error.message})"
    is_answer = isinstance(error, MCPError) and not is_closed(error)
    if way is not None and not (is_answer and isinstance(way, Pipes)) and (ending := way.ending()):
        return ending
    if isinstance(error, MCPError):
        return f"refused it: {one_line(error.message, 300)}"
    where = "cannot be reached" if isinstance(way, Web) else "cannot be started"
    return f"{where}: {one_line(str(error) or type(error).__name__, 300)}"
