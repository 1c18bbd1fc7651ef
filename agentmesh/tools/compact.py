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
"""The description of fork has these words if it is so. Sessions store them: no release may reword them."""
_ANSWER: Final = "answer in words with these facts, or call the next tool"
_THEN: Final[Mapping[str, str]] = {
    **dict.fromkeys(("bash", "glob", "grep", "read", "wait"), _ANSWER),
    "fork": "call wait only when all children are forked",
    "send": "end with your result in words, or call the next tool",
}
"""The last words of a result, by tool: small models follow the last words that they read."""
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
"""The arguments that a tool keeps, with their words; a tool that is not named here keeps all.

Unless each argument has words of its own, small models copy words of the description into the call.
"""


def definitions(tools: Mapping[str, Tool], *, own_trees: bool) -> list[dict[str, Any]]:
    """Return the definitions of the compact set's built-in tools, as they are sent to models.

    ``own_trees``: forks get working trees of their own, so ``merge`` is needed.
    """
    left_out = LEFT_OUT - {"merge"} if own_trees else LEFT_OUT
    return [
        tool_schema.brief(tool, _ARGUMENTS.get(tool.name), compact_description(tool.name))
        for tool in tools.values()
        if tool.name not in left_out and not isinstance(tool, Report)
    ]


def context_of_forks(told: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the part of the conversation that a fork sees if its call does not say; None for the usual one.

    A small model that sees its parent fork, forks too: decision 0075. What the parent's own tools say holds, so a
    session that began with other words keeps them.
    """
    words = [tool["function"]["description"] for tool in told if tool["function"]["name"] == "fork"]
    return "none" if any(_ALONE in each for each in words) else None


def rewording(told: Sequence[Mapping[str, Any]]) -> Reword | None:
    """Return the function that rewords results for an agent with these tools; None if results stay as they are stored.

    Even when a small model has read the answer, it calls the same tool again, unless the last words that it reads say
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
