"""Keys that the program keeps, and what it writes into config.toml."""

from __future__ import annotations

import stat

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends.fail import Keyring as NoKeyring
from keyring.errors import KeyringLocked

from agentmesh.config import api_keys, user_file
from agentmesh.config.api_keys import keep_key, key_of
from agentmesh.config.schema import Provider
from agentmesh.config.settings import load
from agentmesh.domain.errors import ConfigError

URL = "https://models.example.com/v1"


class Ring(KeyringBackend):
    """A keyring in memory."""

    priority = 5

    def __init__(self, *, is_locked: bool = False) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}
        self.is_locked = is_locked

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.is_locked:
            raise KeyringLocked("no")
        self.kept[service, username] = password


@pytest.fixture
def environ(tmp_path):
    before = keyring.get_keyring()
    keyring.set_keyring(NoKeyring())
    api_keys._find.cache_clear()
    yield {"AGENTMESH_CONFIG_DIR": str(tmp_path)}
    keyring.set_keyring(before)
    api_keys._find.cache_clear()


def test_without_a_keyring_a_file_that_nobody_else_may_read_has_the_key(environ, tmp_path):
    assert keep_key(environ, "acme", URL, "sk-1") == "file"
    assert keep_key(environ, "other", URL, "sk-2") == "file"
    assert stat.S_IMODE((tmp_path / "keys.json").stat().st_mode) == 0o600
    assert key_of(environ, "acme", Provider(URL, stored_key="file")) == "sk-1"
    assert key_of(environ, "other", Provider(URL, stored_key="file")) == "sk-2"
    assert [file.name for file in tmp_path.iterdir()] == ["keys.json"]


def test_a_keyring_has_the_key_and_no_file_does(environ, tmp_path):
    keyring.set_keyring(Ring())
    assert keep_key(environ, "acme", URL, "sk-1") == "keyring"
    assert key_of(environ, "acme", Provider(URL, stored_key="keyring")) == "sk-1"
    assert list(tmp_path.iterdir()) == []


def test_a_locked_keyring_leaves_it_to_the_file(environ):
    keyring.set_keyring(Ring(is_locked=True))
    assert keep_key(environ, "acme", URL, "sk-1") == "file"


def test_a_key_goes_to_no_other_server(environ):
    keep_key(environ, "acme", URL, "sk-1")
    assert key_of(environ, "acme", Provider("https://evil.example.com/v1", stored_key="file")) == ""


def test_the_variable_wins_and_without_a_setting_nothing_is_looked_up(environ):
    keep_key(environ, "acme", URL, "sk-1")
    assert key_of({**environ, "KEY": "sk-env"}, "acme", Provider(URL, "KEY", stored_key="file")) == "sk-env"
    assert key_of(environ, "acme", Provider(URL, "KEY", stored_key="file")) == "sk-1"
    assert key_of(environ, "acme", Provider(URL, "KEY")) == ""


@pytest.mark.parametrize("mode", [0o644, 0o640])
def test_a_file_that_others_may_read_is_refused(environ, tmp_path, mode):
    keep_key(environ, "acme", URL, "sk-1")
    (tmp_path / "keys.json").chmod(mode)
    with pytest.raises(ConfigError, match="others may read it") as caught:
        key_of(environ, "acme", Provider(URL, stored_key="file"))
    assert "chmod 600" in caught.value.hint


def test_a_file_of_another_form_is_refused(environ, tmp_path):
    (tmp_path / "keys.json").write_text("[1]")
    (tmp_path / "keys.json").chmod(0o600)
    with pytest.raises(ConfigError, match="is not what agentmesh wrote"):
        key_of(environ, "acme", Provider(URL, stored_key="file"))


def test_a_link_is_not_followed(environ, tmp_path):
    (tmp_path / "keys.json").symlink_to("/etc/hostname")
    with pytest.raises(ConfigError, match="cannot be read"):
        key_of(environ, "acme", Provider(URL, stored_key="file"))


def test_writing_keeps_comments_and_other_keys(environ, tmp_path):
    file = tmp_path / "config.toml"
    file.write_text(
        '# mine\nmodel = "old"  # for now\n\n[tui]\nbell = false # loud\n\n[providers.a]\nbase_url = "http://a"\n'
    )
    file.chmod(0o644)
    written = user_file.set_values(
        environ, {("model",): "b/new", ("tui", "theme"): "nord", ("providers", "b", "base_url"): "http://b"}
    )
    assert written == file
    text = file.read_text()
    assert text.startswith('# mine\nmodel = "b/new"  # for now\n')
    assert 'bell = false # loud\ntheme = "nord"\n' in text
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    settings = load({}, environ, None)
    assert settings.model == "b/new"
    assert settings.tui.theme == "nord"
    assert settings.providers["a"].base_url == "http://a"
    assert settings.providers["b"].base_url == "http://b"


def test_a_new_file_is_for_its_owner(environ, tmp_path):
    user_file.set_values({"AGENTMESH_CONFIG_DIR": str(tmp_path / "new")}, {("model",): "a/b"})
    assert stat.S_IMODE((tmp_path / "new" / "config.toml").stat().st_mode) == 0o600


def test_a_link_to_the_file_stays_one(environ, tmp_path):
    (tmp_path / "dot").mkdir()
    (tmp_path / "dot" / "config.toml").write_text("")
    (tmp_path / "config.toml").symlink_to("dot/config.toml")
    user_file.set_values(environ, {("model",): "a/b"})
    assert (tmp_path / "config.toml").is_symlink()
    assert "a/b" in (tmp_path / "dot" / "config.toml").read_text()


@pytest.mark.parametrize("text", ["model = ", 'model = 1\ntui = "no table"'])
def test_a_file_that_makes_no_sense_is_left_alone(environ, tmp_path, text):
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(ConfigError, match="cannot be changed"):
        user_file.set_values(environ, {("tui", "theme"): "nord"})
    assert (tmp_path / "config.toml").read_text() == text
