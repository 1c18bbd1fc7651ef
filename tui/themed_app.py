"""An app that begins in one of our themes: the screen itself, and the one that sets up a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from rich.console import RenderableType
from textual.app import App
from textual.driver import Driver

from agentmesh.tui import theme

Result = TypeVar("Result")


class ThemedApp(App[Result], inherit_bindings=False):
    """Has its theme before its first frame, and no colour where the environment says NO_COLOR."""

    ENABLE_COMMAND_PALETTE = False
    TITLE = "agentmesh"

    def __init__(self, environ: Mapping[str, str], look: str) -> None:
        """``look`` is one of ``theme.NAMES``; raise ConfigError for another one."""
        self._is_themed = self._has_sixteen = False
        super().__init__()
        self._begin_with(name := theme.theme_for(environ, look))
        if self.no_color:  # Textual would paint in greys
            self._filters = [theme.Colourless(theme.theme_of(name).background or "#000000")]

    def get_driver_class(self) -> type[Driver]:
        """Read a terminal in our own way; a browser and Windows have other drivers."""
        chosen = super().get_driver_class()
        if chosen.__module__ != "textual.drivers.linux_driver":
            return chosen
        from agentmesh.tui.driver import TerminalDriver

        return TerminalDriver

    def panic(self, *renderables: RenderableType) -> None:
        """End with exit code 1 also where the thread that reads the terminal fails; Textual would end with 0."""
        self.exit(return_code=1)
        super().panic(*renderables)

    def on_mount(self) -> None:
        """Begin with the colours that the terminal has; without a terminal there are all."""
        self._has_sixteen = self.console.color_system == "standard" and not (self.is_headless or self.is_web)
        self.watch_theme(self.theme)

    def watch_theme(self, name: str) -> None:
        """Say in a terminal's sixteen colours what those of the theme mean."""
        if self._has_sixteen and not self.no_color:
            self._filters = [theme.SixteenColours(theme.theme_of(name))]

    def get_css_variables(self) -> dict[str, str]:
        """Return the variables of our theme, and none before it is set: Textual would make its own first (1 ms)."""
        return super().get_css_variables() if self._is_themed else {}

    def _begin_with(self, name: str) -> None:
        """Set the theme without its watcher, which would parse all CSS again (15 ms before the first frame)."""
        self.register_theme(theme.theme_of(name))
        self.set_reactive(App.theme, name)
        self._is_themed = True
        self.stylesheet.set_variables(self.get_css_variables())
        self.set_class(self.current_theme.dark, "-dark-mode", update=False)
        self.set_class(not self.current_theme.dark, "-light-mode", update=False)
