"""What the screen does to the terminal around it: title, colours, and the shell that it is suspended to."""

from __future__ import annotations

import re
import sys

import pytest

from agentmesh.tui.board.title_and_notifications import POP_TITLE, PUSH_TITLE
from tests.fixtures.engine import Rig, say
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


@pytest.mark.parametrize(
    ("command", "said"),
    [("sh -c 'echo here $((40 + 2)); read line; exit 7'", "ended with 7"), ("no-such-editor", "No such file")],
)
def test_the_screen_comes_back_from_an_editor_that_fails(desk: Desk, rig: Rig, command: str, said: str):
    shown = desk.open(EDITOR=command)
    shown.type("half a thought")
    shown.until("❯ half a thought")
    shown.press("ctrl+g")
    if command.startswith("sh"):
        shown.until("here 42")
        shown.press("enter")
    shown.until("❯ half a thought", said, lambda text: "here 42" not in text)
    shown.type(" and more")
    shown.until("❯ half a thought and more")


def test_ctrl_c_in_an_editor_is_for_the_editor(desk: Desk, rig: Rig):
    shown = desk.open(EDITOR="sh -c 'trap \"echo caught\" INT; echo here $((40 + 2)); while ! read line; do :; done'")
    shown.type("half a thought")
    shown.until("❯ half a thought")
    shown.press("ctrl+g")
    shown.until("here 42")
    shown.press("ctrl+c")
    shown.until("caught")
    shown.press("enter")
    shown.until("❯ half a thought", lambda text: "here 42" not in text)
    shown.type(" and more")
    shown.until("❯ half a thought and more")


@pytest.mark.parametrize("sent", [b"caf\xe9 au lait", b"\x1b[200~caf\xe9\n au lait\x1b[201~", b"caf\xe9"])
def test_bytes_that_are_no_utf_8_do_not_end_the_screen(desk: Desk, rig: Rig, sent: bytes):
    shown = desk.open()
    shown.type(sent)
    shown.type(" and more")
    shown.until("❯ caf\ufffd", "and more")
    shown.leave()


def test_a_screen_that_fails_says_so_and_leaves_nothing_that_was_typed_to_the_shell(desk: Desk, rig: Rig):
    session = rig.one("select session_id::text from agentmesh.agents where id = %s", rig.root)
    shown = desk.terminal("/bin/bash", "--norc", "--noprofile", "-i", PS1="shell> ", HISTFILE="", BREAKS=_BREAKS)
    shown.until("shell>")
    shown.enter(f'{sys.executable} -c "$BREAKS" --resume {session}; echo exit $?')
    shown.until("Message root", "cost ")
    with rig.conn.transaction():
        rig.conn.execute("lock table agentmesh.sessions in access exclusive mode")  # so that it takes its time to end
        shown.press("f1")
        shown.until("no such key", lambda text: "Message root" not in text)
        shown.type("echo ran $((40 + 2))\r")
        shown.until("echo ran")
    shown.until("exit 1", "shell>")
    shown.enter("echo here $((41 + 2))")
    assert "ran 42" not in shown.until("here 43")


_BREAKS = """
import sys
from agentmesh.cli.entry import main
from agentmesh.tui.terminal import PasteParser
feed = PasteParser.feed
def breaks(parser, data):
    if data == "\\x1bOP":
        raise KeyError("no such key")
    return feed(parser, data)
PasteParser.feed = breaks
sys.exit(main())
"""
"""The program, with a bug in what reads its keys."""
_SGR = re.compile(rb"\x1b\[([\d;:]*)m")


def test_without_colours_not_one_is_written(desk: Desk, rig: Rig):
    rig.script("root", say("# A title\n\nSome **bold** words, `code`:\n\n```python\nprint(1)\n```\n\nand the end."))
    rig.worker()
    shown = desk.open(NO_COLOR="1")
    shown.enter("/nonsense")
    shown.until("There is no command")
    shown.press("ctrl+c")
    shown.enter("hello")
    shown.until("and the end.")
    shown.press("ctrl+p")
    shown.until("Agents")
    shown.press("escape")
    shown.until(lambda text: "Agents" not in text)
    shown.enter("/theme nord")
    shown.until("nord, kept in")
    shown.leave()
    codes = {int(code) for found in _SGR.findall(shown.output) for code in re.split(b"[;:]", found) if code}
    assert codes
    assert not [code for code in codes if 30 <= code <= 49 or 90 <= code <= 107], codes


def test_sixteen_colours_are_the_terminals_own(desk: Desk, rig: Rig):
    rig.fork("alpha")
    shown = desk.open(TERM="screen", COLORTERM="")
    shown.enter("/nonsense")
    shown.until("There is no command", lambda _: "brown" in shown.colours)  # as pyte calls yellow
    shown.press("ctrl+c", "ctrl+p")
    shown.until("Agents", "alpha")
    assert not re.search(rb"\x1b\[[\d;]*[34]8;", shown.output)


def _local() -> dict[str, str]:
    """Return an environment without a model, keyring or key."""
    return {"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}


def test_the_first_start_asks_for_a_model_and_the_next_one_has_it(desk: Desk, rig: Rig):
    rig.script("root", say("A real answer."))
    shown = desk.start(**_local())
    shown.until("No model is set up", "Another server")
    shown.type("another\r")
    shown.until("URL of the server")
    shown.type(f"{rig.model.base_url}\r")
    shown.until("API key of")
    shown.type("sk-test\r")
    shown.until("models of", "demo")
    shown.type("demo\r")
    shown.until("Message root", "/demo")
    rig.root = rig.one("select root_id from agentmesh.sessions order by created_at desc limit 1")
    assert b"sk-test" not in shown.output
    assert "sk-test" not in (desk.home / "config.toml").read_text()
    assert (desk.home / "keys.json").stat().st_mode & 0o777 == 0o600
    shown.leave()
    again = desk.start(**_local())
    again.until("Message root", "/demo")
    again.leave()


def test_setup_asks_the_same_in_a_plain_terminal(desk: Desk, rig: Rig):
    shown = desk.start("setup", **_local())
    shown.until("OpenRouter", "Another server", "Server [1]:")
    number = next(line.split()[0] for line in shown.lines if line.endswith("Another server"))
    shown.enter(number)
    shown.until("URL:")
    shown.enter("nonsense")
    shown.until("nonsense is no URL")
    shown.enter(rig.model.base_url)
    shown.until("API key (not shown):")
    shown.enter("sk-test")
    shown.until("Model, by number or name:")
    shown.enter("1")
    shown.until("It answers.", "is the model of new sessions now")
    assert shown.wait() == 0
    assert b"sk-test" not in shown.output
    assert "sk-test" in (desk.home / "keys.json").read_text()
