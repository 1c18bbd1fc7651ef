"""The result of an MCP server's tool as a model reads it: text within the limit, and images if it sees them.

Other content is only named.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Any

from agentmesh.domain import images
from agentmesh.domain.errors import BadImage
from agentmesh.domain.images import Image
from agentmesh.domain.text import one_line
from agentmesh.engine.tool import ToolContext, ToolError
from agentmesh.tools.mcp.secrets import Secrets
from agentmesh.tools.output import Capture

if TYPE_CHECKING:
    from mcp_types import CallToolResult

_NO_WORDS = "it says no more"


def result(server: str, answered: CallToolResult, secrets: Secrets, context: ToolContext) -> dict[str, Any]:
    """Return the JSON result of a call, and keep its images; raise ToolError if the server reports a failure."""
    found = _Content(server, context, may_show=not answered.is_error)
    text = "\n".join(filter(None, map(found.shown, answered.content)))
    structured = answered.structured_content
    if structured is not None and not text.strip():
        text = json.dumps(structured, ensure_ascii=False)
    said, is_cut = bounded(secrets.hidden(text), context.output_limit)
    if answered.is_error:
        hint = f"So says the MCP server {server}: change the arguments, or do without."
        raise ToolError(said.strip() or _NO_WORDS, hint, failed_by=server)
    for image in found.images:
        context.keep_image(image)
    shown = {"images": [image.reference() for image in found.images]} if found.images else {}
    return {"output": said, **shown, **({"truncated": True} if is_cut else {})}


def bounded(text: str, limit: int) -> tuple[str, bool]:
    """Return a server's text without escapes and control characters, and whether its middle was cut."""
    capture = Capture(limit)
    capture.feed(text.encode("utf-8", "replace"))
    return capture.text(), capture.truncated


class _Content:
    """The parts of one result."""

    def __init__(self, server: str, context: ToolContext, *, may_show: bool) -> None:
        self.images: list[Image] = []
        """Those that the model is shown."""
        self._server = server
        self._context = context
        self._may_show = may_show

    def shown(self, block: Any) -> str:
        """Return a part as text; a part that is not text becomes a note that names its kind."""
        match block.type:
            case "text":
                return str(block.text)
            case "image":
                return self._image(f"image {_kind(block.mime_type)}", block.data)
            case "audio":
                return f"[audio {_kind(block.mime_type)}, {_size(block.data)}: not shown]"
            case "resource":
                inner = block.resource
                if (text := getattr(inner, "text", None)) is not None:
                    return f"[resource {_kind(str(inner.uri))}]\n{text}"
                what = f"resource {_kind(str(inner.uri))}: {_kind(inner.mime_type or 'of unknown type')}"
                is_image = str(inner.mime_type or "").startswith("image/")
                return self._image(what, inner.blob) if is_image else f"[{what}, {_size(inner.blob)}: not shown]"
            case "resource_link":
                return f"[resource {_kind(str(block.uri))}: {one_line(block.name, 100)}; not read]"
            case other:
                return f"[{_kind(str(other))}: not shown]"

    def _image(self, what: str, data: str) -> str:
        """Take an image in; return where it is shown, or why it is not."""
        name = f"{self._server}-{len(self.images) + 1}"
        try:
            if self._may_show and self._context.sees():
                images.require_few(len(self.images) + 1)
                images.require_size(name, _count(data))
                self.images.append(images.read_image(name, base64.b64decode(data, validate=True)))
                return f"[{what}: {name}, which follows the results of this step]"
        except BadImage as bad:
            return f"[{what}, {_size(data)}: not shown. {bad.message}]"
        except binascii.Error:
            return f"[{what}: not shown, because its base64 is damaged]"
        why = "" if not self._may_show else ", because your model cannot see images"
        return f"[{what}, {_size(data)}: not shown{why}]"


def _kind(text: str) -> str:
    return one_line(text, 200)


def _count(data: str) -> int:
    return len(data) * 3 // 4  # base64


def _size(data: str) -> str:
    return f"{_count(data)} bytes"
