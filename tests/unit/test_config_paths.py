from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentmesh.config import paths
from agentmesh.config.settings import load
from agentmesh.domain.errors import ConfigError


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    return tmp_path


def test_the_configuration_is_below_home(home):
    file = paths.user_config({})
    assert file.is_relative_to(home)
    assert file.parts[-2:] == ("agentmesh", "config.toml")


def test_xdg_moves_the_configuration(home):
    assert paths.user_config({"XDG_CONFIG_HOME": "/elsewhere"}) == Path("/elsewhere/agentmesh/config.toml")


def test_our_own_variable_beats_xdg(home):
    environ = {"XDG_CONFIG_HOME": "/elsewhere", "AGENTMESH_CONFIG_DIR": "~/mine"}
    assert paths.user_config(environ) == home / "mine" / "config.toml"


def test_an_unknown_home_in_our_own_variable_is_refused(home):
    with pytest.raises(
        ConfigError, match=r"^AGENTMESH_CONFIG_DIR should be a path; the home directory in it is unknown"
    ):
        paths.user_config({"AGENTMESH_CONFIG_DIR": "~nobody-of-this-name/c"})


def test_data_is_below_home(home, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert paths.default_data({}).is_relative_to(home)
    assert paths.default_data({"XDG_DATA_HOME": "/elsewhere"}) == Path("/elsewhere/agentmesh")


def test_data_of_root_is_where_the_servers_own_user_can_go(home, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert paths.default_data({"XDG_DATA_HOME": "/elsewhere"}) == Path("/var/lib/agentmesh")


def test_a_relative_data_dir_becomes_absolute(home, monkeypatch):
    monkeypatch.chdir(home)
    assert load({"data_dir": "here"}, {}, home).data_dir == home / "here"
    assert load({}, {"AGENTMESH_DATA_DIR": "~/there"}, home).data_dir == home / "there"


def test_a_relative_path_in_the_users_file_is_relative_to_that_file(home, monkeypatch):
    (home / "config").mkdir()
    (home / "config" / "config.toml").write_text("data_dir = 'here'\n[log]\nfile = '../log.jsonl'")
    monkeypatch.chdir("/")
    settings = load({}, {"AGENTMESH_CONFIG_DIR": str(home / "config")}, None)
    assert settings.data_dir == home / "config" / "here"
    assert settings.log.file == str(home / "config" / ".." / "log.jsonl")


@pytest.mark.parametrize("file", ["~/log.jsonl", "/log.jsonl", "-"])
def test_other_paths_in_the_users_file_stay_as_they_are(home, file):
    (home / "config.toml").write_text(f"[log]\nfile = '{file}'")
    settings = load({}, {"AGENTMESH_CONFIG_DIR": str(home)}, None)
    assert settings.log.file == file.replace("~", str(home))


def test_a_file_in_place_of_the_projects_folder_is_no_configuration(home):
    (home / ".agentmesh").write_text("")
    assert load({}, {}, home).warnings == ()


def test_nothing_is_read_without_files(home):
    assert load({}, {}, home / "does-not-exist").warnings == ()
