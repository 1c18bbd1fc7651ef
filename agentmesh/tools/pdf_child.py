"""The process that draws pages of a PDF: ``pdf.py`` starts it by its path, with the first and the last page.

PDFium parses strangers' files in C++, so it runs here: with little memory, time and nothing to write to. The PDF comes
on standard input. A line of JSON goes to standard output, and after it the pages as PNG.
"""

from __future__ import annotations

import json
import resource
import struct
import sys
import zlib
from typing import Any

LONG_SIDE = 1568
"""Pixels of a page's longer side: what models read without making it smaller."""
_MEMORY = 2 << 30
_SECONDS = 60


def main(first: int, last: int) -> None:
    """Write ``{"pages": all, "sizes": [[width, height, bytes], ...]}`` and the PNGs, or ``{"error": ...}``."""
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    try:
        import pypdfium2  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        _write({"error": "missing"})
        return
    try:
        document = pypdfium2.PdfDocument(sys.stdin.buffer.read())
        drawn = [_png(document[number]) for number in range(first - 1, min(last, len(document)))]
    except (pypdfium2.PdfiumError, ValueError, MemoryError) as error:
        _write({"error": str(error) or type(error).__name__})
        return
    _write({"pages": len(document), "sizes": [(width, height, len(data)) for width, height, data in drawn]})
    for _, _, data in drawn:
        sys.stdout.buffer.write(data)


def _write(head: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps(head).encode() + b"\n")


def _png(page: Any) -> tuple[int, int, bytes]:
    """Return a page's width, height and PNG."""
    width, height = page.get_size()
    bitmap = page.render(scale=LONG_SIDE / max(width, height, 1.0), rev_byteorder=True)
    rows, channels, stride = memoryview(bitmap.buffer).cast("B"), bitmap.n_channels, bitmap.stride
    colour = {1: 0, 3: 2, 4: 6}[channels]
    size = bitmap.width * channels
    raw = b"".join(b"\0" + bytes(rows[at : at + size]) for at in range(0, bitmap.height * stride, stride))
    head = struct.pack(">IIBBBBB", bitmap.width, bitmap.height, 8, colour, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(raw, 6)), (b"IEND", b""))
    return bitmap.width, bitmap.height, b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
