"""The part of the read tool for images and PDF files: models that see get the image, others get words."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agentmesh.domain import images
from agentmesh.domain.errors import BadImage
from agentmesh.domain.images import Image
from agentmesh.engine.tool import ToolContext, ToolError
from agentmesh.tools import pdf
from agentmesh.tools.files import FilePlace

_FOLLOWS: Final = "The image follows the results of this step."


def read(found: FilePlace, fd: int, kind: str, pages: str | None, context: ToolContext) -> Mapping[str, Any]:
    """Return the result for an open file that is an image or a PDF; raise ToolError if it cannot be shown."""
    size = os.fstat(fd).st_size
    if not context.sees():
        what = "a PDF" if kind == images.PDF else "an image"
        hint = (
            "Read its text with `bash`: pdftotext FILE -" if kind == images.PDF else "Inspect it with `bash`: `file`."
        )
        raise ToolError(f"{found.shown} is {what} of {size} bytes, and your model cannot see images.", hint)
    try:
        if kind != images.PDF:
            images.require_size(found.shown, size)
            data = _whole(fd, images.MOST_BYTES)
            return _result(found, data, [images.read_image(found.shown, data)], context)
    except BadImage as bad:
        raise ToolError(bad.message, bad.hint or "") from None
    first, last = pdf.pages_asked(pages)
    if size > pdf.MOST_BYTES:
        raise ToolError(f"{found.shown} has {size} bytes, the limit is {pdf.MOST_BYTES}.", "Read a part of it.")
    data = _whole(fd, pdf.MOST_BYTES)
    drawn = pdf.draw(found.parts[-1], data, first, last, context.cancel)
    shown = _result(found, data, drawn.images, context)
    upto = drawn.first + len(drawn.images) - 1
    return {**shown, "pages": drawn.total, "note": f"Pages {drawn.first} to {upto} of {drawn.total}. {shown['note']}"}


def _result(found: FilePlace, data: bytes, made: Sequence[Image], context: ToolContext) -> dict[str, Any]:
    for image in made:
        try:
            images.require_size(image.name, len(image.data))
        except BadImage as bad:
            raise ToolError(bad.message, "Ask for other pages.") from None
        context.keep_image(image)
    context.seen.append((str(found.path), hashlib.sha256(data).hexdigest()))
    return {"images": [image.reference() for image in made], "note": _FOLLOWS}


def _whole(fd: int, most: int) -> bytes:
    """Return the file from its beginning; a little more than ``most`` if it grew meanwhile."""
    os.lseek(fd, 0, os.SEEK_SET)
    pieces, left = [], most + 1
    while left > 0 and (piece := os.read(fd, min(left, 1 << 20))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)
