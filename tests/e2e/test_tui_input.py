"""What a person types arrives as it was meant, and the keys that are shown are the keys that work."""

from __future__ import annotations

from agentmesh.llm.simulator.request import said
from tests.fixtures.engine import Rig, say
from tests.fixtures.terminal import Desk


def test_a_paste_of_ten_thousand_lines_is_one_message(desk: Desk, rig: Rig):
    text = "\n".join(f"line {n}: ä, [/x], end" for n in range(10_000))
    rig.script("root", say("All lines have come."))
    rig.worker()
    shown = desk.open()
    shown.paste(text.replace("\n", "\r"))  # as terminals do
    shown.until("❯ [pasted 10,000 lines]")
    shown.press("enter")
    shown.until("All lines have come.", "more lines")
    assert [content["text"] for kind, content in rig.rows() if kind == "user"] == [text]
    assert said(rig.requests()[-1].body["messages"][-1]) == text


def test_several_lines_are_typed_and_sent_as_one(desk: Desk, rig: Rig):
    rig.worker()
    shown = desk.open()
    shown.type("first")
    shown.press("alt+enter")
    shown.type("second\nthird")  # Ctrl+J
    shown.until("❯ first", "second", "third")
    assert rig.one("select count(*) from agentmesh.mail") == 0
    shown.press("enter")
    shown.until("done")
    assert [content["text"] for kind, content in rig.rows() if kind == "user"] == ["first\nsecond\nthird"]


def test_what_is_typed_at_once_with_enter_is_sent_whole_and_in_order(desk: Desk, rig: Rig):
    shown = desk.open()
    lines = [f"message {n} of many" for n in range(20)]
    shown.type("".join(f"{line}\r" for line in lines))
    query = "select array_agg(body order by id) from agentmesh.mail"
    rig.until(lambda: len(rig.one(query) or ()) == len(lines), "their arrival")
    assert rig.one(query) == lines
    shown.press("up")
    shown.until("❯ message 19 of many")


def test_an_unknown_command_stays_and_the_nearest_is_named(desk: Desk, rig: Rig):
    shown = desk.open()
    shown.enter("/frok")
    shown.until("❯ /frok", "There is no command /frok. Did you mean /fork?")
    shown.press(*["backspace"] * 3)
    shown.type("ork")
    shown.until("❯ /fork")
    shown.press("enter")
    shown.until("root › fork")
    shown.enter("/send nobody hello")
    shown.until("nobody", "❯ /send nobody hello")


def test_commands_and_files_are_completed(desk: Desk, rig: Rig):
    (rig.workdir / "notes").mkdir()
    (rig.workdir / "notes" / "plan-of-attack.md").touch()
    rig.fork("alpha")
    shown = desk.open()
    shown.type("/in")
    shown.until("/interrupt", "Stop what an agent does now")
    shown.press("tab")
    shown.until("❯ /interrupt", "every running agent")
    shown.press("ctrl+c")
    shown.until("again leaves")
    shown.type("look at @attack")
    shown.until("notes/plan-of-attack.md")  # although they are listed only now
    shown.press("tab")
    shown.until("❯ look at @notes/plan-of-attack.md")


def test_a_shell_command_shows_its_output_to_the_person_only(desk: Desk, rig: Rig):
    rig.script("root", say("answered"))
    rig.worker()
    shown = desk.open()
    shown.enter("!echo from $((40 + 2)); exit 3")
    shown.until("from 42", "exit code 3")
    shown.enter("hello")
    shown.until("answered")
    assert "from 42" not in rig.requests()[-1].raw.decode()


def test_escape_ends_a_shell_command(desk: Desk, rig: Rig):
    shown = desk.open()
    shown.enter("!echo begun; sleep 600")
    shown.until("! echo begun; sleep 600", "Esc ends it")
    shown.press("escape")
    shown.until("begun", "ended by signal", lambda text: "Esc ends it" not in text)


def test_control_characters_in_a_paste_press_no_keys(desk: Desk, rig: Rig):
    shown = desk.open()
    shown.paste("one\x1b[A\x1b\rtwo\r\x03\x03\x1bOPthree\x7f")
    shown.until("❯ one[A", "  two", "  OPthree")
    assert rig.one("select count(*) from agentmesh.mail") == 0


def test_bound_keys_work_and_are_the_ones_shown(desk: Desk, rig: Rig):
    keys = ('agents.pick = "ctrl+k"', 'rotate.child = "f2"', 'requests.answer = ""', 'rotate.parent = ""')
    desk.configure("\n".join(["[tui.keys]", *keys]))
    rig.fork("alpha")
    shown = desk.open(columns=120, rows=110)
    shown.until("Ctrl+K pick", "F2 child", lambda text: "Ctrl+↑" not in text)
    shown.press("f1")
    shown.until("Commands", "/agents", "/wait timeout [agent ...]")
    shown.until("Ctrl+K", "F2", lambda text: "Ctrl+P" not in text and "Ctrl+↓" not in text)
    shown.press("escape")
    shown.until(lambda text: "Commands" not in text)
    shown.press("ctrl+k")
    shown.until("Agents")
    shown.press("escape")
    shown.until("Message root", lambda text: "Agents" not in text)
    shown.press("ctrl+down", "ctrl+p", "f2")
    shown.until("root › alpha")
    assert "Agents" not in shown.text


def test_a_key_bound_twice_is_refused_before_the_screen_opens(desk: Desk):
    desk.configure('[tui.keys]\nagents.pick = "f12"\nagents.tree = "f12"\n')
    shown = desk.start()
    shown.wait()
    assert "f12 is bound to both" in shown.text
    assert b"\x1b" not in shown.output


def test_a_default_key_gives_way_to_a_bound_one_and_the_help_says_so(desk: Desk, rig: Rig):
    desk.configure('[tui.keys]\nagents.pick = "f8"\n')
    rig.fork("alpha")
    shown = desk.open(rows=160)
    shown.press("f8")
    shown.until("Agents", "alpha")
    shown.press("escape")
    shown.until("Message root", lambda text: "Agents" not in text)
    shown.press("f1")
    shown.until("Commands")
    shown.until("(no key)", "Next sibling, also with text", "(F8 is for: Pick an agent)")


def test_the_screen_follows_the_window_and_fits_a_narrow_one(desk: Desk, rig: Rig):
    rig.fork("a-name-that-is-quite-long")
    rig.script("root", say("word " * 60 + "end."))
    rig.worker()
    shown = desk.open(columns=100, rows=30)
    shown.enter("hello")
    shown.until("end.")
    shown.resize(60, 15)
    shown.until("end.", "❯ Message root", lambda text: len(text.splitlines()) == 15)
    shown.resize(120, 40)
    shown.until("hello", "end.", " ".join(["word"] * 20))  # prose is at most 100 columns wide
