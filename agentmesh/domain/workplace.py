"""The part of a system prompt that differs between directories. Models read it at the beginning of the conversation.

Templates of local models write the system message before the tools. With the part in it, agents of two directories
would begin differently, and a server would read the tools again. So it stands before the first message's own words.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_OPEN: Final = "<workplace>\n[Not from the user.] "
_CLOSE: Final = "\n</workplace>"
_MARK: Final = re.compile(r"<(?=\s*/?\s*workplace)", re.IGNORECASE)
_HARMLESS: Final = r"<\\"


def framed(text: str) -> str:
    """Return a text as such a part; nothing in it can end the part early."""
    return f"{_OPEN}{_MARK.sub(_HARMLESS, text)}{_CLOSE}"


@lru_cache(maxsize=64)
def split(prompt: str) -> tuple[str, str]:
    """Return a stored system prompt without its last part, and the part; an empty one if it has none."""
    head, found, rest = prompt.rpartition(f"\n\n{_OPEN}")
    return (head, f"{_OPEN}{rest}") if found and rest.endswith(_CLOSE) else (prompt, "")


def parted(text: str) -> tuple[str, str]:
    """Return the part before the words of a conversation's first message, and the words."""
    part, found, words = text.partition(f"{_CLOSE}\n\n") if text.startswith(_OPEN) else ("", "", "")
    return (f"{part}{_CLOSE}", words) if found else ("", text)


def before(part: str, words: str) -> str:
    """Return the text of a conversation's first message: the part, then the words."""
    return f"{part}\n\n{words}"
