"""The models that servers offer."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentmesh.app.models import ConfiguredModels
from agentmesh.config.schema import Provider
from agentmesh.config.settings import load
from agentmesh.domain.rows import Capability
from agentmesh.llm.simulator.reply import ScriptedReply
from agentmesh.llm.simulator.server import Simulator
from tests.llm.misbehaving import good, misbehaving

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


def test_the_context_size_is_the_one_that_the_server_lists(tmp_path: Path):
    with misbehaving(good()) as server:
        server.models += [{"id": "a", "meta": {"n_ctx": 8192}}, {"id": "b", "max_model_len": 4096}, {"id": "c"}, "d"]
        models = configured(tmp_path, here=Provider(server.url), told=Provider(server.url, context_window=99))
        assert [models.context_window(f"here/{name}") for name in "abcde"] == [8192, 4096, None, None, None]
        assert models.context_window("told/a") == 99
        assert len(server.seen) == 1
        assert {one.name: one.context_window for one in models.offered()}["here/b"] == 4096
    assert models.context_window("nobody/a") is None


def test_the_context_size_that_workers_have_learned_is_used_as_they_use_it(tmp_path: Path):
    with misbehaving(good()) as server:
        server.models += [{"id": "a", "max_model_len": 8192}, {"id": "b", "max_model_len": 8192}]
        models = configured(tmp_path, here=Provider(server.url), told=Provider(server.url, context_window=99))
        learned = [
            Capability("here", server.url, "a", context_window=2048),
            Capability("here", "http://elsewhere/v1", "b", context_window=2048),
            Capability("told", server.url, "a", context_window=2048),
        ]
        asked = ("here/a", "here/b", "told/a")
        assert [models.context_window(model, learned) for model in asked] == [2048, 8192, 99]


@pytest.mark.parametrize("listed", [[], [{"id": "a", "meta": [1]}], [{"id": 3, "max_model_len": {}}]])
def test_a_list_that_is_none_gives_no_context_size_and_is_not_asked_for_each_time(tmp_path: Path, listed):
    with misbehaving(good()) as server:
        server.models += listed
        models = configured(tmp_path, here=Provider(server.url))
        assert [models.context_window("here/a") for _ in range(3)] == [None] * 3
        assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("listed", "lacking"),
    [
        (["a", "b:latest"], ["here/c", "here/a:latest"]),
        (["a"], []),  # a server of one model, as llama.cpp, takes any name
        ([], []),
        (["models/a", "models/b"], ["here/c", "here/a:latest"]),
    ],
)
def test_a_model_is_lacking_only_where_the_server_lists_several_others(tmp_path: Path, listed, lacking):
    with misbehaving(good()) as server:
        server.models += [{"id": name} for name in listed]
        models = configured(tmp_path, here=Provider(server.url), away=Provider("http://127.0.0.1:9/v1"))
        asked = ["here/a", "here/a:latest", "here/b", "here/c", "away/a", "demo/demo"]
        assert {model for model in asked if models.lacks(model)} == set(lacking)


def test_a_new_session_asks_only_a_server_on_this_machine_for_its_context_size(tmp_path: Path):
    with misbehaving(good()) as server:
        server.models.append({"id": "a", "meta": {"n_ctx": 8192}})
        far = Provider("https://api.example.org/v1")
        told, here = far._replace(context_window=99), Provider(server.url)
        models = configured(tmp_path, here=here, told=told, far=far)
        assert models.named_window("here/a") == 8192
        assert models.named_window("told/a") == 99
        assert models.named_window("far/a") is None
        assert models.named_window("demo/demo") is None
