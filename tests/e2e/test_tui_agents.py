"""Many agents in one terminal: who does what is seen, views change by keys, commands act on who is in view."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable

from tests.fixtures.engine import Rig, call, do, say, when
from tests.fixtures.terminal import Desk

CHILDREN = ("alpha", "beta", "gamma", "delta")


def seen(pattern: str) -> Callable[[str], object]:
    """Return whether a line is on the screen."""
    return lambda text: re.search(pattern, text, re.MULTILINE)


def in_view(name: str) -> Callable[[str], object]:
    """Return whether the line above the input shows the agent as the one in view."""
    return seen(rf"^ (\S+ › )?!?{name}( |$)")


def test_the_status_layer_shows_every_state_of_those_waited_for(desk: Desk, rig: Rig):
    release = threading.Event()
    rig.script(
        "root",
        do(*(call("fork", name=name, prompt="work") for name in CHILDREN), text="Four at once."),
        do(call("wait", timeout=60, from_agents=list(CHILDREN))),
        say("All four are accounted for."),
    )
    rig.script("alpha", do(call("send", to="parent", message="the report of alpha")), say("Sent."))
    rig.script("beta", say("Nothing to report."))
    rig.script("gamma", when(release, say("never said")))
    rig.script("delta", when(release, say("late")))
    rig.worker(concurrency=8)
    shown = desk.open()
    shown.enter("fan out")
    shown.until(
        "fan out",
        "Four at once.",
        seen(r"^ +alpha +✓ received +1 call "),
        seen(r"^ +beta +○ idle "),
        seen(r"^ +gamma +◐ running "),
        seen(r"^ +delta +◐ running "),
        seen(r"waiting · \d+ s · \d+ s left · Esc interrupts"),
        seen(r"^ root  ▸ 4 children"),
    )
    shown.enter("/kill gamma")
    shown.until(seen(r"^ +gamma +✗ dead "), in_view("root"))
    release.set()
    shown.until("All four are accounted for.", lambda text: "✓ received" not in text, "complete: alpha received")
    rig.rest()
    assert rig.status("gamma") == "dead"
    session = rig.one("select left(id::text, 8) from agentmesh.sessions")
    assert shown.leave() == f"Go on with: agentmesh --resume {session}"


def test_rotation_goes_round_by_every_key(desk: Desk, rig: Rig):
    for name in CHILDREN[:3]:
        rig.fork(name)
    rig.fork("grandchild", parent="beta")
    shown = desk.open()
    steps = [
        ("ctrl+down", "gamma"),
        ("ctrl+right", "alpha"),
        ("ctrl+left", "gamma"),
        ("alt+left", "beta"),
        ("alt+right", "gamma"),
        ("f7", "beta"),
        ("alt+down", "grandchild"),
        ("ctrl+up", "beta"),
        ("f8", "gamma"),
        ("alt+up", "root"),
    ]
    for key, name in steps:
        shown.press(key)
        shown.until(in_view(name), timeout=10)
    shown.press("ctrl+down")
    shown.until(seen("^ root › gamma .* ‹ beta  3/3  alpha ›"))


def test_with_text_in_the_input_arrows_move_by_word_and_drafts_stay_with_their_agents(desk: Desk, rig: Rig):
    for name in ("alpha", "beta"):
        rig.fork(name)
    shown = desk.open()
    shown.press("ctrl+down")
    shown.until(in_view("beta"))
    shown.type("one three")
    shown.until("❯ one three")
    shown.press("ctrl+left")
    shown.type("two ")
    shown.until("❯ one two three", in_view("beta"))
    shown.press("f8")
    shown.until(in_view("alpha"), "Message alpha")
    shown.press("ctrl+right")
    shown.until(in_view("beta"), "❯ one two three")


def test_a_picker_finds_an_agent_by_some_of_its_letters(desk: Desk, rig: Rig):
    for name in ("file-reader", "code-analyzer", "test-runner"):
        rig.fork(name)
    shown = desk.open()
    shown.press("ctrl+p")
    shown.until("Agents", "code-analyzer", "test-runner")
    shown.type("cdan")
    shown.until("code-analyzer", lambda text: "test-runner" not in text.replace("→test-runner", ""))
    shown.press("enter")
    shown.until(in_view("code-analyzer"))


def test_captured_text_makes_the_child_and_enters_no_request(desk: Desk, rig: Rig):
    secret, second = "a plan that stays here", "and its second half"
    rig.script("root", say("first answer"), say("second answer"))
    rig.script("fork", say("I have read it."))
    rig.worker()
    shown = desk.open()
    shown.enter("hello")
    shown.until("first answer")
    shown.enter("/capture")
    shown.until("(capturing) ❯")
    shown.enter(secret)
    shown.until(secret, "(capturing) ❯")
    shown.enter("/wold")
    shown.until("There is no command /wold.", "again captures it", "❯ /wold")
    shown.type("!")  # what was changed meanwhile is asked about anew
    shown.until("❯ /wold!", lambda text: "again captures it" not in text)
    shown.press("backspace")
    shown.until(seen("❯ /wold$"))
    shown.press("enter")
    shown.until("again captures it")
    shown.press("enter")
    rig.until(lambda: captured(rig)[-1:] == ["/wold"], "the captured word")
    shown.kill()

    shown = desk.open()
    shown.until("(capturing) ❯", secret)
    shown.enter(second)
    rig.until(lambda: captured(rig) == [secret, "/wold", second], "the second half")
    assert len(rig.requests()) == 1
    shown.enter("/fork")
    shown.until(in_view("fork"), "I have read it.", secret, second)
    shown.press("ctrl+up")
    shown.until(in_view("root"), secret)
    shown.enter("go on")
    shown.until("second answer")
    for request in rig.requests():
        assert secret not in json.dumps(request.body)
    assert secret in json.dumps(rig.requests("fork")[0].body), "the child's prompt is made of it"
    rig.rest()


def captured(rig: Rig) -> list[str]:
    query = "select text from agentmesh.v_transcript where kind = 'capture' and agent_id = %s order by seq"
    return [text for (text,) in rig.conn.execute(query, [rig.root])]


def test_cancelled_captures_stay_to_be_seen(desk: Desk, rig: Rig):
    shown = desk.open()
    shown.enter("/capture")
    shown.until("(capturing) ❯")
    shown.enter("only a thought")
    shown.until("only a thought", "(capturing) ❯")
    shown.enter("/cancel")
    shown.until("only a thought", lambda text: "(capturing)" not in text)
    assert rig.status() == "idle"


def test_the_dead_stay_frozen_in_rotation_until_they_are_reaped(desk: Desk, rig: Rig):
    for name in ("alpha", "beta"):
        rig.fork(name)
    rig.fork("below", parent="alpha")
    shown = desk.open()
    shown.press("ctrl+down", "ctrl+left")
    shown.until(in_view("alpha"), "▸ 1 child")
    shown.enter("/kill")
    shown.until(in_view("root"), "Killed alpha")
    assert [rig.status(name) for name in ("alpha", "below", "beta")] == ["dead", "dead", "idle"]
    shown.press("ctrl+down", "ctrl+right")
    shown.until(in_view("alpha"), "killed by the user", "dead: nothing more can be said to it")
    shown.type("this goes nowhere")
    shown.press("enter", "ctrl+down")
    shown.until(in_view("below"), "dead: nothing more can be said to it", lambda text: "this goes" not in text)
    shown.press("ctrl+up", "ctrl+up")
    shown.until(in_view("root"), "Message root")
    shown.enter("/reap")
    shown.until("2 agents left the rotation.", "▸ 1 child")
    shown.press("ctrl+down")
    shown.until(seen("^ root › beta *$"))


def test_a_person_lets_an_agent_wait_and_sends_as_it(desk: Desk, rig: Rig):
    release = threading.Event()
    rig.fork("alpha")
    rig.script("alpha", when(release, do(call("send", to="parent", message="what alpha found"))), say("Sent."))
    rig.worker()
    shown = desk.open()
    shown.enter("/send alpha look into it")
    shown.until("Sent to alpha")
    rig.until_asked("alpha")
    shown.enter("/wait 60 alpha")
    shown.until(seen(r"^ +alpha +◐ running"), seen(r"waiting · \d+ s · \d+ s left · Esc interrupts"))
    release.set()
    shown.until("what alpha found", lambda text: "Esc interrupts" not in text)
    assert rig.requests() == [], "it started no turn"


def test_escape_interrupts_the_agent_and_a_second_one_offers_those_below(desk: Desk, rig: Rig):
    release = threading.Event()
    rig.script("root", do(call("fork", name="alpha", prompt="work")), when(release, say("never said")))
    rig.script("alpha", when(release, say("never said")))
    rig.worker()
    shown = desk.open()
    shown.enter("go")
    rig.until_asked("root", 2)
    rig.until_asked("alpha")
    shown.until("Esc interrupts", "▸ 1 child")
    shown.press("escape")
    shown.until("Esc again: also the 1 running below root")
    shown.press("escape")
    shown.until("Interrupt root and all 1 running below it?")
    shown.insist("enter", lambda text: "Interrupt root" not in text)  # keys of the first moment do not count
    rig.rest()
    assert rig.kinds()[-1] == rig.kinds("alpha")[-1] == "event"
    release.set()
