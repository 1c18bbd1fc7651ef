"""Why a server cannot be used, in words that can follow its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentmesh.domain.text import one_line
from agentmesh.tools.mcp.secrets import MissingVariable
from agentmesh.tools.mcp.transport import UNREAD, Pipes, Way, Web, exchange, first_mistake

if TYPE_CHECKING:
    from mcp.shared.exceptions import MCPError

_CLOSED = "Connection closed"
"""The SDK's message with its code for a lost connection. Servers use that code (-32000) for errors of their own."""
_LOST: Final = (
    _CLOSED,
    "SSE stream ",
    "Failed to parse ",
    "Unexpected content type: ",
    "server answered a request with 202 Accepted",
)
"""How the SDK begins errors of its own, for answers over HTTP that did not come or cannot be read."""
_REFUSALS: Final = frozenset({400, 401, 403, 404, 405, 406, 411, 413, 414, 415, 421, 426, 429, 431})
"""The HTTP statuses that say that nothing was done."""


class ServerFailed(Exception):
    """A server cannot be used; the text says why and can follow the server's name."""


class SessionForgotten(ServerFailed):
    """A server over HTTP does not know the session of a call any more, so it did not carry the call out."""


def is_closed(error: BaseException) -> bool:
    """Return whether the SDK reports a lost connection; a server that says the same cannot be told from it."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import CONNECTION_CLOSED

    return isinstance(error, MCPError) and error.code == CONNECTION_CLOSED and error.message == _CLOSED


def is_refusal(error: BaseException, way: Way | None) -> bool:
    """Return whether a server says that it did not carry a call out. If not, the call may have taken effect."""
    from mcp.shared.exceptions import MCPError

    if not isinstance(error, MCPError) or error.data == UNREAD:
        return False
    status = exchange().status
    return status in _REFUSALS if status >= 400 else not (isinstance(way, Web) and _is_lost(error))


def _is_lost(error: MCPError) -> bool:
    return error.message.startswith(_LOST)


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
    if isinstance(error, RuntimeError):  # the SDK does not speak the server's version of the protocol
        return f"cannot be used: {one_line(str(error), 300)}"
    is_answer = isinstance(error, MCPError) and not is_closed(error)
    if way is not None and not (is_answer and isinstance(way, Pipes)) and (ending := way.ending()):
        return ending
    if isinstance(error, MCPError):
        verb = "gave no answer that can be read" if isinstance(way, Web) and _is_lost(error) else "refused it"
        return f"{verb}: {one_line(error.message, 300)}"
    where = "cannot be reached" if isinstance(way, Web) else "cannot be started"
    return f"{where}: {one_line(str(error) or type(error).__name__, 300)}"
