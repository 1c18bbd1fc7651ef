"""A long paste shows as a placeholder, and is sent whole."""

from __future__ import annotations

from textual import events

from agentmesh.tui.commands.calls import Done, Failed
from agentmesh.tui.commands.messages import ActionDone
from agentmesh.tui.input.pastes import LONGEST, FoldedPastes
from tests.tui.faces import face, id_of
from tests.tui.piloting import ROOT, Show, asked, enter, puppet

TEXT = "\n".join(f"line {n}" for n in range(214))
OTHER = "\n".join(f"row {n}" for n in range(214))
MARK = "[pasted 214 lines]"


async def paste(show: Show, text: str) -> None:
    show.app.main.composer.prompt.post_message(events.Paste(text))
    await show.pilot.pause()


def test_it_is_sent_whole_with_what_stands_around_it():
    async def scene(show: Show) -> None:
        await show.type("before ")
        await paste(show, TEXT)
        await show.type(" after")
        assert show.typed == f"before {MARK} after"
        assert f"❯ before {MARK} after" in show.text
        await show.press("enter")
        assert show.typed == ""

    (call,) = puppet(scene).calls
    assert call.args == (f"before {TEXT} after",)


def test_ctrl_k_in_an_empty_input_does_nothing():
    async def scene(show: Show) -> None:
        await show.press("ctrl+k")
        assert show.typed == ""
        await show.type("a")
        await show.press("ctrl+k")
        assert show.typed == "a"

    puppet(scene)


def test_a_short_one_is_shown_as_it_is():
    pastes = FoldedPastes()
    short = "\n".join("x" * LONGEST)
    assert pastes.fold(short) == short
    assert pastes.fold(short + "\ny") == f"[pasted {LONGEST + 1} lines]"


def test_two_of_the_same_length_are_told_apart():
    async def scene(show: Show) -> None:
        await paste(show, TEXT)
        await paste(show, OTHER)
        await paste(show, TEXT)
        assert show.typed == f"{MARK}[pasted 214 lines, 2]{MARK}"
        await show.press("enter")

    (call,) = puppet(scene).calls
    assert call.args == (TEXT + OTHER + TEXT,)


def test_what_only_looks_like_one_stays_as_it_is():
    pastes = FoldedPastes()
    pastes.fold(TEXT)
    nested = "\n".join([MARK] * 30)
    mark = pastes.fold(nested)
    assert pastes.whole(f"[pasted 5 lines] {mark}") == f"[pasted 5 lines] {nested}", "not replaced twice"


def test_a_part_of_it_cannot_be_deleted_nor_typed_into():
    async def scene(show: Show) -> None:
        await show.type("a ")
        await paste(show, TEXT)
        await show.press("left", "left", "left")
        await show.type("b")
        assert show.typed == f"a {MARK}b", "what is typed in it stands behind it"
        await show.press("backspace", "backspace")
        assert show.typed == "a "
        await show.press("ctrl+underscore")
        assert show.typed.startswith(f"a {MARK}")
        await show.press("home", "right", "right", "delete")
        assert "pasted" not in show.typed

    puppet(scene)


def test_the_key_that_unfolds_unfolds_it_where_the_cursor_is():
    async def scene(show: Show) -> None:
        await paste(show, TEXT)
        await show.press("ctrl+o")
        assert show.typed == TEXT
        await show.press("ctrl+underscore")
        assert show.typed == MARK

    puppet(scene)


def test_a_click_unfolds_it():
    async def scene(show: Show) -> None:
        await show.type("see ")
        await paste(show, TEXT)
        await show.pilot.click("#prompt", offset=(1, 0))
        assert show.typed == f"see {MARK}"
        await show.pilot.click("#prompt", offset=(10, 0))
        assert show.typed == f"see {TEXT}"

    puppet(scene)


def test_it_survives_drafts_history_and_clearing():
    async def scene(show: Show) -> None:
        await show.board(face("alpha"))
        await paste(show, TEXT)
        await show.press("f7", "ctrl+down")
        await show.until(lambda: show.in_view == "alpha")
        assert show.typed == ""
        await show.press("ctrl+up")
        assert show.typed == MARK
        await show.press("ctrl+c")
        assert show.typed == ""
        await show.press("up")
        assert show.typed == MARK
        await show.press("enter")
        assert asked(show)[-1].args == (TEXT,)
        await show.press("ctrl+r", "enter")
        assert show.typed == MARK

    puppet(scene)


def test_it_comes_back_folded_when_it_is_refused():
    async def scene(show: Show) -> None:
        await show.board(face("alpha"))
        await paste(show, TEXT)
        await show.press("enter")
        refused = ActionDone(asked(show)[0], ROOT, Failed("it is too long", "Shorten it.", TEXT))
        await show.post(refused)
        assert show.typed == MARK
        await show.press("f7", "ctrl+down")
        await show.until(lambda: show.in_view == "alpha")
        await show.post(refused)
        await show.press("ctrl+up")
        assert show.typed == f"{MARK}\n{MARK}", "a draft for an agent out of view too"
        assert show.app.main.composer.prompt.whole == f"{TEXT}\n{TEXT}"

    puppet(scene)


def test_it_stays_folded_when_an_agent_comes_into_view_that_takes_it_not():
    async def scene(show: Show) -> None:
        await enter(show, "/fork")
        await paste(show, TEXT)
        await show.press("enter")
        await show.type("more")
        await show.post(ActionDone(asked(show)[0], ROOT, Done("Forked fork.", goto=id_of("fork"))))
        await show.board(face("fork", status="dead"))
        assert show.typed == f"{MARK}\nmore"

    puppet(scene)


def test_an_editor_gets_it_whole(monkeypatch, tmp_path):
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nwc -l < "$1" > "$1.count"; cp "$1.count" "$COUNTED"; echo more >> "$1"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(editor))
    monkeypatch.setenv("VISUAL", "")
    monkeypatch.setenv("COUNTED", str(tmp_path / "counted"))

    from agentmesh.tui.input import editor as outside

    async def scene(show: Show) -> None:
        await paste(show, TEXT)
        prompt = show.app.main.composer.prompt
        import os

        prompt.put_folded(outside.edit(prompt.whole + "\n", os.environ).removesuffix("\n"))
        assert show.typed == f"{MARK}\nmore"

    puppet(scene)
    assert (tmp_path / "counted").read_text().strip() == "214"


def test_a_selection_is_copied_whole():
    async def scene(show: Show) -> None:
        await paste(show, TEXT)
        show.app.main.composer.prompt.select_all()
        assert show.app.main.composer.prompt.selected_text == TEXT

    puppet(scene)
