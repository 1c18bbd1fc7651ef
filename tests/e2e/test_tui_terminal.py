"""What the screen does to the terminal around it: title, colours, and the shell that it is suspended to."""

from __future__ import annotations

from agentmesh.tui.board.outward import POP_TITLE, PUSH_TITLE
from tests.fixtures.engine import Rig
from tests.fixtures.terminal import Desk


def test_the_title_is_set_and_given_back(desk: Desk, rig: Rig):
    rig.fork("beta")
    shown = desk.open()
    shown.press("ctrl+down")
    shown.until("Message beta")
    shown.until(lambda _: "\x1b]2;beta · agentmesh\x1b\\".encode() in shown.output)
    shown.leave()
    assert shown.output.count(PUSH_TITLE.encode()) == shown.output.count(POP_TITLE.encode()) == 1
    assert shown.output.index(POP_TITLE.encode()) > shown.output.index(PUSH_TITLE.encode())


def test_without_a_title_none_is_set(desk: Desk, rig: Rig):
    desk.configure("[tui]\ntitle = false\n")
    shown = desk.open()
    shown.leave()
    assert b"\x1b]2;" not in shown.output
    assert PUSH_TITLE.encode() not in shown.output
    assert POP_TITLE.encode() not in shown.output


def test_a_terminal_without_focus_is_told_that_an_agent_has_finished(desk: Desk, rig: Rig):
    desk.configure('[tui]\nnotify = "osc777"\n')
    rig.worker()
    shown = desk.open()
    shown.enter("hello")
    shown.type("\x1b[O")  # the terminal loses the focus
    shown.until(lambda _: b"\x1b]777;notify;agentmesh" in shown.output)
    assert b"root finished" in shown.output
