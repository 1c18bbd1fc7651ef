from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentmesh.config import paths
from agentmesh.config.settings import load


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


def test_a_file_in_place_of_the_projects_folder_is_no_configuration(home):
    (home / ".agentmesh").write_text("")
    assert load({}, {}, home).warnings == ()


def test_nothing_is_read_without_files(home):
    assert load({}, {}, home / "does-not-exist").warnings == ()
