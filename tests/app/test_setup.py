"""Setting a model up: against a real HTTP server with a key of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import keyring
import pytest
from keyring.backends.fail import Keyring as NoKeyring

from agentmesh.app import model_list, setup
from agentmesh.app.models import ConfiguredModels
from agentmesh.config import api_keys
from agentmesh.config.settings import load
from agentmesh.domain.errors import ModelError, NoModel
from agentmesh.llm.simulator.reply import ScriptedReply
from agentmesh.llm.simulator.server import Simulator

KEY = "sk-a-secret-of-this-test"


@pytest.fixture
def url() -> Iterator[str]:
    with Simulator(lambda _view: ScriptedReply(text="ok"), token=KEY, models=["b-model", "a-model"]) as server:
        yield server.base_url


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    before = keyring.get_keyring()
    keyring.set_keyring(NoKeyring())
    api_keys._find.cache_clear()
    yield {"AGENTMESH_CONFIG_DIR": str(tmp_path), "AGENTMESH_DATA_DIR": str(tmp_path / "data")}
    keyring.set_keyring(before)
    api_keys._find.cache_clear()


def test_a_server_is_asked_tried_and_remembered_and_its_key_is_in_no_setting(url, environ, tmp_path):
    server = setup.server_at(url)
    assert setup.models_of(server, KEY) == ["a-model", "b-model"]
    setup.try_model(load({}, environ, None), server, KEY, "a-model")
    file = setup.remember(environ, server, KEY, "a-model")
    settings = load({}, environ, None)
    assert settings.model == f"{server.name}/a-model"
    models = ConfiguredModels(settings, environ)
    assert models.name(None) == settings.model
    assert models.providers()[server.name].api_key == KEY
    assert KEY not in file.read_text() + repr(settings) + repr(models.providers()) + str(models.endpoints())
    assert KEY in (tmp_path / "keys.json").read_text()
    assert KEY not in str(environ)


def test_a_wrong_key_is_told_from_a_server_that_is_away(url):
    server = setup.server_at(url)
    with pytest.raises(NoModel, match="refuses the key"):
        setup.models_of(server, "wrong")
    with pytest.raises(NoModel, match="does not answer") as caught:
        setup.models_of(setup.server_at("http://127.0.0.1:1/v1"), KEY)
    assert KEY not in str(caught.value)


def test_a_model_that_does_not_answer_is_not_remembered(url, environ):
    with pytest.raises((ModelError, NoModel)) as caught:
        setup.try_model(load({}, environ, None), setup.server_at(url), KEY, "no-such-model")
    assert KEY not in str(caught.value)


def test_a_key_of_the_environment_is_kept_nowhere_else(environ, tmp_path):
    environ["OPENROUTER_API_KEY"] = KEY
    setup.remember(environ, setup.KNOWN[1], KEY, "some/model")
    assert not (tmp_path / "keys.json").exists()
    settings = load({}, environ, None)
    assert settings.model == "openrouter/some/model"
    assert ConfiguredModels(settings, environ).providers()["openrouter"].api_key == KEY


@pytest.mark.parametrize("url", [
    "", "models.example.com", "ftp://a/v1", "http://", "http://a b/v1",
    "http://[::1:8080/v1", "http://[nonsense]/v1", "http://ex\u2100mple.com/v1", "http://a:port/v1", "http://a:99999/v1",
])  # fmt: skip
def test_what_is_no_url_is_refused(url):
    with pytest.raises(NoModel, match="is no URL"):
        setup.server_at(url)


def test_a_known_url_is_the_known_server():
    assert setup.server_at("https://api.openai.com/v1/") == setup.KNOWN[0]
    assert setup.server_at("https://api.acme.example/v1").name == "acme.example"


class _Models(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b'{"data": []}' if self.path == "/v1/models" else b""
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_local_servers_that_answer_are_found_others_cost_no_time():
    with HTTPServer(("127.0.0.1", 0), _Models) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        port = server.server_address[1]
        assert model_list.local_servers([port, 1]) == {f"http://localhost:{port}/v1": "a model server"}
        server.shutdown()
        thread.join()
