"""The input: what keys do in it, what is entered, and what is kept of it."""

from __future__ import annotations

import sys
from contextlib import nullcontext

import pytest
from textual import events

from agentmesh.tui.commands.calls import CAPTURED, SAY, SAY_TO
from agentmesh.tui.input.files import Files
from agentmesh.tui.terminal import teach_alt_enter
from tests.tui.faces import face, id_of
from tests.tui.piloting import Show, enter, family, puppet


def test_text_that_is_typed_in_one_burst_with_enter_is_sent_whole():
    """Keys are judged one after another: Enter must not overtake the letters before it, nor letters Enter."""

    async def scene(show: Show) -> None:
        for key, character in [*((letter, letter) for letter in "hello"), ("enter", "\r"), ("x", "x"), ("y", "y")]:
            show.app.post_message(events.Key(key, character))
        await show.pilot.pause()
        assert show.typed == "xy"

    app = puppet(scene)
    assert [(call.name, call.args) for call in app.calls] == [(SAY, ("hello",))]


def test_letters_and_a_rotation_in_one_burst_stay_with_their_agents():
    async def scene(show: Show) -> None:
        await show.board(*family())
        await show.press("ctrl+down", "f7", "f7")
        assert show.in_view == "alpha"
        for key in ("a", "f8", "b"):
            show.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await show.pilot.pause()
        assert (show.in_view, show.typed) == ("beta", "b")
        await show.press("f7")
        assert (show.in_view, show.typed) == ("alpha", "a")

    puppet(scene)


@pytest.mark.parametrize("key", ["ctrl+j", "shift+enter", "alt+enter"])
def test_these_keys_begin_a_new_line(key):
    async def scene(show: Show) -> None:
        await show.press("a", key, "b")
        assert show.typed == "a\nb"

    assert puppet(scene).calls == []


def test_alt_enter_is_a_key_of_its_own_where_terminals_send_it_as_escape_and_enter():
    from textual._xterm_parser import XTermParser

    teach_alt_enter()
    assert [event.key for event in XTermParser()._sequence_to_key_events("\x1b\r")] == ["alt+enter"]


def test_with_text_the_rotation_keys_move_by_word_and_f8_rotates():
    async def scene(show: Show) -> None:
        await show.board(*family())
        await show.press("ctrl+down", "f7")
        assert show.in_view == "beta"
        await show.type("one two")
        for left, right in (("ctrl+left", "ctrl+right"), ("alt+left", "alt+right")):
            await show.press(left)
            assert show.app.main.composer.prompt.cursor_location == (0, 4)
            await show.press(right)
            assert show.app.main.composer.prompt.cursor_location == (0, 7)
        assert show.in_view == "beta"
        await show.press("f7")
        assert show.in_view == "alpha"

    puppet(scene)


def test_without_text_all_rotation_keys_rotate():
    async def scene(show: Show) -> None:
        await show.board(*family())
        steps = [
            ("ctrl+down", "gamma"), ("ctrl+right", "alpha"), ("alt+right", "beta"), ("ctrl+left", "alpha"),
            ("alt+left", "gamma"), ("alt+up", "root"), ("alt+down", "gamma"), ("ctrl+up", "root"),
        ]  # fmt: skip
        for key, name in steps:
            await show.press(key)
            assert show.in_view == name
            assert f" {name}" in show.lines[-4]

    puppet(scene)


def test_keys_that_lead_nowhere_say_so():
    async def scene(show: Show) -> None:
        await show.press("ctrl+up")
        assert show.lines[-1].strip() == "The root has no parent"
        await show.press("f8")
        assert show.lines[-1].strip() == "It has no siblings"

    puppet(scene)


def test_a_paste_of_ten_thousand_lines_is_kept_whole_and_cleaned():
    pasted = "\r\n".join(f"line {n}" for n in range(10_000)) + "\x1b[31m"

    async def scene(show: Show) -> None:
        show.app.main.composer.prompt.post_message(events.Paste(pasted))
        await show.pilot.pause()
        await show.press("enter")

    (call,) = puppet(scene).calls
    assert call.args[0].splitlines() == [f"line {n}" for n in range(9_999)] + ["line 9999[31m"]


def test_the_history_is_walked_at_the_first_and_last_line_only():
    async def scene(show: Show) -> None:
        await show.type("first\nsecond")
        await show.press("enter")
        await show.type("draft")
        await show.press("up")
        assert show.typed == "first\nsecond"
        await show.press("home", "up")
        assert show.typed == "first\nsecond", "the cursor was in the second line"
        await show.press("down", "down")
        assert show.typed == "draft"

    puppet(scene)


def test_each_agent_keeps_its_draft():
    async def scene(show: Show) -> None:
        await show.board(*family())
        await show.type("for root")
        await show.press("ctrl+down", "ctrl+left")
        assert show.typed == ""
        await show.type("for beta")
        await show.press("ctrl+up")
        assert show.typed == "for root"
        show.app.main.navigation.goto(id_of("beta"))
        assert show.typed == "for beta"

    puppet(scene)


@pytest.mark.parametrize("size", [(80, 24), (40, 10)])
def test_in_the_view_of_the_dead_commands_are_taken_and_text_stays(size):
    async def refused(show: Show, text: str, why: str) -> None:
        await enter(show, text)
        await show.sees(f"gamma is dead and {why}")
        assert (show.in_view, show.typed) == ("gamma", text)
        await show.press("ctrl+c")

    async def scene(show: Show) -> None:
        await show.board(*family())
        await show.press("ctrl+down")
        assert "✗ dead: nothing more can be said to it" in show.text
        for text in ("hello", "!ls", "@explore look"):
            await refused(show, text, "reads nothing")
        for text in ("/task explore look", "/urgent stop"):
            await refused(show, text, f"takes no {text.split(maxsplit=1)[0] if size[0] == 80 else ''}".rstrip())
        await show.press("ctrl+left")
        assert show.in_view == "beta"
        await show.press("b", "f8")
        assert (show.in_view, show.typed) == ("gamma", "")
        await enter(show, "/frok")
        await show.sees("There is no command /frok")
        await show.press("ctrl+c")
        for text in ("/reap", "@beta hello", "/fork @"):
            await show.type(text)
            await show.press("escape", "enter")

    calls = puppet(scene, size=size).calls
    assert [call.name for call in calls] == ["reap", SAY_TO, "fork"]


def test_commands_are_completed_with_descriptions():
    async def scene(show: Show) -> None:
        await show.type("/cap")
        assert "/capture  Keep what you type from every model" in show.text
        await show.press("tab")
        assert show.typed == "/capture"
        assert "Keep what you type" not in show.text

    puppet(scene)


def test_the_list_is_moved_through_and_escape_closes_it_without_interrupting():
    async def scene(show: Show) -> None:
        await show.board(face("root", None, "running"), face("alpha"), face("beta"))
        await show.type("/send ")
        names = [name for name in ("root", "alpha", "beta") if f" {name} " in show.text]
        assert {"alpha", "beta"} <= set(names)
        await show.press("down", "enter")
        assert show.typed.startswith("/send ")
        assert len(show.typed) > len("/send ")
        await show.press("ctrl+c")
        await show.type("/")
        assert "/agents" in show.text
        await show.press("escape")
        assert "/agents" not in show.text

    assert puppet(scene).calls == []


def test_files_are_completed(tmp_path):
    (tmp_path / "notes.md").touch()

    async def scene(show: Show) -> None:
        files = show.app.main.completer.files = Files(tmp_path)
        files.matches("")
        await show.until(lambda: files.is_complete)
        await show.type("see @not")
        assert "notes.md" in show.text
        await show.press("tab")
        assert show.typed == "see @notes.md "

    puppet(scene)


def test_an_unknown_command_stays_with_a_suggestion():
    async def scene(show: Show) -> None:
        await show.type("/capturr")
        await show.press("enter")
        assert show.typed == "/capturr"
        assert "There is no command /capturr. Did you mean /capture?" in show.lines[-1]
        await show.press("enter")
        assert show.typed == "/capturr"

    assert puppet(scene).calls == []


def test_in_a_capture_an_unknown_command_entered_again_is_captured():
    async def scene(show: Show) -> None:
        await show.board(face("root", None, capturing=True))
        assert "(capturing) ❯" in show.text
        await show.type("/etc-like")
        await show.press("enter")
        assert "Enter again captures it" in " ".join(show.text.split())
        await show.press("enter")
        assert show.typed == ""
        assert "Enter again" not in show.text
        await show.type("secret")
        await show.press("enter")

    assert [(call.name, call.args) for call in puppet(scene).calls] == [
        (CAPTURED, ("/etc-like",)),
        (CAPTURED, ("secret",)),
    ]


def test_an_unknown_command_that_was_changed_in_between_is_not_captured():
    async def scene(show: Show) -> None:
        await show.board(face("root", None, capturing=True))
        await show.type("/nope")
        await show.press("enter", "x", "backspace", "enter")
        assert show.typed == "/nope"

    assert puppet(scene).calls == []


def test_the_input_can_be_edited_in_an_editor(tmp_path, monkeypatch):
    script = tmp_path / "editor.py"
    script.write_text("import sys; p = sys.argv[1]; t = open(p).read(); open(p, 'w').write(t.upper() + '\\nmore\\n')")
    monkeypatch.setenv("VISUAL", f"{sys.executable} {script}")

    async def scene(show: Show) -> None:
        monkeypatch.setattr(show.app, "suspend", nullcontext)  # there is no terminal to hand over
        await show.type("draft")
        await show.press("ctrl+g")
        assert show.typed == "DRAFT\nmore"

    puppet(scene)


def test_an_editor_that_fails_leaves_the_input_as_it_was(monkeypatch):
    monkeypatch.setenv("VISUAL", "false")

    async def scene(show: Show) -> None:
        monkeypatch.setattr(show.app, "suspend", nullcontext)
        await show.type("draft")
        await show.press("ctrl+g")
        assert show.typed == "draft"
        assert "false ended with 1" in show.lines[-1]

    puppet(scene)


def test_rebound_keys_work_and_are_the_ones_shown():
    async def scene(show: Show) -> None:
        await show.board(*family())
        assert "Ctrl+N child" in show.lines[-1]
        await show.press("ctrl+down")
        assert show.in_view == "root"
        await show.press("ctrl+n")
        assert show.in_view == "gamma"
        await show.press("ctrl+up")
        await show.type("text")
        await show.press("ctrl+s")

    app = puppet(scene, keys={"rotate.child": "ctrl+n", "prompt.submit": "ctrl+s"})
    assert [call.args for call in app.calls] == [("text",)]
