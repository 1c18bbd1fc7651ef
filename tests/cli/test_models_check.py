"""What `agentmesh doctor` says of the model of new sessions, before any server is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentmesh.cli.finding import Health
from agentmesh.cli.models_check import model_checks
from agentmesh.config.settings import load


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ("note", "no model is configured")),
        ('model = "lokal/x"\n', ("broken", "there is no provider 'lokal' for model lokal/x")),
        ('model = "demo"\n', ("ok", "demo is the model of new sessions: a scripted one")),
    ],
)
def test_the_model_of_new_sessions_is_named(tmp_path: Path, text: str, found: tuple[str, str]):
    (tmp_path / "config.toml").write_text(text)
    environ = {"AGENTMESH_CONFIG_DIR": str(tmp_path), "AGENTMESH_DATA_DIR": str(tmp_path / "data")}
    *_, model = model_checks(load({}, environ, None), environ)
    assert model.about == "model"
    assert (model.state, model.words) == found


def test_a_proxy_whose_path_names_openai_is_asked_without_a_key(tmp_path: Path):
    (tmp_path / "config.toml").write_text('[providers.openai]\nbase_url = "http://127.0.0.1:1/api.openai.com/v1"\n')
    environ = {"AGENTMESH_CONFIG_DIR": str(tmp_path), "AGENTMESH_DATA_DIR": str(tmp_path / "data")}
    server, *_ = model_checks(load({}, environ, None), environ)
    assert (server.state, server.about) == (Health.BROKEN, "models openai")
    assert server.words.startswith("http://127.0.0.1:1/api.openai.com/v1 does not answer")
