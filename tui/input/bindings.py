"""Textual's bindings from our keys: each with its id, so that the configuration can change it."""

from __future__ import annotations

from dataclasses import replace

from textual.binding import Binding

from agentmesh.tui.input.keys import DEFAULTS, Keymap

_UNBOUND = "unbound"
"""A key that no keyboard has: Textual cannot take a binding away."""


def bindings_of(place: str) -> list[Binding]:
    """Return the bindings of a place; ``Prompt`` handles the input's own keys."""
    return [
        Binding(key.keys, key.action, key.help, id=key.id, show=key.footer, tooltip=key.help)
        for key in DEFAULTS
        if key.place == place
    ]


def suspend_binding() -> Binding:
    """Return the binding that suspends, for the app. It has priority: otherwise dialogs would keep it from the app."""
    return replace(next(one for one in bindings_of("screen") if one.id == "app.suspend"), priority=True)


def textual_keymap(keymap: Keymap) -> dict[str, str]:
    """Return the keys that the configuration changed, for ``App.set_keymap``."""
    true = {key.id: key.keys for place in ("screen", "scrollback", "board") for key in keymap.bindings(place)}
    return {
        key.id: true.get(key.id, _UNBOUND) for key in DEFAULTS if key.place != "prompt" and true.get(key.id) != key.keys
    }
