"""``/theme``: shows another theme, and keeps it in the user's configuration."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from agentmesh.domain.errors import AgentmeshError
from agentmesh.tui import theme

if TYPE_CHECKING:
    from textual.app import App


class ThemeSwitch:
    """Sets the theme of an app; ``say`` writes into the last line once what was typed has been handled."""

    def __init__(self, app: App[None], say: Callable[[str, str], object]) -> None:
        self._app, self._say = app, say

    def choose(self, name: str | None = None) -> None:
        """Use a theme and keep it, or let a person choose one, each shown while it is highlighted."""
        if name is None:
            self._ask()
            return
        try:
            self._use(name)
        except AgentmeshError as error:
            self._say(f"{error.message} {error.hint}", "$text-error")
        else:
            self._keep(name)

    def _ask(self) -> None:
        from agentmesh.tui.input.theme_chooser import theme_chooser

        before = self._app.theme

        def chosen(name: str | None) -> None:
            if name:
                self._use(name)
                self._keep(name)
            else:
                self._show(before)

        self._app.push_screen(theme_chooser(before, self._use), chosen)

    def _use(self, name: str) -> None:
        """Show a theme by its name in the configuration; raise ConfigError if there is none."""
        self._show(theme.theme_for(os.environ, name))

    def _show(self, name: str) -> None:
        if name != self._app.theme:
            self._app.register_theme(theme.theme_of(name))
            self._app.theme = name

    def _keep(self, name: str) -> None:
        self._app.run_worker(partial(self._write, name), thread=True, exclusive=True, group="theme")

    def _write(self, name: str) -> None:
        """Write the theme into the user's configuration; if that fails, say how to keep it."""
        from agentmesh.config.user_file import set_values

        try:
            said, style = f"{name}, kept in {set_values(os.environ, {('tui', 'theme'): name})}", "$text-success"
        except AgentmeshError as error:
            said, style = f"{name} until you leave: {error.message}", "$text-warning"
        self._app.call_from_thread(self._say, said, style)
