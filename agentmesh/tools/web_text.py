"""A body as text: which media types are text, which charset they are in, and pages as Markdown."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

_TEXT: Final = re.compile(
    r"text/.*|application/(?:(?:.*\+)?(?:json|xml|yaml)|x-yaml|toml|x-toml|x-ndjson|jsonl|javascript|x-javascript"
    r"|ecmascript|x-sh|sql|graphql|x-www-form-urlencoded)|image/svg\+xml"
)
_HTML: Final = ("text/html", "application/xhtml+xml")
_CHARSET: Final = re.compile(r"""charset\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE)
_DECLARED: Final = re.compile(
    rb"""<meta[^>]{0,1000}?charset\s*=\s*["']?([\w.:-]{1,40})|^<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{1,40})""",
    re.IGNORECASE,
)
_MARKS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_KNOWN: Final = re.compile(
    r"utf-8|utf-16(-le|-be)?|ascii|iso8859-\d+|cp(125\d|866|874|932|949|950)|mac-roman|koi8-[ru]|gbk|gb2312|gb18030|big5"
    r"|big5hkscs|shift_jis|euc_jp|euc_kr|iso2022_jp|tis-620"
)
"""Charsets of the web, by their Python names. Python's others are not charsets, or are slow with hostile input."""
_WINDOWS: Final = ("ascii", "iso8859-1")
"""Pages that declare these are read as Windows-1252, as browsers do."""
_PROBE: Final = 8192


@dataclass(frozen=True, slots=True)
class Readable:
    """The part of a body that a model may read."""

    content: str
    title: str = ""
    truncated: bool = False


def kind_of(content_type: str) -> str:
    """Return the media type alone, such as ``text/html``; empty if there is none."""
    return content_type.partition(";")[0].strip().lower()


def is_text(kind: str) -> bool:
    """Whether a media type is text; a missing one may be."""
    return not kind or _TEXT.fullmatch(kind) is not None


def is_binary(body: bytes) -> bool:
    """Whether a body is binary, whatever its media type says."""
    return b"\0" in body[:_PROBE] and not body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def readable(body: bytes, content_type: str, url: str, raw: bool, tick: Callable[[], None]) -> Readable:
    """Return a body as text; convert a page to Markdown unless ``raw``."""
    kind = kind_of(content_type)
    page = kind in _HTML or (not kind and body[:_PROBE].lstrip()[:1] == b"<")
    text = decoded(body, content_type)
    if raw or not page:
        return Readable(text)
    from agentmesh.tools.html_text import markdown

    made = markdown(text, url, tick)
    return Readable(made.text, made.title, made.truncated)


def decoded(body: bytes, content_type: str) -> str:
    """Return a body as text.

    Its charset comes from the byte order mark, the header, or the document itself, in this order. Otherwise it is
    UTF-8, or Windows-1252 if that fails.
    """
    for mark, charset in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(charset, "replace")
    named = _CHARSET.search(content_type)
    declared = _DECLARED.search(body[:_PROBE])
    for label in (
        named[1] if named else "",
        (declared[1] or declared[2]).decode("ascii", "ignore") if declared else "",
    ):
        if charset := _charset(label):
            return body.decode(charset, "replace")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data" and not body[: error.start].isascii():
            return body[: error.start].decode("utf-8")  # cut in the middle of a character
        return body.decode("cp1252", "replace")


def _charset(label: str) -> str:
    """Return Python's name of a charset that a page may have; empty for others."""
    try:
        name = codecs.lookup(label).name if label else ""
    except (LookupError, ValueError):
        return ""
    if not _KNOWN.fullmatch(name):
        return ""
    return "cp1252" if name in _WINDOWS else name
