"""The TUI is opened, left and opened again; several show one session."""

from __future__ import annotations

import re
import sys
import threading

from tests.fixtures.engine import Rig, call, do, say, when
from tests.fixtures.terminal import Desk


def test_a_first_start_without_any_configuration_plays_a_script_for_real(desk: Desk, rig: Rig):
    shown = desk.start()
    shown.until("No model is set up", "OpenAI", "OpenRouter", "Another server")
    shown.press("escape")
    shown.until("No model set up", "agentmesh setup", "Type demo and press Enter", "Message root")
    shown.enter("demo")
    shown.until(
        lambda text: re.search(r"file-reader +[◐✓○]", text) and re.search(r"code-analyzer +[◐✓○]", text),
        "▸ 4 children",
    )
    shown.press("ctrl+down")
    shown.until("root › slow-poke", "inherited")
    shown.press("alt+up")
    rig.rest()
    shown.until("Message root", lambda text: " running" not in text.splitlines()[-2])
    assert shown.leave() == "Go on with: agentmesh -c"
    again = desk.start("-c")
    again.until("Message root", "▸ 4 children", "demo/demo")
    again.press("ctrl+down")
    again.until("root › slow-poke", "killed by root", "dead: nothing more can be said to it")


def test_two_terminals_show_the_same(desk: Desk, rig: Rig):
    first_half, second_half = threading.Event(), threading.Event()
    rig.script(
        "root",
        when(first_half, say("streamed into both of the terminals, slowly", chunk_size=2, chunk_delay=0.05)),
        do(call("fork", name="alpha", prompt="work")),
        when(second_half, say("the end")),
    )
    rig.worker()
    one, two = desk.open(), desk.open(columns=100, rows=30)
    one.enter("typed in the first")
    two.until("typed in the first", "Esc interrupts")
    first_half.set()
    for terminal in (one, two):
        terminal.until("streamed into", lambda text: "slowly" not in text)
    for terminal in (one, two):
        terminal.until("streamed into both of the terminals, slowly")
    two.enter("typed in the second")
    one.until("typed in the second", "▸ 1 child")
    two.until("▸ 1 child")
    second_half.set()
    one.enter("/title A title")
    two.until("the end", "A title")
    two.enter("/capture")
    one.until("(capturing) ❯")
    one.enter("/cancel")
    two.until(lambda text: "(capturing)" not in text)
    one.enter("/kill alpha")
    two.press("ctrl+down")
    two.until("root › alpha", "dead: nothing more")
    rig.rest()


def test_what_runs_goes_on_when_the_terminal_is_left(desk: Desk, rig: Rig):
    release = threading.Event()
    rig.script("root", when(release, say("said later")))
    shown = desk.open_new()
    shown.enter("go")
    rig.until_asked()
    said = "".join(shown.leave().splitlines())  # it wraps
    assert said == (
        "1 agent goes on in the background, and may spend $10.00 and 20.0M tokens more. "
        "Back: agentmesh -c   Stop: agentmesh interrupt --all"
    )
    release.set()
    rig.rest()
    assert rig.last()[0] == "said later"


def test_a_setting_interrupts_what_runs_when_the_terminal_is_left(desk: Desk, rig: Rig):
    release = threading.Event()
    rig.script("root", when(release, say("never said")))
    desk.configure('[tui]\non_exit = "interrupt"\n')
    shown = desk.open_new()
    shown.enter("go")
    rig.until_asked()
    assert shown.leave() == "Interrupted root."
    assert rig.kinds()[-1] == "event"
    release.set()


def test_a_session_in_which_nothing_happened_leaves_no_trace(desk: Desk, rig: Rig):
    before = rig.one("select count(*) from agentmesh.sessions")
    shown = desk.open_new()
    assert rig.one("select count(*) from agentmesh.sessions") == before + 1
    assert shown.leave() == ""
    assert rig.one("select count(*) from agentmesh.sessions") == before


def test_a_new_session_and_back_to_the_old_one(desk: Desk, rig: Rig):
    rig.script("root", say("in the first"))
    shown = desk.open_new()
    shown.enter("hello")
    shown.until("in the first")
    shown.enter("/title The first")
    shown.until("The first")
    shown.enter("/new")
    shown.until("Message root", lambda text: "in the first" not in text)
    shown.enter("/sessions")
    shown.until("Sessions", "The first")
    shown.type("The first")
    shown.press("enter")
    shown.until("in the first", "Message root")


def test_a_session_that_was_deleted_is_told_and_a_new_one_can_begin(desk: Desk, rig: Rig):
    shown = desk.open_new()
    shown.enter("hello")
    shown.until("done")
    shown.type("a draft")
    shown.until("❯ a draft")
    session = rig.one("select session_id from agentmesh.agents where id = %s", rig.root)
    rig.one("select agentmesh.delete_session(%s)", session)
    shown.until("This session was deleted: /new begins another one", "❯ a draft")
    shown.press("ctrl+c")
    shown.enter("/new")
    shown.until("Message root", lambda text: "deleted" not in text and "hello" not in text)
    shown.press("up", "up")
    shown.until("❯ a draft")


def test_an_mcp_server_that_does_not_start_is_told(desk: Desk):
    desk.configure('[mcpServers.gone]\ncommand = "/nonexistent/program"\n')
    shown = desk.open_new()
    shown.until("the MCP server gone cannot be started", "/tools says more")
    shown.enter("/tools")
    shown.until("ask_user: ")
    shown.insist("pagedown", "MCP server gone: none of these")


def test_without_a_terminal_it_says_what_works_without_one(desk: Desk):
    piped = desk.terminal("/bin/sh", "-c", f"{sys.executable} -m agentmesh | cat")
    piped.until("Exit codes: 0 done")
    piped.wait()
    assert b"Usage: agentmesh" in piped.output
    assert b"\x1b" not in piped.output
    fed = desk.terminal("/bin/sh", "-c", f"echo hello | {sys.executable} -m agentmesh --resume x")
    fed.until("the TUI needs a terminal", "agentmesh run")
    fed.wait()
    assert b"\x1b" not in fed.output
    dumb = desk.terminal("/bin/sh", "-c", f"TERM=dumb {sys.executable} -m agentmesh --resume x")
    dumb.until("more than TERM=dumb says", "agentmesh run")
    dumb.wait()
    assert b"\x1b" not in dumb.output


def test_what_goes_to_standard_error_may_go_to_a_file(desk: Desk):
    (desk.rig.workdir / "main.sh").write_text(f'exec {sys.executable} -m agentmesh "$@" 2>err.log')
    desk.rig.script("root", say("seen on the screen"))
    shown = desk.terminal(
        *("/bin/sh", "main.sh"),
        OPENAI_BASE_URL=desk.rig.model.base_url,
        OPENAI_API_KEY="none",
        AGENTMESH_MODEL="scripted",
    )
    shown.until("❯", "cost ")
    shown.enter("hello")
    shown.until("seen on the screen")
    shown.leave()
    assert "\x1b" not in (desk.rig.workdir / "err.log").read_text()
