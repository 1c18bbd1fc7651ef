"""The dialog that chooses a theme: the highlighted one is shown at once."""

from __future__ import annotations

from collections.abc import Callable

from textual.content import Content

from agentmesh.tui.theme import NAMES
from agentmesh.tui.widgets.chooser import Choice, Chooser

_SAYS = {"auto": "as the terminal says", "dark": "ours", "light": "ours"}


def theme_chooser(shown: str, preview: Callable[[str], None]) -> Chooser[str]:
    """Return the list of themes, the shown one highlighted; ``preview`` shows the highlighted one."""
    choices = [Choice(name, name, Content(""), _SAYS.get(name, "")) for name in NAMES]
    return Chooser("Themes", choices, highlighted=shown.removeprefix("agentmesh-"), preview=preview)
