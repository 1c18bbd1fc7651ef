"""The first screen without a model: it asks for a server, a key and a model, or leads to the demo."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input

from agentmesh.domain.errors import AgentmeshError, ModelError, NoModel
from agentmesh.domain.text import one_line
from agentmesh.tui import theme
from agentmesh.tui.themed_app import ThemedApp
from agentmesh.tui.widgets.chooser import Choice, Chooser
from agentmesh.tui.widgets.dialog import Dialog
from agentmesh.tui.widgets.plain import Plain

if TYPE_CHECKING:
    from agentmesh.app.setup import ModelServer
    from agentmesh.config.settings import Settings

_WELCOME = "No model is set up. Choose a server, or press Esc for the demo: a script plays the model, the rest is real."
_LONGEST = 300
"""Characters of a failure that are shown."""
Result = TypeVar("Result")


class LineQuestion(Dialog[str]):
    """Asks for one line; left with it, or with None."""

    def __init__(self, title: str, *, is_secret: bool = False, hint: str = "Enter goes on, Esc goes back") -> None:
        super().__init__()
        self._title, self._is_secret, self._hint = title, is_secret, hint

    def compose(self) -> ComposeResult:
        """Show title, field and hint."""
        with Vertical(classes="dialog"):
            yield Plain(self._title, classes="title")
            yield Input(password=self._is_secret)
            yield Plain(self._hint, classes="detail")

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())


class SetupApp(ThemedApp[bool], inherit_bindings=False):
    """Returns whether a model was set up; otherwise the demo is wanted."""

    CSS_PATH = Path(__file__).with_name("setup.tcss")

    def __init__(self, settings: Settings, environ: Mapping[str, str] = os.environ) -> None:
        super().__init__(environ, settings.tui.theme)
        self._settings, self._environ = settings, environ
        self._said = Plain("", id="said")
        self._failure = ""
        """Why the last attempt failed; the next dialog says it."""
        self.bug: Exception | None = None
        """An unexpected error that ended it."""

    def compose(self) -> ComposeResult:
        """Show what goes on, below the dialogs."""
        yield self._said

    def on_mount(self) -> None:
        """Begin to ask."""
        self._ask()

    @work
    async def _ask(self) -> None:
        try:
            self.exit(await self._has_set_up())
        except Exception as error:  # noqa: BLE001  Textual would print the variables of each frame, the key among them
            self.bug = error
            self.exit(False)

    async def _has_set_up(self) -> bool:
        """Ask until a model is set up, or until the person leaves; return which."""
        from agentmesh.app import setup as steps

        self._say("Looking for model servers on this machine ...")
        servers = await asyncio.to_thread(steps.servers)
        self._say("")
        while True:
            server = await self.push_screen_wait(self._server_chooser(servers))
            if server is None:
                return False
            if await self._set_up(server):
                return True

    async def _set_up(self, server: ModelServer) -> bool:
        """Ask for the remaining settings of a server; return whether it was set up."""
        from agentmesh.app import setup as steps

        try:
            if not server.base_url:
                url = await self.push_screen_wait(
                    LineQuestion("URL of the server, as in https://models.example.com/v1")
                )
                if not url:
                    return False
                server = steps.server_at(url)
            key = await self._key(server)
            if key is None:
                return False
            listed = await self._meanwhile(f"Asking {server.title} for its models ...", steps.models_of, server, key)
            while (model := await self._model(server, listed)) is not None:
                if await self._tried(server, key, model):
                    await asyncio.to_thread(steps.remember, self._environ, server, key, model)
                    return True
        except AgentmeshError as failure:
            self._fail(steps.sentence(failure))
        return False

    async def _key(self, server: ModelServer) -> str | None:
        if server.has_key(self._environ):
            return self._environ[server.api_key_env or ""].strip()
        if not server.wants_key and server.title.endswith("on this machine"):
            return ""
        optional = "" if server.wants_key else "; leave it empty if the server wants none"
        hint = "It goes into the system's keyring, or into a file that only you may read."
        return await self.push_screen_wait(
            LineQuestion(f"API key of {server.title}{optional}", is_secret=True, hint=hint)
        )

    async def _model(self, server: ModelServer, listed: Sequence[str]) -> str | None:
        """Return the model that a person chooses, or types where the list has it not."""
        if listed:
            typed: list[str] = []
            choices = [Choice(name, name, Content("")) for name in listed]
            title = f"{len(listed):,} models of {server.title}"
            chosen = await self.push_screen_wait(Chooser(self._title(title), choices, beyond=typed.append))
            return chosen or (typed[0] if typed else None)
        title = self._title(f"Name of a model of {server.title}, which has no list")
        return await self.push_screen_wait(LineQuestion(title)) or None

    async def _tried(self, server: ModelServer, key: str, model: str) -> bool:
        from agentmesh.app import setup as steps

        try:
            await self._meanwhile(
                f"Asking {model} one short question ...", steps.try_model, self._settings, server, key, model
            )
        except (ModelError, NoModel) as failure:
            self._fail(steps.sentence(failure))
            return False
        return True

    async def _meanwhile(self, says: str, work: Callable[..., Result], *args: object) -> Result:
        self._say(says)
        result = await asyncio.to_thread(work, *args)
        self._say("")
        return result

    def _server_chooser(self, servers: Sequence[ModelServer]) -> Chooser[ModelServer]:
        choices = [Choice(server, server.title, Content(""), self._remark(server)) for server in servers]
        return Chooser(self._title(_WELCOME), choices)

    def _remark(self, server: ModelServer) -> str:
        if server.has_key(self._environ):
            return f"key in {server.api_key_env}"
        return "wants a key" if server.wants_key else server.base_url or "by its URL"

    def _say(self, text: str) -> None:
        self._said.update(Content.styled(text, theme.MEANINGS["quiet"]))

    def _fail(self, text: str) -> None:
        self._say("")
        self._failure = one_line(text, _LONGEST)

    def _title(self, text: str) -> str:
        """Return a title below the last failure."""
        failure, self._failure = self._failure, ""
        return f"{failure}\n{text}" if failure else text
