"""The terminal UI's slash commands and keys, as /help and F1 show them."""

from __future__ import annotations

from agentmesh.tui.commands.catalog import COMMANDS
from agentmesh.tui.input.keys import DEFAULTS, label
from scripts.reference.pages import code, table

_PLACES = {
    "screen": "on the main screen",
    "prompt": "in the input",
    "scrollback": "in the conversation, after Tab",
    "board": "on the board",
}


def slash_commands() -> str:
    """Return the built-in commands."""
    return table(["command", "does"], [[code(one.usage), one.help] for one in COMMANDS.values()])


def keys() -> str:
    """Return the keys as they are without any configuration."""
    rows = [
        [", ".join(label(key) for key in one.keys.split(",")), one.help, _PLACES[one.place], code(one.id)]
        for one in DEFAULTS
    ]
    return table(["key", "does", "where", "name in `[tui.keys]`"], rows)
