"""What the screen does to the terminal around it: title, colours, and the shell that it is suspended to."""

from __future__ import annotations

import sys

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


def test_ctrl_z_suspends_to_the_shell_and_fg_brings_the_screen_back(desk: Desk, rig: Rig):
    rig.worker()
    session = rig.one("select session_id::text from agentmesh.agents where id = %s", rig.root)
    shown = desk.terminal("/bin/bash", "--norc", "--noprofile", "-i", PS1="shell> ", HISTFILE="")
    shown.until("shell>")
    shown.enter(f"{sys.executable} -m agentmesh --resume {session}")
    shown.until("Message root", "cost ")
    shown.type("half a thought")
    shown.until("❯ half a thought")
    shown.press("ctrl+z")
    shown.until("Stopped", "shell>", lambda text: "half a thought" not in text)
    assert shown.output.count(POP_TITLE.encode()) == 1
    shown.enter("echo here $((40 + 2))")
    shown.until("here 42")
    shown.enter("fg")
    shown.until("❯ half a thought", "F1 help", lambda text: "here 42" not in text)
    shown.type(" and more")
    shown.until("❯ half a thought and more")
    shown.press("enter")
    shown.until("▌ you", "half a thought and more", "done")
    shown.press("ctrl+c")
    shown.until("again leaves")
    shown.press("ctrl+c")
    shown.until("Go on with", "shell>")
