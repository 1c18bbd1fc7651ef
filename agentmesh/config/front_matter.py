"""Markdown with front matter: keys in YAML between two lines of ``---``, then text.

Every value stays text: ``no`` is not a boolean, and ``2026-01-01`` is not a date. Each key has its line number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from agentmesh.domain.text import one_line

Value = str | list[str] | dict[str, list[str]]
"""The value of a key: text, a list of texts, or such lists by name."""

_FENCE: Final = re.compile(r"---[ \t]*")
_UNQUOTED: Final = re.compile(r"([\w-]+):[ \t]+([^\s\"'\[{|>&*!#%@`].*: .*)")
"""A value that is not valid YAML because of its colon."""
_ANY: Final = re.compile(r"([\w-]+):[ \t]+([^\s\"'|>#].*)")
"""A value on its line: if only some keys count, all such values are text (``argument-hint: [file] [line]``)."""
_MAX_CHARACTERS: Final = 32_768
_SWITCHES: Final = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


class BadFrontMatter(Exception):
    """The front matter cannot be read; the text says why and can follow the file's name."""

    def __init__(self, words: str, line: int) -> None:
        super().__init__(words)
        self.line = line


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """A parsed file."""

    values: Mapping[str, Value]
    lines: Mapping[str, int]
    """The line of each key."""
    body: str

    def text(self, key: str) -> str:
        """Return a value as text, and a list as it was written: ``argument-hint: [file]`` means just that."""
        value = self.values.get(key, "")
        return value.strip() if isinstance(value, str) else " ".join(f"[{part}]" for part in value)


def switch(text: str) -> bool | None:
    """Return whether a value such as ``yes`` or ``false`` means true; None for any other text."""
    return _SWITCHES.get(text.lower())


def parse(text: str, only: Collection[str] | None = None) -> FrontMatter:
    """Parse a file; raise BadFrontMatter. For a format in which others add keys, ``only`` names the keys to read."""
    lines = text.splitlines()
    if not lines or not _FENCE.fullmatch(lines[0]):
        raise BadFrontMatter("has no front matter: its first line should be ---", 1)
    end = next((n for n, line in enumerate(lines[1:], 1) if _FENCE.fullmatch(line)), None)
    if end is None:
        raise BadFrontMatter("has front matter without an end: a second line of --- is missing", len(lines))
    head = lines[1:end]
    if sum(map(len, head)) > _MAX_CHARACTERS:
        raise BadFrontMatter(f"has front matter of more than {_MAX_CHARACTERS} characters", 1)
    values: dict[str, Value] = {}
    where: dict[str, int] = {}
    for name, value, line in _entries(_root(head, _UNQUOTED if only is None else _ANY), only):
        if name in values:
            raise BadFrontMatter(f"has the key {one_line(name, 40)} twice", line)
        values[name], where[name] = value, line
    return FrontMatter(values, where, "\n".join(lines[end + 1 :]).strip())


def _root(head: list[str], text: re.Pattern[str]) -> Any:
    try:
        return _composed(head)
    except BadFrontMatter:
        # `description: Use it so: ...` is not valid YAML, but many people write it.
        quoted = [_quoted(line, text) for line in head]
        if quoted == head:
            raise
        return _composed(quoted)


def _quoted(line: str, text: re.Pattern[str]) -> str:
    found = text.fullmatch(line)
    return f"{found[1]}: {json.dumps(found[2].rstrip(), ensure_ascii=False)}" if found else line


def _composed(head: list[str]) -> Any:
    import yaml

    try:
        return yaml.compose("\n".join(head), Loader=yaml.BaseLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        words = one_line(error.problem or "it cannot be read", 120)
        raise BadFrontMatter(f"is not valid YAML: {words}", (mark.line if mark else 0) + 2) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise BadFrontMatter("is not valid YAML", 2) from error


def _entries(root: Any, only: Collection[str] | None) -> Iterator[tuple[str, Value, int]]:
    import yaml

    if root is None:
        return
    if not isinstance(root, yaml.MappingNode):
        raise BadFrontMatter("has front matter that is not a list of keys and values", 2)
    for key, value in root.value:
        line = key.start_mark.line + 2
        if not isinstance(key, yaml.ScalarNode):
            raise BadFrontMatter("has a key that is not text", line)
        if only is not None and key.value not in only:
            continue
        if isinstance(value, yaml.MappingNode):
            yield key.value, _named(value), line
        elif isinstance(value, yaml.SequenceNode):
            yield key.value, _texts(value), line
        else:
            yield key.value, value.value, line


def _named(node: Any) -> dict[str, list[str]]:
    named: dict[str, list[str]] = {}
    for key, value in node.value:
        if (name := _text(key)) in named:
            raise BadFrontMatter(f"has the key {one_line(name, 40)} twice", key.start_mark.line + 2)
        named[name] = _texts(value)
    return named


def _texts(node: Any) -> list[str]:
    import yaml

    if isinstance(node, yaml.SequenceNode):
        return [_text(each) for each in node.value]
    text = _text(node)
    return [text] if text else []


def _text(node: Any) -> str:
    import yaml

    if not isinstance(node, yaml.ScalarNode):
        raise BadFrontMatter("has a value in a value where text should be", node.start_mark.line + 2)
    return str(node.value)
