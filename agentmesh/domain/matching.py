"""Whether the pattern of a permission rule covers one part of a call.

A pattern that restricts covers all its possible meanings, in every spelling; one that allows covers only its plain one.
"""

from __future__ import annotations

import fnmatch
import functools
import re

from agentmesh.domain.parts import CallPart
from agentmesh.domain.pathglob import covers
from agentmesh.domain.urls import url_allowed, url_restricted

_SCRIPTED = frozenset({"awk", "gawk", "mawk", "nawk", "sed", "gsed"})
"""Programs whose operand is a program: no option in a rule's pattern says what that program does."""
_GLOB = re.compile(r"[*?\[]")


@functools.lru_cache(maxsize=1024)
def names_any(pattern: str, tools: frozenset[str]) -> bool:
    """Whether a rule's pattern of tools names one of these."""
    return any(fnmatch.fnmatchcase(name, pattern) for name in tools)


def restricts(pattern: str, part: CallPart) -> bool:
    """Whether the pattern of a deny or ask rule covers a part."""
    if part.path:
        # A relative pattern must not meet the folders above the working directory.
        further = [text for text in (part.absolute, *part.also) if text.startswith("/") == pattern.startswith("/")]
        return any(covers(pattern, text, widely=True) for text in (part.text, *filter(None, further)))
    texts = (part.text, *part.also)
    if part.tools == frozenset({"web_fetch"}) and url_restricted(pattern, part.text):
        return True
    # A bracket may be meant as one: `deny bash(echo [x]*)`.
    patterns = {pattern, pattern.replace("[", "[[]")}
    return any(fnmatch.fnmatchcase(text, one) or _starts(text, one) for text in texts for one in patterns)


def allows(pattern: str, part: CallPart) -> bool:
    """Whether the pattern of an allow rule covers a part."""
    if part.path:
        return any(covers(pattern, text, widely=False) for text in (part.text, part.absolute) if text)
    if pattern == "*" or pattern == part.text:
        return True
    if part.exact or (part.hazard and not _names_hazard(pattern, part.text)):
        return False
    if part.tools == frozenset({"web_fetch"}):
        return url_allowed(pattern, part.text)
    # `git log *` also allows `git log`.
    return fnmatch.fnmatchcase(part.text, pattern) or part.text == pattern.removesuffix(" *")


def _names_hazard(pattern: str, text: str) -> bool:
    """Whether a pattern covers all options of a command: it names the program alone, or each of the options.

    This does not know which option is the hazard, so each must be named: ``git log *`` does not cover ``--output=x``.
    """
    if " " not in pattern.removesuffix(" *"):
        return True
    named = {_GLOB.split(word)[0].partition("=")[0] for word in pattern.split(" ")[1:]}
    words = text.split(" ")
    options = {word.partition("=")[0] for word in words[1:] if _may_be_option(word)}
    return words[0].rsplit("/", 1)[-1] not in _SCRIPTED and bool(options) and options <= named


def _may_be_option(word: str) -> bool:
    return word.startswith(("-", "'-", '"-')) or bool(re.search(r"[$`*?{\[]", word))


def _starts(text: str, pattern: str) -> bool:
    """Whether a command starts with the pattern's words: a deny of ``rm`` means every ``rm``."""
    return fnmatch.fnmatchcase(text, f"{pattern.removesuffix(' *')} *") or text == pattern.removesuffix(" *")
