"""How to install what only some need."""

from __future__ import annotations


def install_words(extra: str) -> str:
    """Return how to install an extra. It is a checkout's, because agentmesh is not on PyPI."""
    return f"pip install '.[{extra}]' in a checkout of agentmesh"
