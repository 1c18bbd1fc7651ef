"""The welcome for a person who has set up no model: three lines."""

from __future__ import annotations


def welcome(help_key: str) -> str:
    """Return the three lines; each fits a narrow terminal."""
    return "\n".join(
        [
            "No model set up: this is a scripted demo; agents and tools are real.",
            "agentmesh setup connects a real one; so does the next start of agentmesh.",
            f"Type demo and press Enter to see agents at work. {help_key}: commands and keys.",
        ]
    )
