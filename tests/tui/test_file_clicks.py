"""A click on the name of an existing file opens it in the person's editor."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentmesh.tui.conversation.file_names import named_file, word_at
from agentmesh.tui.conversation.scrollback import Scrollback
from agentmesh.tui.conversation.tool_call import ToolCallView
from agentmesh.tui.input import editor
from tests.tui.piloting import Show, called, puppet, result, said


@pytest.mark.parametrize(
    ("line", "column", "word"),
    [
        ("see calc.py now", 4, "calc.py"),
        ("see calc.py now", 10, "calc.py"),
        ("see calc.py now", 3, ""),
        ("see calc.py now", 99, ""),
        ("日本 calc.py", 5, "calc.py"),
        ("(`src/a b.py`)", 4, "src/a"),
        ("", 0, ""),
    ],
)
def test_the_word_under_the_mouse(line: str, column: int, word: str):
    assert word_at(line, column) == word


def test_only_files_that_exist_are_named(tmp_path: Path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("")
    (tmp_path / "-rf").write_text("")
    os.mkfifo(tmp_path / "pipe")
    for word in ("src/a.py", "src/a.py.", "src/a.py:12", "src/a.py:12:3,".rstrip(","), str(tmp_path / "src/a.py")):
        assert named_file(word, tmp_path) == tmp_path / "src" / "a.py"
    assert named_file("-rf", tmp_path) == tmp_path / "-rf"
    for word in ("src", "nope.py", "pipe", "x\0y", "x" * 5000, "~nobody/x", "...", ""):
        assert named_file(word, tmp_path) is None


@pytest.fixture
def opened(monkeypatch) -> list[Path]:
    paths: list[Path] = []
    monkeypatch.setattr(editor, "open_file", lambda path, _environ: paths.append(path))
    return paths


@contextmanager
def _suspended():
    yield


async def click(show: Show, word: str) -> None:
    """Click a word on the screen."""
    y, line = next((y, line) for y, line in enumerate(show.lines) if word in line)
    await show.pilot.click(offset=(line.index(word) + 1, y))
    await show.pilot.pause()


def begun(show: Show, folder: Path) -> None:
    show.app.suspend = _suspended  # type: ignore[method-assign]
    show.app.main.views.workdir = folder
    for scrollback in show.app.main.query(Scrollback):
        scrollback._workdir = folder


def test_a_click_on_a_file_in_an_answer_or_in_a_calls_line_opens_it(tmp_path: Path, opened):
    for name in ("calc.py", "main.rs", "notes.md"):
        (tmp_path / name).write_text("")

    async def scene(show: Show) -> None:
        begun(show, tmp_path)
        answer = "See **calc.py**, nope.py and `main.rs`.\n\n- [calc.py](https://example.org)"
        await show.rows(
            called(1, "read", '{"path": "notes.md"}'), result(2, 1, "read", {"content": "x"}), said(3, answer)
        )
        await show.sees("nope.py")
        await click(show, "calc.py")
        await click(show, "main.rs")
        await click(show, "nope.py")
        assert opened == [tmp_path / "calc.py", tmp_path / "main.rs"]
        (call,) = show.app.main.query(ToolCallView)
        await click(show, "notes.md")
        assert opened[2:] == [tmp_path / "notes.md"]
        folds = [call.unfolded]
        await click(show, "read")
        assert [*folds, call.unfolded] == [False, True]
        assert len(opened) == 3

    puppet(scene)


def test_files_of_another_machine_are_not_opened(tmp_path: Path, opened):
    (tmp_path / "calc.py").write_text("")

    async def scene(show: Show) -> None:
        begun(show, tmp_path)
        for scrollback in show.app.main.query(Scrollback):
            scrollback._workdir = None
        await show.rows(said(1, "See calc.py now."))
        await show.sees("calc.py")
        await click(show, "calc.py")

    puppet(scene)
    assert opened == []


def test_an_editor_that_is_not_there_is_said(tmp_path: Path, monkeypatch):
    (tmp_path / "calc.py").write_text("")
    monkeypatch.setenv("VISUAL", "no-such-editor")

    async def scene(show: Show) -> None:
        begun(show, tmp_path)
        await show.rows(said(1, "See calc.py now."))
        await show.sees("calc.py")
        await click(show, "calc.py")
        await show.sees("no-such-editor")

    puppet(scene)


def test_the_editor_gets_the_whole_path(tmp_path: Path):
    (tmp_path / "-x").write_text("")
    kept = tmp_path / "kept"
    script = tmp_path / "editor.sh"
    script.write_text(f'#!/bin/sh\nprintf %s "$2" > {kept}\n')
    script.chmod(0o755)
    editor.open_file(tmp_path / "-x", {"VISUAL": f"{script} --wait"})
    assert kept.read_text() == str(tmp_path / "-x")
    with pytest.raises(editor.EditorFailed, match="ended with 1"):
        editor.open_file(tmp_path / "-x", {"EDITOR": "false"})
