"""What goes wrong around the TUI is said in its status line, and mended without starting it anew."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from agentmesh.llm.simulator.reply import Fault, FaultKind
from agentmesh.store import schema
from agentmesh.store.embedded import EmbeddedServer
from tests.fixtures import server
from tests.fixtures.engine import Rig, call, do, say, until, when
from tests.fixtures.terminal import Desk

ESCAPES = "\x1b]0;owned\x07\x1b[31mred\x1b[2J\x9b31m\x9d0;owned\x9c\u202egnp.exe\u2066\u200f\x08\x00"
"""Sets titles and colours, clears screens, turns text around."""
HOSTILE = f"[@click=app.quit]press[/] [/x] [bold]b[/bold] [link=x] $x {ESCAPES}"


def test_a_killed_worker_is_told_and_replaced(desk: Desk, rig: Rig):
    release = threading.Event()
    rig.script("root", when(release, say("the answer in spite of all")))
    shown = desk.open_new()
    shown.enter("go")
    rig.until_asked()
    (first,) = desk.worker_pids()
    os.kill(first, signal.SIGKILL)
    shown.until("no worker runs the agents; one is starting")
    rig.until_asked(times=2)
    release.set()
    shown.until("the answer in spite of all", lambda text: "no worker runs" not in text)
    assert first not in desk.worker_pids()
    rig.rest()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_screen_that_is_asked_to_end_keeps_what_was_typed(desk: Desk, rig: Rig, number: signal.Signals):
    rig.fork("beta")
    shown = desk.open()
    shown.type("for the root")
    shown.until("❯ for the root")
    shown.press("ctrl+down")
    shown.until("Message beta")
    shown.type("half a thought")
    shown.until("❯ half a thought")
    os.kill(shown.pid, number)
    assert shown.wait() == 128 + number
    assert b"\x1b[?1049l" in shown.output, "the terminal is as it was before"
    again = desk.open()
    again.press("up")
    again.until("❯ half a thought")
    again.press("up")
    again.until("❯ for the root")


def test_a_screen_whose_terminal_is_gone_ends_and_keeps_what_was_typed(desk: Desk, rig: Rig):
    rig.fork("beta")
    session = rig.one("select session_id::text from agentmesh.agents where id = %s", rig.root)
    inner = "import pty, sys; pty.spawn(sys.argv[1:])"
    outer = desk.terminal(sys.executable, "-c", inner, sys.executable, "-m", "agentmesh", "--resume", session)
    outer.until("❯", "cost ")
    (screen,) = psutil.Process(outer.pid).children()
    outer.type("half a thought")
    outer.until("❯ half a thought")
    outer.kill()  # closes the terminal in it
    until(lambda: not screen.is_running() or screen.status() == psutil.STATUS_ZOMBIE, "the end of the screen")
    again = desk.open()
    again.press("up")
    again.until("❯ half a thought")


def test_a_killed_terminal_loses_nothing_and_stops_nobody(desk: Desk, rig: Rig):
    release = threading.Event()
    rig.script("root", do(call("fork", name="alpha", prompt="work")), when(release, say("said meanwhile")))
    shown = desk.open_new()
    shown.enter("go on without me")
    rig.until_asked(times=2)
    before = desk.worker_pids()
    shown.kill()
    release.set()
    rig.rest()
    shown = desk.open_new("-c")
    shown.until("go on without me", "said meanwhile", "▸ 1 child")
    assert desk.worker_pids() == before
    shown.press("up")
    shown.until("❯ go on without me")


@pytest.fixture
def own_server() -> Iterator[EmbeddedServer]:
    """A server that only this test uses."""
    made = EmbeddedServer(server.run_folder() / f"restarted-{os.getpid()}", settings=server.DISPOSABLE)
    made.acquire()
    yield made
    made.stop(force=True)
    made.release()


@pytest.mark.slow
def test_a_restart_of_postgresql_is_told_and_survived(own_server: EmbeddedServer, tmp_path: Path):
    url = own_server.url()
    schema.upgrade(url)
    (tmp_path / "work").mkdir()
    with psycopg.connect(url, autocommit=True) as conn:
        rig = Rig(url, conn, tmp_path / "work")
        desk = Desk(rig, tmp_path)
        try:
            rig.script("root", say("before"), say("after"))
            shown = desk.open_new()
            shown.enter("one")
            shown.until("before")
            # Of the screen's own agent: the rig has another one, which is idle all the time.
            until(
                lambda: (
                    conn.execute("select status from agentmesh.agents where id = %s", [rig.root]).fetchone()
                    == ("idle",)
                )
            )
            own_server.stop(force=True)
            shown.until("The database is away; trying again. What you send is kept until it is back.")
            shown.enter("two, while it is away")
            shown.until("↥ not sent yet: two, while it is away")
            own_server.acquire()
            shown.until("two, while it is away", "after", lambda text: "The database" not in text)
        finally:
            desk.close()
            rig.close()


def test_nothing_that_others_write_reaches_the_terminal_as_more_than_text(desk: Desk, rig: Rig):
    rig.script(
        "root",
        do(
            call("bash", command=f"echo '{HOSTILE}'".replace("\x00", "")), call(HOSTILE, argument=HOSTILE), text=HOSTILE
        ),
        do(call("fork", name=HOSTILE, prompt=HOSTILE), call("fork", name="alpha", prompt=HOSTILE)),
        do(call("wait", timeout=30, from_agents=["alpha", HOSTILE]), text="now wait"),
        say(
            f"# {HOSTILE}\n\n```python\n{HOSTILE}\n```\n\n| {HOSTILE} |\n|---|\n| {HOSTILE} |\n\nThe end.", chunk_size=7
        ),
    )
    rig.script("alpha", do(call("send", to="parent", message=HOSTILE), text=HOSTILE), say(HOSTILE))
    rig.worker()
    shown = desk.open(rows=40)
    shown.paste(HOSTILE)
    shown.until("❯ [@click=app.quit]press[/]")
    shown.press("enter")
    shown.until("The end.")
    shown.enter(f"/title {HOSTILE}".translate(dict.fromkeys(range(32))))
    shown.press("ctrl+down")
    shown.until("root › alpha", "[/x] [bold]b[/bold]")
    shown.enter("/sql select name, text, content from v_transcript order by created_at")
    shown.until("rows · arrows scroll", "now wait")
    shown.press("escape")
    shown.until("root › alpha", lambda text: "arrows scroll" not in text)
    rig.rest()
    shown.leave()
    output = shown.output.decode()
    assert "\x1b]0;" not in output
    assert "\x1b[31m" not in output
    assert not {c for c in output if "\x80" <= c <= "\x9f" or c in "\u202e\u2066\u200f\x08\x00"}
    assert "[@click=app.quit]press[/] [/x] [bold]b[/bold]" in output


def test_an_error_of_the_model_is_shown_and_retried(desk: Desk, rig: Rig):
    mended = threading.Event()
    refused = say("", fault=Fault(FaultKind.STATUS, status=400, message="[/x] not today"))
    rig.script("root", lambda _view: say("better now") if mended.is_set() else refused)
    rig.worker()
    shown = desk.open()
    shown.enter("go")
    shown.until("[/x] not today")
    mended.set()
    shown.enter("/retry")
    shown.until("better now")
