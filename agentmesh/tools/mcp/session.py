"""A session with a server, by the SDK. A malformed part of a list or of a result does not cost the rest.

The SDK checks each answer as a whole, and raises for any mistake in it.
Import this module late: the SDK takes a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp.client._transport import TransportStreams
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    METHOD_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    ContentBlock,
    Implementation,
    PaginatedRequestParams,
    TextContent,
    Tool,
)
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from agentmesh import __version__
from agentmesh.domain.text import one_line
from agentmesh.tools.mcp.listing import Unreadable
from agentmesh.tools.mcp.reasons import ServerFailed
from agentmesh.tools.mcp.schema import BadSchema, shaped

_MOST_PAGES: Final = 50
_WHOLE: Final = "agentmesh/whole"
"""Where the SDK, which ignores unknown fields, is handed a result that it does not check."""
_BLOCK: Final[TypeAdapter[ContentBlock]] = TypeAdapter(ContentBlock)
_KINDS: Final = ("text", "image", "audio", "resource", "resource_link")
_UNUSED: Final = ("annotations", "icons", "_meta")
"""Fields of a part that no agent sees; a mistake in them does not matter."""


class _Whole(BaseModel):
    """A result that the SDK does not check."""

    answer: dict[str, Any] = Field(alias=_WHOLE)


class Session(ClientSession):
    """The SDK's session; the requests that matter to agents are read part by part."""

    def __init__(self, streams: TransportStreams) -> None:
        self._answers = _Answers(*streams)
        super().__init__(dispatcher=self._answers, client_info=Implementation(name="agentmesh", version=__version__))

    async def begin(self) -> None:
        """Agree on a version of the protocol: first the older way, because some servers end at an unknown request."""
        try:
            await self.initialize()
        except MCPError as error:
            if error.code not in (METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION):
                raise
            await self.discover()

    async def offered(self) -> list[Tool | Unreadable]:
        """Return the server's tools, also those that cannot be read."""
        page = await self.list_tools()
        found = list(page.tools)
        for _ in range(_MOST_PAGES):
            if not page.next_cursor:
                break
            page = await self.list_tools(params=PaginatedRequestParams(cursor=page.next_cursor))
            found += page.tools
        return [*found, *self._answers.unreadable]

    async def called(self, tool: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """Call a tool; do not check the result against the server's own schema, because a model reads it anyway."""
        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=dict(arguments)))
        answer = (await self.send_request(request, _Whole)).answer
        if answer.get("resultType") == "input_required" and "content" not in answer:
            raise ServerFailed("wants to ask the user something during the call, which it cannot do here")
        kept = {key: answer[key] for key in ("content", "structuredContent", "isError") if answer.get(key) is not None}
        if isinstance(kept.get("content"), list):
            kept["content"] = [_readable(part) for part in kept["content"]]
        return CallToolResult.model_validate(kept, by_name=False)


class _Answers(JSONRPCDispatcher[TransportContext]):
    """Takes malformed parts out of answers before the SDK's session checks these."""

    unreadable: list[Unreadable]

    def __init__(self, *streams: Any) -> None:
        super().__init__(*streams)
        self.unreadable = []
        """The tools that were taken out."""

    async def send_raw_request(self, method: str, *others: Any, **more: Any) -> dict[str, Any]:
        answer = await super().send_raw_request(method, *others, **more)
        if method == "tools/call":
            return {"content": [], "resultType": "complete", _WHOLE: answer}
        if method == "tools/list" and isinstance(answer.get("tools"), list):
            return {**answer, "tools": self._tools(answer["tools"])}
        return answer

    def _tools(self, listed: list[Any]) -> list[dict[str, Any]]:
        """Return the tools that can be read, with only what agents see of them."""
        found = []
        for number, tool in enumerate(listed, 1):
            name = tool.get("name") if isinstance(tool, dict) else None
            if not isinstance(name, str) or not name:
                self.unreadable.append(Unreadable(f"number {number}", "has no name"))
                continue
            try:
                given = tool.get("inputSchema")
                schema = shaped({} if given is None else given)
            except BadSchema as bad:
                self.unreadable.append(Unreadable(name, str(bad)))
                continue
            words = {key: tool[key] for key in ("title", "description") if isinstance(tool.get(key), str)}
            found.append({"name": name, "inputSchema": schema, **words})
        return found


def _readable(part: Any) -> ContentBlock:
    """Return a part of a result; one that cannot be read becomes a text that says so."""
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str):
        return TextContent(text="[a part of no type: not shown]")
    try:
        return _BLOCK.validate_python({key: part[key] for key in part if key not in _UNUSED}, by_name=False)
    except ValidationError:
        why = ", because it is malformed" if kind in _KINDS else ""
        return TextContent(text=f"[{one_line(kind, 200)}: not shown{why}]")
