"""The result of an MCP server's tool as a model reads it: text, within the limit; other content is only named."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agentmesh.domain.text import one_line
from agentmesh.engine.tool import ToolError
from agentmesh.tools.mcp.secrets import Secrets
from agentmesh.tools.output import Capture

if TYPE_CHECKING:
    from mcp_types import CallToolResult

_NO_WORDS = "it says no more"


def result(server: str, answered: CallToolResult, secrets: Secrets, limit: int) -> dict[str, Any]:
    """Return the JSON result of a call; raise ToolError if the server reports a failure."""
    parts = [_shown(block) for block in answered.content]
    text = "\n".join(part for part in parts if part)
    structured = answered.structured_content
    if structured is not None and not text.strip():
        text = json.dumps(structured, ensure_ascii=False)
    said, is_cut = bounded(secrets.hidden(text), limit)
    if answered.is_error:
        hint = f"So says the MCP server {server}: change the arguments, or do without."
        raise ToolError(said.strip() or _NO_WORDS, hint, failed_by=server)
    return {"output": said, **({"truncated": True} if is_cut else {})}


def bounded(text: str, limit: int) -> tuple[str, bool]:
    """Return a server's text without escapes and control characters, and whether its middle was cut."""
    capture = Capture(limit)
    capture.feed(text.encode("utf-8", "replace"))
    return capture.text(), capture.truncated


def _shown(block: Any) -> str:
    """Return a part of a result as text; a part that is not text becomes a note with its type and size."""
    match block.type:
        case "text":
            return str(block.text)
        case "image" | "audio":
            return f"[{block.type} {_kind(block.mime_type)}, {_size(block.data)}: not shown]"
        case "resource":
            inner = block.resource
            if (text := getattr(inner, "text", None)) is not None:
                return f"[resource {_kind(str(inner.uri))}]\n{text}"
            kind = _kind(inner.mime_type or "of unknown type")
            return f"[resource {_kind(str(inner.uri))}: {kind}, {_size(inner.blob)}: not shown]"
        case "resource_link":
            return f"[resource {_kind(str(block.uri))}: {one_line(block.name, 100)}; not read]"
        case other:
            return f"[{_kind(str(other))}: not shown]"


def _kind(text: str) -> str:
    return one_line(text, 200)


def _size(data: str) -> str:
    return f"{len(data) * 3 // 4} bytes"  # base64
