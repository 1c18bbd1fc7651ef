"""Facts, one per line."""

from __future__ import annotations

from collections.abc import Mapping

from agentmesh.domain.text import one_line


def print_facts(facts: Mapping[str, object]) -> None:
    """Print each fact with its name; leave out unknown ones."""
    width = max(map(len, facts))
    for name, value in facts.items():
        if value is not None:
            shown = {True: "yes", False: "no"}[value] if isinstance(value, bool) else one_line(str(value), 500)
            print(f"{name.replace('_', ' '):{width}}  {shown}")
