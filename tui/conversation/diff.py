"""A unified diff in colours; the signs in the first column say the same without colour."""

from __future__ import annotations

from textual.content import Content

_STYLES = (("+++", "$dim"), ("---", "$dim"), ("@@", "$text-secondary"), ("+", "$text-success"), ("-", "$text-error"))


def diff_content(diff: str) -> Content:
    """Return a diff with its added and removed lines coloured."""
    return Content("\n").join(Content.styled(line, _style(line)) for line in diff.splitlines())


def _style(line: str) -> str:
    return next((style for sign, style in _STYLES if line.startswith(sign)), "")
