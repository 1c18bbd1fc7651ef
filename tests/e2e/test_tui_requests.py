"""What agents ask a person, in a real terminal, with a real worker and a scripted model."""

from __future__ import annotations

import time

import pytest

from agentmesh.domain.states import PermissionMode
from agentmesh.store import requests
from agentmesh.tui.requests.key_guard import GRACE
from tests.fixtures.engine import Rig, call, do, say
from tests.fixtures.terminal import Desk, Terminal

KEYS = "Esc later"
"""Shown as soon as keys count."""


def no_dialog(text: str) -> bool:
    return "╭" not in text


@pytest.fixture
def asking(rig: Rig) -> Rig:
    """A session in which writing and commands ask."""
    rig.root = rig.session(mode=PermissionMode.ASK)
    return rig


def ask(rig: Rig, desk: Desk, *replies: object) -> Terminal:
    """Show the root, and let a grandchild of it ask."""
    rig.script("deep", *replies)  # type: ignore[arg-type]
    rig.fork("child")
    rig.worker()
    shown = desk.open()
    rig.fork("deep", "go", parent="child")
    return shown


def test_a_grandchild_asks_while_the_root_is_in_view_and_is_allowed(desk: Desk, asking: Rig):
    shown = ask(asking, desk, do(call("bash", command="touch made")), say("It is made."))
    shown.until("deep asks: may it use bash?", "root › child › deep", "touch made", "bash(touch made)", KEYS)
    assert not (asking.workdir / "made").exists()
    shown.type("y")
    shown.until(no_dialog, "Allowed bash for deep, once.", "Message root")
    asking.rest()
    assert (asking.workdir / "made").exists()
    assert asking.last("deep") == ("It is made.", None)


def test_what_is_refused_with_a_reason_tells_the_model(desk: Desk, asking: Rig):
    shown = ask(asking, desk, do(call("write", path="made.txt", content="one\ntwo\n")), say("Then not."))
    shown.until("deep asks: may it use write?", "+one", "+two", KEYS)
    shown.type("n")
    shown.until("Why not?")
    shown.enter("write a test first")
    shown.until(no_dialog, "Refused write for deep.")
    asking.rest()
    assert "write a test first" in asking.results("write", "deep")[0]["error"]
    assert not (asking.workdir / "made.txt").exists()


def test_an_edited_command_is_what_runs(desk: Desk, asking: Rig):
    shown = ask(asking, desk, do(call("bash", command="touch made")), say("Done."))
    shown.until("touch made", KEYS)
    shown.type("e")
    shown.until("What is to run instead:")
    shown.enter("-by-hand")
    shown.until(no_dialog, "once as you have edited it")
    asking.rest()
    assert (asking.workdir / "made-by-hand").exists()
    assert not (asking.workdir / "made").exists()


def test_always_settles_what_other_agents_ask_too(desk: Desk, asking: Rig):
    for name in ("alpha", "beta"):
        asking.script(name, do(call("bash", command=f"git init {name}")), say("Done."))
    asking.worker()
    shown = desk.open()
    asking.fork("alpha", "go")
    shown.until("alpha asks")
    asking.fork("beta", "go")
    shown.until("1 of 2", "bash(git init *)", KEYS)
    shown.type("a")
    shown.until("one rule a line", "Enter asks once more")
    shown.press("enter")
    shown.until("Enter again allows it")
    time.sleep(GRACE)
    shown.press("enter")
    shown.until(no_dialog, "Allowed from now on, in this session: bash(git init *)")
    asking.rest()
    assert all((asking.workdir / name).is_dir() for name in ("alpha", "beta"))
    shown.enter("/permissions")
    shown.until("Mode ask", "1  bash(git init *)")
    shown.press("escape")
    shown.until(no_dialog)
    shown.enter("/permissions forget 1")
    shown.until("Forgot 1 rule.")


def test_a_question_is_answered_and_the_dialog_waits_aside_until_then(desk: Desk, asking: Rig):
    question = do(call("ask_user", question="Which [b]colour[/b]?", options=["red", "blue"]))
    shown = ask(asking, desk, question, say("Blue it is."))
    shown.until("deep asks you", "Which [b]colour[/b]?", "1 red", "2 blue", KEYS)
    shown.press("escape")
    shown.until(no_dialog, "1 needs you: deep (F2)")
    shown.press("f2")
    shown.until("Which [b]colour[/b]?", KEYS)
    shown.type("2")
    shown.until(no_dialog, "Answered deep.")
    asking.rest()
    assert asking.results("ask_user", "deep") == [{"answer": "blue"}]


def test_answered_elsewhere_the_dialog_closes_and_says_by_whom(desk: Desk, asking: Rig):
    shown = ask(asking, desk, do(call("bash", command="touch made")), say("Done."))
    shown.until("deep asks", KEYS)
    (request,) = asking.db.run(requests.pending, asking.one("select session_id from agentmesh.requests"))
    elsewhere = desk.start("answer", str(request.id)[:8], "once", columns=120)
    elsewhere.until("Allowed bash for deep, once.")
    assert elsewhere.wait() == 0
    shown.until(no_dialog, "deep (bash) was answered by", "(agentmesh answer): once")
    asking.rest()
    assert (asking.workdir / "made").exists()


def test_the_end_of_the_asker_closes_the_dialog(desk: Desk, asking: Rig):
    shown = ask(asking, desk, do(call("bash", command="touch made")), say("Done."))
    shown.until("deep asks", KEYS)
    asking.kill("deep")
    shown.until(no_dialog, "deep no longer asks (bash): its turn has ended")
    asking.rest()
    assert not (asking.workdir / "made").exists()


def test_what_is_being_typed_stays_and_the_bell_tells(desk: Desk, asking: Rig):
    asking.script("deep", do(call("bash", command="touch made")), say("Done."))
    asking.worker()
    shown = desk.open()
    shown.type("yes, I think that")
    shown.until("❯ yes, I think that")
    asking.fork("deep", "go")
    shown.until("! deep asks: bash: touch made  F2 answers", no_dialog)
    assert b"\x07" in shown.output
    shown.type(" y")
    shown.until("❯ yes, I think that y", no_dialog)
    assert not (asking.workdir / "made").exists()
    shown.press("f2")
    shown.until("deep asks: may it use bash?", KEYS)
    shown.press("down")
    shown.press("enter")
    shown.until(no_dialog, "❯ yes, I think that y", "Allowed bash for deep, once.")
    asking.rest()
    assert (asking.workdir / "made").exists()


def test_a_request_is_there_again_when_the_screen_is_opened_again(desk: Desk, asking: Rig):
    shown = ask(asking, desk, do(call("bash", command="touch made")), say("Done."))
    shown.until("deep asks", KEYS)
    shown.kill()
    again = desk.open()
    again.until("deep asks: may it use bash?", KEYS)
    again.press("enter")  # nothing is highlighted
    again.press("down")
    again.press("enter")
    again.until(no_dialog, "Allowed bash")
    asking.rest()
    assert (asking.workdir / "made").exists()


def test_an_agent_cannot_open_the_screen(desk: Desk, asking: Rig):
    shown = desk.start("--resume", str(asking.one("select id from agentmesh.sessions limit 1")), AGENTMESH_AGENT="x")
    assert shown.wait() == 2
    assert "only a person may use the terminal UI, and this runs below agent x" in " ".join(shown.text.split())


def test_the_mode_settles_what_it_covers(desk: Desk, asking: Rig):
    shown = ask(asking, desk, do(call("write", path="a.txt", content="x")), say("Done."))
    shown.until("deep asks", KEYS)
    shown.press("escape")
    shown.until(no_dialog)
    shown.press("shift+tab")
    shown.until("deep (write) was answered by a rule or the mode: once", " edits ")
    asking.rest()
    assert (asking.workdir / "a.txt").read_text() == "x"
