"""The first screen without a model."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import keyring
import pytest
from keyring.backends.fail import Keyring as NoKeyring
from textual.pilot import Pilot

from agentmesh.app import model_list
from agentmesh.config import api_keys
from agentmesh.config.settings import load
from agentmesh.domain.errors import NoModel
from agentmesh.llm.simulator.reply import ScriptedReply
from agentmesh.llm.simulator.server import Simulator
from agentmesh.tui.main import set_up
from agentmesh.tui.setup import SetupApp
from tests.fixtures.engine import PATIENCE

KEY = "sk-a-secret-of-this-test"


@pytest.fixture
def environ(tmp_path: Path, monkeypatch) -> Iterator[dict[str, str]]:
    before = keyring.get_keyring()
    keyring.set_keyring(NoKeyring())
    api_keys._find.cache_clear()
    monkeypatch.setattr(model_list, "local_servers", dict)
    yield {"AGENTMESH_CONFIG_DIR": str(tmp_path), "AGENTMESH_DATA_DIR": str(tmp_path / "data")}
    keyring.set_keyring(before)
    api_keys._find.cache_clear()


def text_of(app: SetupApp) -> str:
    return "\n".join(strip.text.rstrip() for strip in app.screen._compositor.render_strips())


async def sees(app: SetupApp, *texts: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while not all(text in text_of(app) for text in texts):
            await asyncio.sleep(0.02)


def played(
    environ: dict[str, str], scene: Callable[[SetupApp, Pilot[bool]], Awaitable[None]], size: tuple[int, int] = (80, 24)
) -> bool | None:
    app = SetupApp(load({}, environ, None), environ)

    async def play() -> None:
        async with app.run_test(size=size) as pilot:
            await scene(app, pilot)

    asyncio.run(play())
    return app.return_value


@pytest.mark.parametrize("size", [(80, 24), (40, 12), (160, 50)])
def test_one_key_leads_to_the_demo(environ, size, tmp_path):
    async def scene(app: SetupApp, pilot: Pilot[bool]) -> None:
        await sees(app, "OpenAI", "OpenRouter")
        await pilot.press("escape")
        await pilot.pause()

    assert played(environ, scene, size) is False
    assert not (tmp_path / "config.toml").exists()


def test_a_server_a_key_and_a_model_are_asked_for_tried_and_remembered(environ, tmp_path):
    with Simulator(lambda _view: ScriptedReply(text="ok"), token=KEY, models=["b-model", "a-model"]) as server:

        async def scene(app: SetupApp, pilot: Pilot[bool]) -> None:
            await sees(app, "Another server")
            await pilot.press(*"another", "enter")
            await sees(app, "URL of the server")
            await pilot.press(*server.base_url.replace("localhost", "127.0.0.1"), "enter")
            await sees(app, "API key of")
            await pilot.press(*"wrong", "enter")
            await sees(app, "refuses the key", "Another server")
            await pilot.press(*"another", "enter")
            await sees(app, "URL of the server")
            await pilot.press(*server.base_url, "enter")
            await sees(app, "API key of")
            await pilot.press(*KEY)
            assert KEY not in text_of(app)
            await pilot.press("enter")
            await sees(app, "2 models of", "a-model", "b-model")
            await pilot.press(*"b-m", "enter")
            async with asyncio.timeout(PATIENCE):
                while app.return_value is None:
                    await asyncio.sleep(0.02)

        assert played(environ, scene) is True
    settings = load({}, environ, None)
    assert settings.model is not None
    assert settings.model.endswith("/b-model")
    assert KEY not in (tmp_path / "config.toml").read_text()


def test_a_list_of_three_thousand_models_is_searched(environ):
    names = [f"vendor/model-{n}" for n in range(3000)]
    with Simulator(lambda _view: ScriptedReply(text="ok"), models=names) as server:

        async def scene(app: SetupApp, pilot: Pilot[bool]) -> None:
            await sees(app, "Another server")
            await pilot.press(*"another", "enter")
            await sees(app, "URL of the server")
            await pilot.press(*server.base_url, "enter")
            await sees(app, "API key of")
            await pilot.press("enter")
            await sees(app, "3,000 models of")
            await pilot.press(*"model-2718")
            await sees(app, "vendor/model-2718")
            await pilot.press("enter")
            async with asyncio.timeout(PATIENCE):
                while app.return_value is None:
                    await asyncio.sleep(0.02)

        assert played(environ, scene) is True
    assert str(load({}, environ, None).model).endswith("/vendor/model-2718")


@pytest.mark.parametrize("typed", ["nonsense", "http://[::1:8080/v1"])
def test_what_is_no_url_is_said_and_asked_again(environ, typed):
    async def scene(app: SetupApp, pilot: Pilot[bool]) -> None:
        await sees(app, "Another server")
        await pilot.press(*"another", "enter")
        await sees(app, "URL of the server")
        await pilot.press(*typed, "enter")
        await sees(app, f"{typed} is no URL")
        await pilot.press("escape")
        await pilot.pause()

    assert played(environ, scene) is False


def test_a_bug_is_raised_and_does_not_lead_to_the_demo(environ, monkeypatch):
    def broken(*_: object) -> None:
        raise ValueError("a bug")

    def run(app: SetupApp) -> None:
        async def play() -> None:
            async with app.run_test() as pilot:
                await sees(app, "Another server")
                await pilot.press(*"another", "enter")
                await pilot.pause()

        asyncio.run(play())

    monkeypatch.setattr(SetupApp, "_set_up", broken)
    monkeypatch.setattr(SetupApp, "run", run)
    with pytest.raises(ValueError, match="a bug"):
        ask_for_model(environ, monkeypatch)


def test_a_crash_of_the_screen_does_not_lead_to_the_demo(environ, monkeypatch):
    monkeypatch.setattr(SetupApp, "run", lambda app: app.exit(return_code=1))
    with pytest.raises(NoModel, match="no model was set up"):
        ask_for_model(environ, monkeypatch)


def ask_for_model(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> bool:
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    return set_up(load({}, environ, None), environ)
