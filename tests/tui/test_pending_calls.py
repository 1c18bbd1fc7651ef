"""What was asked for stays in sight until the screen shows what came of it."""

from __future__ import annotations

from agentmesh.tui.commands.calls import CAPTURED, SAY, SHELL, Call
from agentmesh.tui.commands.pending import LATE, PendingCalls, RunningShell, Unsent
from tests.tui.faces import id_of

ROOT, CHILD = id_of("root"), id_of("child")
HELLO = Call(SAY, ("hello",), "hello")


def test_what_is_said_is_seen_until_a_later_board():
    pending_calls = PendingCalls()
    pending_calls.began(HELLO, ROOT, 10.0)
    assert pending_calls.unsent(ROOT, 10.0) == [Unsent("hello", False)]
    assert pending_calls.unsent(CHILD, 10.0) == []
    assert pending_calls.unsent(ROOT, 10.0 + LATE) == [Unsent("hello", True)]
    assert pending_calls.unsent_count == 1
    pending_calls.ended(HELLO, ROOT, 20.0)
    pending_calls.seen(19.9)
    assert pending_calls.unsent(ROOT, 20.5) == [Unsent("hello", False)]
    assert pending_calls.unsent_count == 0
    pending_calls.seen(20.1)
    assert pending_calls.unsent(ROOT, 20.5) == []


def test_what_failed_is_gone_at_once_for_it_stands_in_the_input():
    pending_calls = PendingCalls()
    pending_calls.began(HELLO, ROOT, 10.0)
    pending_calls.ended(HELLO, ROOT, 11.0, failed=True)
    assert pending_calls.unsent(ROOT, 11.0) == []


def test_the_same_said_twice_is_there_twice():
    pending_calls = PendingCalls()
    pending_calls.began(HELLO, ROOT, 10.0)
    pending_calls.began(HELLO, ROOT, 10.1)
    pending_calls.ended(HELLO, ROOT, 10.2)
    pending_calls.seen(10.3)
    assert pending_calls.unsent(ROOT, 10.3) == [Unsent("hello", False)]


def test_it_is_known_since_when_each_call_is_under_way():
    pending_calls = PendingCalls()
    pending_calls.began(HELLO, ROOT, 10.0)
    pending_calls.began(HELLO, ROOT, 10.1)
    assert pending_calls.since(HELLO, ROOT) == 10.0
    assert pending_calls.since(HELLO, CHILD) is None
    pending_calls.ended(HELLO, ROOT, 10.2)
    assert pending_calls.since(HELLO, ROOT) == 10.1
    pending_calls.ended(HELLO, ROOT, 10.3)
    assert pending_calls.since(HELLO, ROOT) is None


def test_commands_are_seen_when_they_take_long():
    pending_calls = PendingCalls()
    for call in (Call("kill", (), "/kill"), Call(CAPTURED, ("x",), "x")):
        pending_calls.began(call, ROOT, 10.0)
    assert pending_calls.unsent(ROOT, 10.1) == []
    assert pending_calls.unsent(ROOT, 11.0) == [Unsent("/kill", True, False), Unsent("x", True)]


def test_a_shell_command_runs_until_it_has_ended():
    pending_calls, call = PendingCalls(), Call(SHELL, ("make",), "!make")
    assert pending_calls.shell(ROOT) is None
    pending_calls.began(call, ROOT, 10.0)
    assert pending_calls.shell(ROOT) == RunningShell("make", 10.0)
    assert pending_calls.unsent(ROOT, 20.0) == []
    pending_calls.ended(call, ROOT, 21.0)
    assert pending_calls.shell(ROOT) is None
