"""The models that servers offer."""

from __future__ import annotations

from pathlib import Path

from agentmesh.app.models import ConfiguredModels
from agentmesh.config.schema import Provider
from agentmesh.config.settings import load
from agentmesh.llm.simulator.reply import ScriptedReply
from agentmesh.llm.simulator.server import Simulator

NAMES = ("gpt-5-mini", "[b]own[/b]")


def configured(folder: Path, **providers: Provider) -> ConfiguredModels:
    environ = {"AGENTMESH_CONFIG_DIR": str(folder), "AGENTMESH_DATA_DIR": str(folder), "KEY": "secret", "WRONG": "no"}
    return ConfiguredModels(load({}, environ, None)._replace(providers=providers), environ)


def test_servers_are_asked_for_their_models_and_those_that_give_none_are_left_out(tmp_path: Path):
    with Simulator(lambda _view: ScriptedReply(text="ok"), token="secret", models=NAMES) as server:
        here = Provider(server.base_url, "KEY", context_window=4_000)
        away, refused = Provider("http://127.0.0.1:9/v1"), here._replace(api_key_env="WRONG")
        models = configured(tmp_path, here=here, priced=here._replace(priced_as="openai"), away=away, refused=refused)
        offered = {model.name: model for model in models.offered()}
    assert list(offered) == ["here/[b]own[/b]", "here/gpt-5-mini", "priced/[b]own[/b]", "priced/gpt-5-mini"]
    assert offered["here/[b]own[/b]"][1:] == (4_000, None, None)
    in_usd, out_usd = offered["priced/gpt-5-mini"][2:]
    assert in_usd is not None
    assert out_usd is not None
    assert 0 < in_usd < out_usd < 100


def test_without_a_server_there_is_nothing_to_offer(tmp_path: Path):
    assert configured(tmp_path).offered() == []
