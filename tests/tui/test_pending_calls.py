"""What was asked for stays in sight until the screen shows what came of it."""

from __future__ import annotations

from agentmesh.tui.commands.calls import CAPTURED, SAY, SHELL, Call
from agentmesh.tui.commands.pending import LATE, Shell, Underway, Unsent
from tests.tui.faces import id_of

ROOT, CHILD = id_of("root"), id_of("child")
HELLO = Call(SAY, ("hello",), "hello")


def test_what_is_said_is_seen_until_a_later_board():
    underway = Underway()
    underway.began(HELLO, ROOT, 10.0)
    assert underway.unsent(ROOT, 10.0) == [Unsent("hello", False)]
    assert underway.unsent(CHILD, 10.0) == []
    assert underway.unsent(ROOT, 10.0 + LATE) == [Unsent("hello", True)]
    assert underway.unsent_count == 1
    underway.ended(HELLO, ROOT, 20.0)
    underway.seen(19.9)
    assert underway.unsent(ROOT, 20.5) == [Unsent("hello", False)]
    assert underway.unsent_count == 0
    underway.seen(20.1)
    assert underway.unsent(ROOT, 20.5) == []


def test_what_failed_is_gone_at_once_for_it_stands_in_the_input():
    underway = Underway()
    underway.began(HELLO, ROOT, 10.0)
    underway.ended(HELLO, ROOT, 11.0, failed=True)
    assert underway.unsent(ROOT, 11.0) == []


def test_the_same_said_twice_is_there_twice():
    underway = Underway()
    underway.began(HELLO, ROOT, 10.0)
    underway.began(HELLO, ROOT, 10.1)
    underway.ended(HELLO, ROOT, 10.2)
    underway.seen(10.3)
    assert underway.unsent(ROOT, 10.3) == [Unsent("hello", False)]


def test_it_is_known_since_when_each_call_is_under_way():
    underway = Underway()
    underway.began(HELLO, ROOT, 10.0)
    underway.began(HELLO, ROOT, 10.1)
    assert underway.since(HELLO, ROOT) == 10.0
    assert underway.since(HELLO, CHILD) is None
    underway.ended(HELLO, ROOT, 10.2)
    assert underway.since(HELLO, ROOT) == 10.1
    underway.ended(HELLO, ROOT, 10.3)
    assert underway.since(HELLO, ROOT) is None


def test_commands_are_seen_when_they_take_long():
    underway = Underway()
    for call in (Call("kill", (), "/kill"), Call(CAPTURED, ("x",), "x")):
        underway.began(call, ROOT, 10.0)
    assert underway.unsent(ROOT, 10.1) == []
    assert underway.unsent(ROOT, 11.0) == [Unsent("/kill", True), Unsent("x", True)]


def test_a_shell_command_runs_until_it_has_ended():
    underway, call = Underway(), Call(SHELL, ("make",), "!make")
    assert underway.shell(ROOT) is None
    underway.began(call, ROOT, 10.0)
    assert underway.shell(ROOT) == Shell("make", 10.0)
    assert underway.unsent(ROOT, 20.0) == []
    underway.ended(call, ROOT, 21.0)
    assert underway.shell(ROOT) is None
