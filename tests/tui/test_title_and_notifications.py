"""What the screen tells outside of itself: title, bell, notifications."""

from __future__ import annotations

import pytest
from textual import events

from agentmesh.config.schema import Tui
from agentmesh.tui.board.title_and_notifications import (
    Notifier,
    asks,
    ends,
    notification,
    protocol_of,
    set_title,
    title_of,
)
from tests.tui.faces import asking, board, face, request
from tests.tui.piloting import Show, puppet

NASTY = "a\x1b]0;b\x07c\x9cd\u202ee\r\nf"


@pytest.mark.parametrize("protocol", ["osc9", "osc777", "osc99"])
def test_foreign_text_ends_no_sequence_and_is_bounded(protocol):
    for tmux in (False, True):
        said = notification(protocol, NASTY, NASTY + "x" * 9000, in_tmux=tmux)
        inner = said.removeprefix("\x1bPtmux;").replace("\x1b\x1b", "\x1b") if tmux else said
        parts = [part for part in inner.split("\x1b") if part]
        assert all(part[0] in "]\\\\" for part in parts), "nothing but the beginnings and ends of our sequences"
        assert not {"\x07", "\x9c", "\u202e", "\n", "\r"} & set(said)
        assert len(said) < 500


def test_each_protocol_has_its_form():
    assert notification("osc9", "agentmesh", "a asks") == "\x1b]9;agentmesh: a asks\x1b\\"
    assert notification("osc777", "a;b", "c;d") == "\x1b]777;notify;a,b;c;d\x1b\\"
    assert notification("osc99", "t", "b") == "\x1b]99;i=agentmesh:d=0;t\x1b\\\x1b]99;i=agentmesh:p=body;b\x1b\\"
    assert notification("off", "t", "b") == ""
    assert notification("osc9", "t", "b", in_tmux=True) == "\x1bPtmux;\x1b\x1b]9;t: b\x1b\x1b\\\x1b\\"


@pytest.mark.parametrize(
    ("environ", "wanted", "protocol"),
    [
        ({}, "auto", "off"),
        ({"TERM": "xterm-256color"}, "auto", "off"),
        ({"TERM": "xterm-kitty"}, "auto", "osc99"),
        ({"KITTY_WINDOW_ID": "1", "TERM": "tmux-256color"}, "auto", "osc99"),
        ({"TERM_PROGRAM": "WezTerm"}, "auto", "osc9"),
        ({"WT_SESSION": "x"}, "auto", "osc9"),
        ({"TERM": "foot"}, "auto", "osc777"),
        ({"VTE_VERSION": "7600"}, "auto", "osc777"),
        ({"TERM": "xterm-kitty"}, "off", "off"),
        ({}, "osc9", "osc9"),
    ],
)
def test_the_protocol_is_the_terminals_unless_one_is_wanted(environ, wanted, protocol):
    assert protocol_of(environ, wanted) == protocol


def test_the_title_names_who_needs_you_and_the_agent_in_view():
    assert title_of(None, None) == "agentmesh"
    seen = board(face("a"), asking("b"))
    assert title_of(seen, seen.root) == "1 needs you: b · root · agentmesh"
    assert "\x1b]0" not in set_title(NASTY)


def test_requests_failures_and_the_end_of_the_work_are_news():
    before = board(face("root", None, "running"), face("a", status="running"), face("b", status="running"))
    after = board(face("root", None, "running"), face("a", activity="failed"), face("b"))
    assert list(ends(before, after)) == ["a failed"], "its parent goes on with what b has done"
    assert list(ends(before, board(face("a", status="running"), face("b", status="running")))) == ["root finished"]
    stopped = board(face("root", None, activity="interrupted"), face("a", status="dead"), face("b", status="running"))
    assert list(ends(before, stopped)) == [], "a person did that"
    asked = board(asking("a"), asking("b", request("b", question="Which one?")))
    assert asks(board(asking("a")), asked) == ["b asks: Which one?"]
    assert asks(asked, asked) == []


def test_news_are_gathered_and_told_only_while_nobody_looks():
    written: list[str] = []
    notifier = Notifier(written.append, {}, notify="osc9")
    running, idle = board(face("root", None, "running")), board()
    assert not notifier.take(running, is_focused=False), "a first board has no news"
    assert notifier.take(board(face("root", None, "running", requests=(request("root"),))), is_focused=False)
    assert notifier.take(idle, is_focused=False)
    notifier.tell(is_focused=False)
    assert written == ["\x1b]9;agentmesh: root asks: bash, root finished\x1b\\\a"]
    notifier.take(running, is_focused=False)
    assert not notifier.take(idle, is_focused=True)
    notifier.tell(is_focused=False)
    assert len(written) == 1


def test_without_a_bell_there_is_none():
    written: list[str] = []
    notifier = Notifier(written.append, {}, notify="off", rings=False)
    notifier.take(board(face("root", None, "running")), is_focused=False)
    notifier.take(board(), is_focused=False)
    notifier.tell(is_focused=False)
    assert written == [""]


def test_a_screen_without_focus_tells_and_has_a_title(monkeypatch):
    monkeypatch.setattr("agentmesh.tui.board.terminal_news._GATHER", 0.05)

    async def scene(show: Show) -> None:
        written: list[str] = []
        monkeypatch.setattr(show.app, "_write_out", written.append)
        show.app._news.begin(Tui(notify="osc9"), {})
        await show.board(face("root", None, "running"))
        show.app.post_message(events.AppBlur())
        await show.pilot.pause()
        await show.board(face("beta"))
        await show.until(lambda: any("root finished" in each for each in written))
        await show.press("ctrl+down")
        assert show.app.title == "beta · agentmesh"
        assert "\x1b]2;beta · agentmesh\x1b\\" in written

    puppet(scene)


def test_nothing_is_written_where_there_is_no_terminal(monkeypatch):
    async def scene(show: Show) -> None:
        assert show.app._driver
        written: list[str] = []
        monkeypatch.setattr(show.app._driver, "write", written.append)
        show.app._write_out("x")
        assert written == []

    puppet(scene)
