"""The compact set: the tools that a small model needs, each with few arguments.

Forks and sub-agents get their tools from their parent, so all agents of a session have the same set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from agentmesh.engine.messages import Reword
from agentmesh.engine.tool import Tool
from agentmesh.tools import tool_schema
from agentmesh.tools.report import Report
from agentmesh.tools.words import compact_description

BELOW: Final = 16_384
"""A model whose window has fewer tokens gets the compact set, unless the configuration says otherwise."""
LEFT_OUT: Final = frozenset(
    {"interrupt", "list_agents", "merge", "peek", "process", "skill", "task", "todo", "todo_write", "web_fetch"}
)
_ALONE: Final = "sees only its prompt"
"""What the description of fork says where that is so. Sessions store their descriptions: no release may reword it."""
_ANSWER: Final = "answer in words with these facts, or call the next tool"
_THEN: Final[Mapping[str, str]] = {
    **dict.fromkeys(("bash", "glob", "grep", "read", "wait"), _ANSWER),
    "fork": "call wait only when all children are forked",
    "send": "end with your result in words, or call the next tool",
}
"""What stands at the end of results: small models follow the last words that they read."""
_UNSAID: Final = frozenset({"cache"})
"""Fields of results that a small model can do nothing with. With them, it often waited after its first fork."""
_ARGUMENTS: Final[Mapping[str, Mapping[str, str]]] = {
    "ask_user": {"question": ""},
    "bash": {"command": "", "timeout": ""},
    "edit": {"path": "", "old": "", "new": ""},
    "fork": {"name": "of the child", "prompt": "what this child is to do, in a whole sentence"},
    "glob": {"pattern": ""},
    "grep": {"pattern": "a Python regex", "path": "a file or directory"},
    "read": {"path": "", "offset": ""},
    "send": {"to": "", "message": ""},
}
"""What is left of the arguments, with their words; tools that are not named here keep theirs.

Small models take words of a description for what they are to write, unless each argument has its own.
"""


def definitions(tools: Mapping[str, Tool], *, own_trees: bool) -> list[dict[str, Any]]:
    """Return those of the built-in tools that are in the compact set, as models are sent them.

    ``own_trees``: forks get working trees of their own, so ``merge`` is needed.
    """
    left_out = LEFT_OUT - {"merge"} if own_trees else LEFT_OUT
    return [
        tool_schema.brief(tool, _ARGUMENTS.get(tool.name), compact_description(tool.name))
        for tool in tools.values()
        if tool.name not in left_out and not isinstance(tool, Report)
    ]


def context_of_forks(told: Sequence[Mapping[str, Any]]) -> str | None:
    """Return which part of the conversation a fork sees if its call does not say: None is the usual one.

    A small model that sees its parent fork, forks too: decision 0075. What the parent's own tools say holds, so a
    session that began with other words keeps them.
    """
    words = [tool["function"]["description"] for tool in told if tool["function"]["name"] == "fork"]
    return "none" if any(_ALONE in each for each in words) else None


def rewording(told: Sequence[Mapping[str, Any]]) -> Reword | None:
    """Return how results are written for an agent that was told these tools; None if as they are stored.

    A small model that has read what it was asked for calls the same tool again, unless the last words that it reads say
    what to do: decision 0075. Agents with the full set, and sessions that began with other words, get None.
    """
    said = [(tool["function"]["name"], tool["function"]["description"]) for tool in told]
    is_set = any(words == compact_description(name) for name, words in said)
    return _reworded if is_set else None


def _reworded(tool: str, result: Any) -> Any:
    words = _THEN.get(tool)
    if words is None or not isinstance(result, dict) or "error" in result:
        return result
    return {**{field: value for field, value in result.items() if field not in _UNSAID}, "then": words}
