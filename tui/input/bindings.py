"""Textual's bindings from our keys: each with its id, so that the configuration can change it."""

from __future__ import annotations

from textual.binding import Binding

from agentmesh.tui.input.keys import DEFAULTS, Keymap

_UNBOUND = "unbound"
"""A key that no keyboard has: Textual cannot take a binding away."""


def bindings_of(place: str) -> list[Binding]:
    """Return the bindings of a place; ``Prompt`` handles those of the input itself."""
    return [
        Binding(key.keys, key.action, key.help, id=key.id, show=key.footer, tooltip=key.help)
        for key in DEFAULTS
        if key.place == place
    ]


def suspend_binding() -> Binding:
    """Return the binding that suspends, for the app: it counts in dialogs too."""
    return next(binding for binding in bindings_of("screen") if binding.id == "app.suspend")


def textual_keymap(keymap: Keymap) -> dict[str, str]:
    """Return what the configuration changed, for ``App.set_keymap``."""
    true = {key.id: key.keys for place in ("screen", "scrollback", "board") for key in keymap.bindings(place)}
    return {
        key.id: true.get(key.id, _UNBOUND) for key in DEFAULTS if key.place != "prompt" and true.get(key.id) != key.keys
    }
