from __future__ import annotations

import pytest
from click import Context

from agentmesh.cli.commands import cli
from agentmesh.tui.commands.calls import CAPTURED, SAY, SHELL, Call, Problem
from agentmesh.tui.commands.catalog import COMMANDS
from agentmesh.tui.commands.handlers import HANDLERS
from agentmesh.tui.commands.parse import nearest, parse
from tests.tui.faces import board, face
from tests.tui.with_defaults import completions


def test_commands_are_listed_alphabetically_and_each_can_be_done():
    assert list(COMMANDS) == sorted(COMMANDS)
    on_screen = {name for name, command in COMMANDS.items() if command.on_screen}
    assert on_screen == {"agents", "answer", "board", "exit", "help", "sessions", "theme"}
    assert set(COMMANDS) - on_screen <= set(HANDLERS)


@pytest.mark.parametrize("text", ["", "  \n "])
def test_nothing_is_no_input(text):
    assert parse(text) is None


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("hello there", (SAY, ("hello there",))),
        ("  two\nlines\n", (SAY, ("  two\nlines",))),
        ("/usr/bin/env is a path", (SAY, ("/usr/bin/env is a path",))),
        ("!ls -l", (SHELL, ("ls -l",))),
        ("/fork", ("fork", ())),
        (" / fork ", ("fork", ())),
        ("/fork fixer", ("fork", ("fixer",))),
        (
            '/fork --schema a.json --check "pytest -q" fixer go on',
            ("fork", ("--schema", "a.json", "--check", "pytest -q", "fixer", "go on")),
        ),
        (
            "/fork --model m/x --context none fixer go on",
            ("fork", ("--model", "m/x", "--context", "none", "fixer", "go on")),
        ),
        (
            '/fork --context "last 2" fixer go "on"',
            ("fork", ("--context", "last 2", "fixer", 'go "on"')),
        ),
        ("/fork --type explore --own fixer --model x", ("fork", ("--own", "--type", "explore", "fixer", "--model x"))),
        ("/fork --own", ("fork", ("--own",))),
        ("/fork fixer look at @README.md", ("fork", ("fixer", "look at @README.md"))),
        ("/diff tester", ("diff", ("tester",))),
        ("/fork @12 fixer two\nlines", ("fork", ("@12", "fixer", "two\nlines"))),
        ("/rename tester Reviewer", ("rename", ("tester", "Reviewer"))),
        ("/KILL", ("kill", ())),
        ("/kill tester", ("kill", ("tester",))),
        ('/send tester say "hi" twice', ("send", ("tester", 'say "hi" twice'))),
        ('/send tester "quoted whole"', ("send", ("tester", "quoted whole"))),
        ("/send tester line\nand line", ("send", ("tester", "line\nand line"))),
        ("/wait 30", ("wait", ("30",))),
        ("/wait 1.5 a  b", ("wait", ("1.5", "a", "b"))),
        ("/mode plan", ("mode", ("plan",))),
        ("/mode", ("mode", ())),
        ("/tools -bash +grep", ("tools", ("-bash", "+grep"))),
        ("/sql select 1; -- x", ("sql", ("select 1; -- x",))),
        ("/system", ("system", ())),
        ("/interrupt all", ("interrupt", ("all",))),
    ],
)
def test_inputs_become_calls(text, call):
    name, args = call
    assert parse(text) == Call(name, args, text)


@pytest.mark.parametrize(
    ("text", "complaint", "hint"),
    [
        ("/", "needs a name", "/help"),
        ("/frok", "no command /frok", "Did you mean /fork?"),
        ("/int", "no command /int", "Did you mean /interrupt?"),
        ("/quit", "no command /quit", "Did you mean /exit?"),
        ("/tree", "no command /tree", "Did you mean /agents?"),
        ("/ps", "no command /ps", "Did you mean /agents?"),
        ("/timers", "no command /timers", "Did you mean /later?"),
        ("/mail", "no command /mail", "/help lists the commands."),
        ("/zzzzzz", "no command /zzzzzz", "/help"),
        ("/send", "/send needs an agent", "Usage: /send agent message"),
        ("/send tester", "/send needs a message", "Usage: /send agent message"),
        ("/wait", "/wait needs a timeout", "Usage: /wait timeout [agent ...]"),
        ("/wait soon", "soon is no number", "Usage"),
        ("/wait nan", "nan is no number", "Usage"),
        ("/mode fast", "fast is no mode", "Usage"),
        ("/fork --model", "--model needs a value: NAME", "/help lists"),
        ('/fork --model "', "The quotes around the value of --model do not close", "/help lists"),
        ('/fork --context "last 3 name', "The quotes around the value of --context do not close", "/help lists"),
        ("/fork --type a --type b x", "--type is there twice", "/help lists"),
        ("/fork --odd x", "--odd is no name for an agent", "/help lists"),
        (
            "/fork @now",
            "@now is no place to begin at",
            "/help lists what /fork takes.",
        ),
        (
            "/fork Look at it",
            "Look is no name for an agent: 1 to 32 of a-z",
            "/help lists what /fork takes.",
        ),
        ("/rename tester", "/rename needs a name", "Usage: /rename agent name"),
        ("/rename a good title", "/rename takes 2 arguments", "Usage: /rename agent name"),
        ("/kill a b", "/kill takes one argument", "Usage: /kill [agent]"),
        ("/tools bash", "bash is neither", "Usage"),
        ("!", "shell command", ""),
    ],
)
def test_what_is_no_call_says_why_and_what_is_meant(text, complaint, hint):
    problem = parse(text)
    assert isinstance(problem, Problem)
    assert complaint in problem.text
    assert hint in problem.hint
    assert not problem.again_captures


def test_an_agent_may_be_named_like_anything():
    assert parse("/kill all") == Call("kill", ("all",), "/kill all")


def test_in_a_capture_every_text_is_captured_and_known_commands_still_work():
    assert parse("hello", capturing=True) == Call(CAPTURED, ("hello",), "hello")
    assert parse("!ls", capturing=True) == Call(CAPTURED, ("!ls",), "!ls")
    assert parse("/usr/bin", capturing=True) == Call(CAPTURED, ("/usr/bin",), "/usr/bin")
    assert parse("/fork", capturing=True) == Call("fork", (), "/fork")


def test_in_a_capture_an_unknown_word_stays_and_is_captured_when_entered_again():
    problem = parse("/frok it", capturing=True)
    assert isinstance(problem, Problem)
    assert problem.again_captures
    assert "/fork" in problem.hint
    assert "again" in problem.hint
    assert parse("/frok it", capturing=True, again=True) == Call(CAPTURED, ("/frok it",), "/frok it")


def test_entering_a_known_command_again_never_captures_it():
    assert isinstance(parse("/send", capturing=True, again=True), Problem)


# Completion


@pytest.fixture
def seen():
    return board(face("tester", status="running", activity="tool: bash"), face("reader"), face("linter", status="dead"))


def texts(text, seen):
    return [one.text for one in completions(text, len(text), seen)]


def test_a_slash_lists_all_commands_with_help(seen):
    found = completions("/", 1, seen)
    assert [one.text.strip() for one in found] == [f"/{name}" for name in COMMANDS]
    assert all(one.description for one in found)


def test_names_complete_by_their_beginning_and_fuzzily(seen):
    assert texts("/ki", seen)[0] == "/kill "
    assert texts("/sss", seen) == ["/sessions", "/processes ", "/permissions "]
    assert texts("/xyz", seen) == []


def test_a_mistyped_name_completes_to_the_nearest(seen):
    assert [texts(text, seen) for text in ("/frok", "/hlep", "/Agnets", "/quit")] == [
        ["/fork "],
        ["/help"],
        ["/agents "],
        ["/exit"],
    ]
    assert texts("/tmp/frok", seen) == []


def test_arguments_complete_by_their_kind(seen):
    assert texts("/kill ", seen) == ["root ", "tester ", "reader ", "linter "]
    assert texts("/kill te", seen)[0] == "tester "
    assert texts("/reap ", seen) == ["linter "]
    assert texts("/interrupt ", seen) == ["tester ", "all "]
    assert texts("/mode p", seen) == ["plan "]
    assert texts("/model ", seen) == ["demo/demo "]
    assert texts("/wait 3", seen) == []
    assert texts("/wait 3 tester re", seen)[0] == "reader "
    assert texts("/kill tester x", seen) == []


def test_send_is_completed_with_the_living_children_and_session(seen):
    assert texts("/send ", seen) == ["root ", "tester ", "reader ", "children ", "session "]
    assert texts("/send chi", seen)[0] == "children "
    assert texts("/send tester,re", seen)[0] == "reader "
    found, *_ = completions("/send tester,re", 15, seen)
    assert "/send tester,re"[: found.start] + found.text == "/send tester,reader "
    assert texts("/send tester one,re", seen) == []


def test_a_completion_replaces_the_word_at_the_cursor(seen):
    text = "/send te and more"
    found, *_ = completions(text, len("/send te"), seen)
    assert text[: found.start] + found.text + text[len("/send te") :] == "/send tester  and more"
    assert found.description.startswith("◐ running · tool: bash (")


@pytest.mark.parametrize("text", ["", "hello", "see /kill", "/send tester hel", "/title x", "/nope x", "/fork \n"])
def test_where_nothing_can_be_known_nothing_is_offered(text, seen):
    assert texts(text, seen) == []


def test_no_command_of_the_shell_is_taken_for_a_mistyped_one():
    known = {"ps": "agents", "timers": "later", "tree": "agents"}
    other = {name: nearest(name) for name in cli.list_commands(Context(cli)) if name not in COMMANDS}
    assert {name: near for name, near in other.items() if near} == known
