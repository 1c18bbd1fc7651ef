"""The keys: defaults by id, changes by the configuration, and their names for people."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple

from agentmesh.domain.errors import ConfigError
from agentmesh.domain.text import one_line


class Key(NamedTuple):
    """One thing that keys do. ``Binding(key.keys, key.action, key.help, id=key.id, show=key.footer)``."""

    id: str
    """The name in the configuration: ``[tui.keys]``."""
    keys: str
    """Textual's names, separated by commas."""
    action: str
    """Textual's action, of the screen or of the prompt (see ``place``)."""
    help: str
    place: str = "screen"
    """``screen``, ``prompt``, ``scrollback`` or ``board``: where the key works."""
    footer: bool = False
    """Whether the footer shows it."""


DEFAULTS: tuple[Key, ...] = (
    Key("rotate.previous", "ctrl+left,alt+left", "rotate('previous')", "Previous sibling", footer=True),
    Key("rotate.next", "ctrl+right,alt+right", "rotate('next')", "Next sibling", footer=True),
    Key("rotate.parent", "ctrl+up,alt+up", "rotate('parent')", "Parent", footer=True),
    Key("rotate.child", "ctrl+down,alt+down", "rotate('child')", "Newest child", footer=True),
    Key("rotate.previous_always", "f7", "rotate('previous')", "Previous sibling, also with text in the input"),
    Key("rotate.next_always", "f8", "rotate('next')", "Next sibling, also with text in the input"),
    Key("agents.pick", "ctrl+p", "pick_agent", "Pick an agent", footer=True),
    Key("agents.tree", "ctrl+t", "toggle_tree", "Tree of all agents"),
    Key("board.open", "f12", "open_board", "Board: all agents, those that need you first"),
    Key("task.enter", "f3", "enter_task", "Go to the sub-agent of the newest task"),
    Key("task.background", "ctrl+b", "background_task", "Let the newest task go on in the background"),
    Key("needs.next", "f9", "next_need", "Go to an agent that needs you, or whose answer you have not seen"),
    Key("requests.answer", "f2", "answer_requests", "Answer what agents ask you", footer=True),
    Key("agent.interrupt", "escape", "interrupt", "Interrupt the agent; twice: its subtree too"),
    Key("mail.take_back", "f4", "take_back", "Take back the last unread message"),
    Key("mode.next", "shift+tab", "next_mode", "Next permission mode"),
    Key("folds.toggle", "ctrl+o", "toggle_folds", "Unfold or fold all tool calls"),
    Key("answer.copy", "f6", "copy_answer", "Copy the last answer, or the entry that Tab led to"),
    Key("scroll.page_up", "pageup", "scroll('page_up')", "Scroll up"),
    Key("scroll.page_down", "pagedown", "scroll('page_down')", "Scroll down"),
    Key("scroll.top", "ctrl+home", "scroll('top')", "To the top"),
    Key("scroll.bottom", "ctrl+end", "scroll('bottom')", "To the newest"),
    Key("app.help", "f1", "help", "Help", footer=True),
    Key("app.suspend", "ctrl+z", "app.suspend_process", "Suspend to the shell; its fg comes back"),
    Key("app.quit", "ctrl+c", "quit_or_copy", "Copy the selection; without one, twice: leave"),
    Key("prompt.submit", "enter", "submit", "Send", place="prompt"),
    Key("prompt.newline", "shift+enter,ctrl+j,alt+enter", "newline", "New line", place="prompt"),
    Key("prompt.complete", "tab", "complete", "Complete", place="prompt"),
    Key("prompt.older", "up", "history('older')", "Older input (in the first line)", place="prompt"),
    Key("prompt.newer", "down", "history('newer')", "Newer input (in the last line)", place="prompt"),
    Key("prompt.search", "ctrl+r", "search_history", "Search earlier inputs", place="prompt"),
    Key("prompt.undo", "ctrl+underscore", "undo", "Undo", place="prompt"),
    Key("prompt.editor", "ctrl+g", "edit_outside", "Edit the input in $EDITOR", place="prompt"),
    Key("entry.fork", "f5", "screen.fork_here", "Fork from the entry that Tab led to", place="scrollback"),
    Key("entry.fold", "enter,space", "fold", "Unfold or fold the entry that Tab led to", place="scrollback"),
    Key("entry.enter", "right", "enter", "Go to the sub-agent of the task that Tab led to", place="scrollback"),
    Key("entry.older", "up", "near(-1)", "The entry above", place="scrollback"),
    Key("entry.newer", "down", "near(1)", "The entry below", place="scrollback"),
    Key("entry.leave", "tab", "screen.to_prompt", "Back to the input", place="scrollback"),
    Key("board.go", "enter", "go", "Go to the agent", place="board"),
    Key("board.select", "space", "select", "Select the agent, or no longer", place="board"),
    Key("board.interrupt", "ctrl+x", "interrupt", "Interrupt the selected agents", place="board"),
    Key("board.kill", "delete", "kill", "Kill the selected agents", place="board"),
    Key("board.retry", "ctrl+r", "retry", "Run the selected agents' failed turns again", place="board"),
    Key("board.answer", "f2", "answer", "Answer what agents ask you", place="board"),
    Key("board.write", "tab", "write", "Write one message to the selected agents", place="board"),
    Key("board.seen", "ctrl+s", "seen", "Mark the selected agents as seen", place="board"),
    Key("board.everywhere", "f12", "everywhere", "All sessions, or this one", place="board"),
    Key("board.silent", "ctrl+t", "silent", "Show silent agents, or fold them away", place="board"),
    Key("board.up", "up", "move(-1)", "The agent above", place="board"),
    Key("board.down", "down", "move(1)", "The agent below", place="board"),
    Key("board.page_up", "pageup", "page(-1)", "A page up", place="board"),
    Key("board.page_down", "pagedown", "page(1)", "A page down", place="board"),
    Key("board.top", "home", "page(-100000)", "To the first agent", place="board"),
    Key("board.bottom", "end", "page(100000)", "To the last agent", place="board"),
)


_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "left": "←",
        "right": "→",
        "up": "↑",
        "down": "↓",
        "escape": "Esc",
        "enter": "Enter",
        "pageup": "PgUp",
        "pagedown": "PgDn",
        "space": "Space",
        "ctrl": "Ctrl",
        "alt": "Alt",
        "shift": "Shift",
        "tab": "Tab",
        "home": "Home",
        "end": "End",
        "delete": "Del",
        "backspace": "Backspace",
        "super": "Super",
        "underscore": "_",
    }
)


_MODIFIERS = frozenset({"ctrl", "alt", "shift", "super", "meta", "hyper"})


class Keymap:
    """The keys as they are after the configuration."""

    def __init__(self, overrides: Mapping[str, str] = MappingProxyType({})) -> None:
        """``overrides`` are keys by id (``settings.tui.keys``): defaults give way to them.

        Raise ConfigError for an unknown id or key, or a key that they give to two.
        """
        known = {key.id for key in DEFAULTS}
        for id_ in overrides:
            if id_ not in known:
                close = difflib.get_close_matches(id_, known, n=1)
                hint = f"Did you mean {close[0]}?" if close else f"Known: {', '.join(sorted(known))}."
                raise ConfigError(f"tui.keys: there is nothing called {one_line(id_, 60)} to bind a key to.", hint=hint)
        self._keys = {key.id: key._replace(keys=_normal(overrides.get(key.id, key.keys))) for key in DEFAULTS}
        for id_ in overrides:
            for key in filter(None, self._keys[id_].keys.split(",")):
                _require_key(id_, key)
        self._lost: dict[str, dict[str, str]] = {}
        self._give_way(overrides)
        self._refuse_clashes()

    def bindings(self, place: str) -> list[Key]:
        """Return the keys of a place, with the true keys in them, without those that are bound to nothing."""
        return [key for key in self._keys.values() if key.place == place and key.keys]

    def label(self, id_: str) -> str:
        """Return the first key of an id as people write it: ``Ctrl+←``; empty when it is unbound."""
        return label(self._keys[id_].keys.partition(",")[0])

    def labels(self, id_: str) -> str:
        """Return all keys of an id: ``Ctrl+← or Alt+←``."""
        return " or ".join(label(key) for key in self._keys[id_].keys.split(",") if key)

    def has(self, id_: str, key: str) -> bool:
        """Return whether a key, by Textual's name, is one of an id."""
        return key in self._keys[id_].keys.split(",")

    def lost(self, id_: str) -> str:
        """Return which of its default keys the configuration gave to another id; empty if it gave away none."""
        return ", ".join(
            f"{label(key)} is for: {self._keys[taker].help}" for key, taker in self._lost.get(id_, {}).items()
        )

    def _give_way(self, chosen: Collection[str]) -> None:
        """Remove keys from defaults that the configuration uses for another id."""
        takers = {use: id_ for id_ in chosen for use in _uses(self._keys[id_])}
        for id_, binding in self._keys.items():
            if id_ in chosen:
                continue
            lost = {key: takers[key, focus] for key, focus in _uses(binding) if (key, focus) in takers}
            if lost:
                kept = [key for key in binding.keys.split(",") if key not in lost]
                self._keys[id_], self._lost[id_] = binding._replace(keys=",".join(kept)), lost

    def _refuse_clashes(self) -> None:
        used: dict[tuple[str, str], str] = {}
        for id_, binding in self._keys.items():
            for use in _uses(binding):
                if use in used:
                    raise ConfigError(
                        f"tui.keys: {use[0]} is bound to both {used[use]} and {id_}.",
                        hint="Give one of them another key.",
                    )
                used[use] = id_


def _uses(binding: Key) -> list[tuple[str, str]]:
    """Return each key of a binding with the focus in which it counts.

    The input and an entry never have the focus at once, so both may use the same key.
    """
    focuses = ("prompt", "scrollback") if binding.place == "screen" else (binding.place,)
    return [(key, focus) for key in filter(None, binding.keys.split(",")) for focus in focuses]


def label(key: str) -> str:
    """Return one key as people write it: ``ctrl+left`` is ``Ctrl+←``."""
    return "+".join(
        _NAMES.get(part, part.upper() if len(part) == 1 else part.capitalize()) for part in key.split("+") if part
    )


def _require_key(id_: str, key: str) -> None:
    """Raise ConfigError for a name that no terminal can send: ``ctrl+nope``."""
    from textual._keyboard_protocol import FUNCTIONAL_KEYS  # only now: it is needed for the configuration only
    from textual.keys import KEY_ALIASES, KEY_NAME_REPLACEMENTS, Keys

    *modifiers, name = re.split(r"(?<=.)\+(?=.)", key)
    known = {one.value.rpartition("+")[2] for one in Keys if not one.value.startswith("<")}  # <any> is no key
    known |= {*FUNCTIONAL_KEYS.values(), *KEY_NAME_REPLACEMENTS.values(), *KEY_ALIASES["ctrl+j"]}
    if (
        set(modifiers) <= _MODIFIERS
        and len(set(modifiers)) == len(modifiers)
        and (len(name) == 1 or name in known or _is_character(name))
    ):
        return
    close = ["shift+tab"] if name == "backtab" else difflib.get_close_matches(name, known, n=1)
    hint = (
        f"Did you mean {'+'.join([*modifiers, *close])}?" if close else "Keys are written as ctrl+p, f12, shift+enter."
    )
    raise ConfigError(f"tui.keys: {id_} is bound to {one_line(key, 60)}, and there is no such key.", hint=hint)


def _is_character(name: str) -> bool:
    """Whether this is Textual's name of a character, as ``full_stop``."""
    try:
        return bool(unicodedata.lookup(name.replace("_", " ")))
    except KeyError:
        return False


def _normal(keys: str) -> str:
    """Return the keys without blanks, in Textual's spelling."""
    names = (re.sub(r"\besc\b", "escape", key.strip().lower()).replace("control+", "ctrl+") for key in keys.split(","))
    return ",".join(name for name in names if name)
