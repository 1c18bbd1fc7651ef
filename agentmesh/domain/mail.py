"""Mail in words for people: what agentmesh wrote in an agent's name and why, alarms, and answers to other mail."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from agentmesh.domain.text import one_line

_BEGINS: Final = 40
"""Characters that people are shown of the message that another one answers."""


class About(StrEnum):
    """What mail is about if it is neither a message to another agent nor just how a turn ended."""

    MERGE = "merge"
    """Files that were merged."""
    TASK = "task"
    """The result of a task in the background."""
    REPORT = "report"
    """A report of a fixed form."""
    HALT = "halt"
    """What an agent ended with whose work another one halted; it wakes nobody."""
    PROCESS = "process"
    """A process in the background: how it ended, or a line that it was watched for."""
    ALARM = "alarm"
    """A message of an agent to itself, by a timer; not automatic."""


def answers(content: Mapping[str, Any]) -> str:
    """Return which message a mail answers, for people, as part of a line: ``re 12: its first words``; "" for others."""
    answered = content.get("reply_to")
    if not isinstance(answered, Mapping):
        return ""
    return f"re {answered.get('message_id')}: {one_line(str(answered.get('begins') or ''), _BEGINS)}"


def notes(content: Mapping[str, Any]) -> str:
    """Return all remarks for people about a row of mail, as part of a line."""
    flags = {flag: bool(content.get(flag)) for flag in ("automatic", "failed")}
    return ", ".join(filter(None, [remark(**flags, about=content.get("about")), answers(content)]))


def remark(*, automatic: bool, failed: bool = False, about: str | None = None) -> str:
    """Return a remark for people about mail, as part of a line; "" about mail that its sender wrote."""
    match about:
        case About.MERGE:
            return "merge"
        case About.TASK:
            return "how its task failed" if failed else "result of its task"
        case About.REPORT:
            return "no valid report" if failed else "its report"
        case About.HALT:
            return "its work was halted"
        case About.PROCESS:
            return "process"
        case About.ALARM:
            return "alarm"
    return "how its turn failed" if failed else "automatic report" if automatic else ""
