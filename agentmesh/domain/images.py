"""Images: what their first bytes say, how rows refer to them, and what they count as tokens.

An image is known by its bytes, never by a file's name. Nothing here decodes a pixel.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final, NamedTuple

from agentmesh.domain.errors import BadImage
from agentmesh.domain.states import Kind
from agentmesh.domain.text import one_line
from agentmesh.domain.tool_names import MCP_PREFIX

MOST_BYTES: Final = 5 * 1024 * 1024
"""Bytes of one image. Anthropic refuses larger ones, and so do gateways to it."""
MOST_PIXELS: Final = 8000
"""Pixels of the longer side, likewise."""
MOST_IN_MESSAGE: Final = 20
PDF: Final = "application/pdf"
SUFFIXES: Final = (".png", ".jpg", ".jpeg", ".webp")
"""Names of files that an ``@`` in a message attaches."""

_PNG: Final = b"\x89PNG\r\n\x1a\n"
_CHUNK: Final = 12
"""Bytes of a PNG chunk besides its data."""
_NAME_WIDTH: Final = 80
_PIXELS_PER_TOKEN, _LEAST_TOKENS, _MOST_TOKENS = 750, 85, 5700
_SHOWN: Final = {"image/png": "PNG", "image/jpeg": "JPEG", "image/webp": "WebP"}
_LIMITS: Final = "Crop it or make it smaller."
_FORMATS: Final = "PNG, JPEG and WebP can be shown: convert it."


class Image(NamedTuple):
    """An image with its bytes."""

    name: str
    """For people and models: the file's name, and a page if it is one of a PDF."""
    media_type: str
    width: int
    height: int
    data: bytes

    @property
    def digest(self) -> str:
        """Return the SHA-256 of its bytes."""
        import hashlib  # not at the start of the screen, which only names images

        return hashlib.sha256(self.data).hexdigest()

    def reference(self) -> dict[str, Any]:
        """Return the reference that rows store instead of the bytes."""
        return {
            "name": self.name,
            "media_type": self.media_type,
            "width": self.width,
            "height": self.height,
            "bytes": len(self.data),
            "tokens": tokens(self.width, self.height),
            "sha256": self.digest,
        }


def kind_of(data: bytes) -> str | None:
    """Return the media type that the first bytes tell, also of a GIF or a PDF; None for all others."""
    if data.startswith(_PNG):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return PDF if data.startswith(b"%PDF-") else None


def read_image(name: str, data: bytes) -> Image:
    """Return the image in these bytes; raise BadImage if they are no image, damaged, or larger than models accept."""
    shown = one_line(PurePath(name).name or name, _NAME_WIDTH)
    if not data:
        raise BadImage(f"{shown} is empty.", hint="Save the image again.")
    require_size(shown, len(data))
    kind = kind_of(data)
    if kind not in _MEASURES:
        what = {"image/gif": "a GIF", PDF: "a PDF"}.get(kind or "", "not a PNG, JPEG or WebP image")
        raise BadImage(f"{shown} is {what}.", hint=_FORMATS)
    try:
        width, height = _MEASURES[kind](data)
    except (_Damaged, struct.error, IndexError):
        raise BadImage(f"{shown} is damaged or cut off.", hint="Save the image again.") from None
    if not (0 < width <= MOST_PIXELS and 0 < height <= MOST_PIXELS):
        raise BadImage(f"{shown} has {width:,}×{height:,} pixels, the limit is {MOST_PIXELS:,} a side.", hint=_LIMITS)
    return Image(shown, kind, width, height, data)


def require_size(name: str, count: int) -> None:
    """Raise BadImage for a file that has too many bytes."""
    if count > MOST_BYTES:
        raise BadImage(f"{name} has {count / 2**20:.1f} MiB, the limit is {MOST_BYTES >> 20} MiB.", hint=_LIMITS)


def require_few(count: int) -> None:
    """Raise BadImage for more images than one message may have."""
    if count > MOST_IN_MESSAGE:
        raise BadImage(f"{count} images are too many for one message.", hint=f"Send at most {MOST_IN_MESSAGE} at once.")


def tokens(width: int, height: int) -> int:
    """Return about how many tokens an image takes; no known server counts much more."""
    return min(_LEAST_TOKENS + width * height // _PIXELS_PER_TOKEN, _MOST_TOKENS)


def label(reference: Mapping[str, Any]) -> str:
    """Return how people and models read of an image: ``[image shot.png 640×480 PNG]``."""
    name = one_line(str(reference.get("name") or "?"), _NAME_WIDTH)
    kind = _SHOWN.get(str(reference.get("media_type")), "?")
    return f"[image {name} {reference.get('width', '?')}×{reference.get('height', '?')} {kind}]"


def labels(content: Mapping[str, Any]) -> str:
    """Return the labels of all images that a row or a result refers to, one a line; "" if there are none."""
    return "\n".join(map(label, references(content)))


def with_labels(text: Any, content: Mapping[str, Any]) -> str:
    """Return a message's text with the labels of its images below it."""
    said = str(text or "")
    return "\n".join(filter(None, [said, labels(content)])) if content.get("images") else said


def references(content: Any) -> Sequence[Mapping[str, Any]]:
    """Return the images that the ``images`` of a row or a result refer to."""
    found = content.get("images") if isinstance(content, Mapping) else None
    if not isinstance(found, list):
        return ()
    return [one for one in found if isinstance(one, Mapping) and isinstance(one.get("sha256"), str)]


def of_row(kind: str, content: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the images that a row of a transcript refers to; the database's ``images_of`` does the same."""
    if kind == Kind.USER:
        return references(content)
    result = content.get("result")
    if kind != Kind.TOOL_RESULT or not isinstance(result, Mapping):
        return ()
    if content.get("name") == "read" or str(content.get("name")).startswith(MCP_PREFIX):
        return references(result)
    entries = result.get("results") if content.get("name") == "wait" else None
    return references(entries[-1]) if isinstance(entries, list) and entries else ()


class _Damaged(Exception):
    """The bytes break off, or contradict themselves."""


def _png(data: bytes) -> tuple[int, int]:
    at = len(_PNG)
    while True:
        length, kind = struct.unpack_from(">I4s", data, at)
        end = at + _CHUNK + length
        if end > len(data) or zlib.crc32(data[at + 4 : end - 4]) != struct.unpack_from(">I", data, end - 4)[0]:
            raise _Damaged
        if kind == b"IEND":
            break
        at = end
    if data[12:16] != b"IHDR":
        raise _Damaged
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _jpeg(data: bytes) -> tuple[int, int]:
    if b"\xff\xd9" not in data[-4096:]:  # cameras add a few bytes behind the end
        raise _Damaged
    at = 2
    while data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:  # padding
            at += 1
            continue
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        at += 2 + struct.unpack_from(">H", data, at + 2)[0]
    raise _Damaged


def _webp(data: bytes) -> tuple[int, int]:
    if len(data) < 30 or struct.unpack_from("<I", data, 4)[0] + 8 > len(data):
        raise _Damaged
    form = data[12:16]
    if form == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if form == b"VP8L" and data[20] == 0x2F:
        bits = struct.unpack_from("<I", data, 21)[0]
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if form == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    raise _Damaged


_MEASURES: Final = {"image/png": _png, "image/jpeg": _jpeg, "image/webp": _webp}
