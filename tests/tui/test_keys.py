from __future__ import annotations

import pytest

from agentmesh.config.settings import load
from agentmesh.domain.errors import ConfigError
from agentmesh.tui.input.keys import DEFAULTS, Keymap, label


def test_rotation_has_its_alt_twins_and_keys_that_always_work():
    keys = Keymap()
    assert keys.labels("rotate.previous") == "Ctrl+← or Alt+←"
    assert keys.labels("rotate.child") == "Ctrl+↓ or Alt+↓"
    assert (keys.label("rotate.previous_always"), keys.label("rotate.next_always")) == ("F7", "F8")


def test_no_default_key_does_two_things_and_every_id_is_one():
    for focus in ("prompt", "scrollback"):  # never both at once
        used = [key for binding in DEFAULTS if binding.place in ("screen", focus) for key in binding.keys.split(",")]
        assert len(used) == len(set(used))
    assert len({binding.id for binding in DEFAULTS}) == len(DEFAULTS)


def test_what_is_shown_is_what_is_bound():
    keys = Keymap({"agents.pick": " Ctrl+K, F12 ", "app.help": ""})
    (pick,) = [key for key in keys.bindings("screen") if key.id == "agents.pick"]
    assert pick.keys == "ctrl+k,f12"
    assert keys.labels("agents.pick") == "Ctrl+K or F12"
    assert keys.label("app.help") == ""
    assert "app.help" not in {key.id for key in keys.bindings("screen")}


def test_an_unknown_id_is_refused_with_the_nearest():
    with pytest.raises(ConfigError) as refused:
        Keymap({"agent.pick": "f2"})
    assert "agents.pick" in refused.value.hint


@pytest.mark.parametrize(
    "key", ["ctrl+nope", "control+p2", "crtl+p", "f99", "f2,shift+entre", "ctrl+", "ctrl+ctrl+p", "<any>"]
)
def test_a_key_that_no_terminal_sends_is_refused(key: str):
    with pytest.raises(ConfigError, match=r"agents\.pick is bound to .*, and there is no such key\."):
        Keymap({"agents.pick": key})


@pytest.mark.parametrize(
    ("key", "meant"),
    [("shift+entre", "shift+enter"), ("scroll-loc", "scroll_lock"), ("backtab", "shift+tab"), ("ctrl+upp", "ctrl+up")],
)
def test_the_key_that_was_meant_is_named(key: str, meant: str):
    with pytest.raises(ConfigError) as refused:
        Keymap({"agents.pick": key})
    assert refused.value.hint == f"Did you mean {meant}?"


def test_no_event_of_the_mouse_is_named_as_a_key():
    with pytest.raises(ConfigError) as refused:
        Keymap({"agents.pick": "scroll-up"})
    assert "<" not in refused.value.hint


@pytest.mark.parametrize(
    "key",
    ["ctrl+shift+p", "f24", "media_play", "full_stop", "ctrl+slash", "ctrl++", ".", "ctrl+.", "super+é", "esc", ""],
)
def test_a_key_that_some_terminal_sends_is_taken(key: str):
    Keymap({"agents.pick": key})


def test_every_default_is_a_key():
    for key in DEFAULTS:
        Keymap({key.id: key.keys})


def test_a_key_cannot_be_given_to_two_things():
    with pytest.raises(ConfigError, match=r"f12 is bound to both .*agents.tree"):
        Keymap({"agents.pick": "f12", "agents.tree": "f12"})


def test_a_default_gives_way_to_the_configuration_and_keeps_its_other_keys():
    keys = Keymap({"agents.pick": "f8, alt+left", "entry.fold": "f4"})
    assert keys.labels("agents.pick") == "F8 or Alt+←"
    assert (keys.labels("rotate.next_always"), keys.lost("rotate.next_always")) == ("", "F8 is for: Pick an agent")
    assert (keys.labels("rotate.previous"), keys.lost("rotate.previous")) == ("Ctrl+←", "Alt+← is for: Pick an agent")
    assert keys.labels("mail.take_back") == ""  # a key of the screen works on an entry too
    assert keys.labels("agents.tree") == "Ctrl+T"
    assert keys.lost("agents.tree") == ""


def test_the_input_and_an_entry_may_use_the_same_key():
    keys = Keymap({"prompt.submit": "space"})
    assert keys.labels("entry.fold") == "Enter or Space"


@pytest.mark.parametrize(
    ("key", "shown"), [("shift+enter", "Shift+Enter"), ("f1", "F1"), ("ctrl+p", "Ctrl+P"), ("escape", "Esc")]
)
def test_keys_are_written_for_people(key, shown):
    assert label(key) == shown


@pytest.mark.parametrize("text", ['[tui.keys]\nagents.pick = "ctrl+k"', '[tui.keys]\n"agents.pick" = "ctrl+k"'])
def test_they_come_from_the_configuration(tmp_path, text):
    (tmp_path / "config.toml").write_text(text)
    settings = load({}, {"AGENTMESH_CONFIG_DIR": str(tmp_path)}, tmp_path)
    assert Keymap(settings.tui.keys).label("agents.pick") == "Ctrl+K"


def test_a_projects_file_binds_no_keys(tmp_path):
    (tmp_path / ".agentmesh").mkdir()
    (tmp_path / ".agentmesh" / "config.toml").write_text('[tui.keys]\nagents.pick = "ctrl+k"')
    settings = load({}, {"AGENTMESH_CONFIG_DIR": str(tmp_path / "user")}, tmp_path)
    assert settings.tui.keys == {}
    assert "tui.keys" in settings.warnings[0]


@pytest.mark.parametrize("text", ['[tui]\ntheme = ""', "[tui.keys]\nagents.pick = 3", "[tui]\nkey = 1"])
def test_what_makes_no_sense_is_refused(tmp_path, text):
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"tui"):
        load({}, {"AGENTMESH_CONFIG_DIR": str(tmp_path)}, tmp_path)
