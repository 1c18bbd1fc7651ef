"""Rendering alone: rows and agents in, text or data out."""

from __future__ import annotations

import json
import sys
import uuid
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from rich.console import Console

from agentmesh.cli.render import events
from agentmesh.cli.render.answer import print_csv, print_json, print_rows
from agentmesh.cli.render.conversation import row_text
from agentmesh.cli.render.data import dumps
from agentmesh.cli.render.outcome import print_outcome
from agentmesh.cli.render.screen import Column, Grid
from agentmesh.cli.render.tree import tree_data
from agentmesh.domain.figures import count, line_changes, listed, money, plural
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.rows import AgentView, Row
from agentmesh.domain.states import AgentStatus, Kind
from agentmesh.store.reader import QueryResult

ID = AgentId(uuid.UUID("00000000-0000-4000-8000-000000000001"))


def agent(name="root", parent=None, number=1, **more):
    values = {
        "session_id": SessionId(ID), "path": name, "depth": 0, "status": AgentStatus.IDLE, "activity": "", "unread": 0,
        "model": "demo/demo", "worker_id": None, "external": False, "tool_calls": 0, "tokens": 0, "cost_usd": None,
        "tree_tokens": 0, "tree_cost_usd": None, "created_at": datetime(2026, 1, 1, tzinfo=UTC), "died_at": None,
        "reaped_at": None,
    }  # fmt: skip
    return AgentView(id=AgentId(uuid.UUID(int=number)), parent_id=parent, name=name, **{**values, **more})


def row(kind, **content):
    return Row(ID, 3, kind, content)


@pytest.mark.parametrize(
    ("number", "shown"), [(0, "0"), (999, "999"), (1_000, "1k"), (13_400, "13k"), (2_400_000, "2.4M")]
)
def test_counts_are_short(number, shown):
    assert count(number) == shown


@pytest.mark.parametrize(
    ("usd", "shown"), [(None, "?"), (Decimal(0), "$0.00"), (Decimal("0.00312"), "$0.0031"), (12.5, "$12.50")]
)
def test_money_is_unknown_or_exact_enough(usd, shown):
    assert money(usd) == shown


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_of_row_is_shown_as_text_and_as_events(kind):
    content = {
        "text": "words",
        "error": "words",
        "command": "words",
        "event": "words",
        "name": "words",
        "result": {"words": 1},
    }
    shown = row_text(row(kind, **content), "me")
    assert shown is not None
    assert "words" in shown.plain
    told = list(events.of_row(agent(), row(kind, **content)))
    assert told
    assert all({"type", "agent_id", "name", "parent_id"} <= event.keys() for event in told)
    assert all(event["name"] == "words" or event["agent_id"] == agent().id for event in told)


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (
            {"command": "send", "arguments": ["coder", "look"], "text": "Sent to coder."},
            "· /send coder look: Sent to coder.",
        ),
        ({"command": "clear", "arguments": [], "text": ""}, "· /clear"),
        ({"command": "!ls", "output": "a\nb", "exit_code": 0}, "· !ls: a\n  b"),
        ({"command": "wait", "result": {"outcome": "timeout", "results": []}}, "· /wait: timeout"),
    ],
)
def test_17_6_a_command_is_shown_as_it_was_typed_with_what_it_came_to(content, shown):
    text = row_text(row(Kind.COMMAND, **content), "me")
    assert text is not None
    assert text.plain == shown


@pytest.mark.parametrize(
    ("content", "who"),
    [
        ({}, "child"),
        ({"automatic": True, "failed": False}, "child (automatic report)"),
        ({"automatic": True, "failed": True}, "child (how its turn failed)"),
        ({"automatic": True, "failed": False, "about": "merge"}, "child (merge)"),
        ({"automatic": True, "failed": False, "about": "task"}, "child (result of its task)"),
        ({"automatic": True, "failed": True, "about": "task"}, "child (how its task failed)"),
    ],
)
def test_mail_that_no_agent_wrote_says_what_it_is(content, who):
    shown = row_text(row(Kind.MAIL, name="child", text="a.txt", **content), "me")
    assert shown is not None
    assert shown.plain == f"{who} ▸ a.txt"
    (event,) = events.of_row(agent(), row(Kind.MAIL, name="child", text="a.txt", **content))
    assert (event["automatic"], event.get("about")) == (who != "child", content.get("about"))


def test_an_answer_with_calls_is_a_message_and_then_the_calls():
    calls = [
        {"id": "c1", "name": "read", "arguments": '{"path": "a"}'},
        {"id": "c2", "name": "read", "arguments": '{"path": '},
    ]
    answer = row(Kind.ASSISTANT, text="I look.", reasoning="hm", calls=calls)
    message, first, second = events.of_row(agent(), answer)
    assert (message["type"], message["text"], message["reasoning"]) == ("message", "I look.", "hm")
    assert (first["type"], first["call_id"], first["arguments"]) == ("tool_call", "c1", {"path": "a"})
    assert second["arguments"] == '{"path": '
    shown = row_text(answer, "me")
    assert shown is not None
    assert shown.plain.splitlines() == ["me ▸ I look.", '  → read {"path": "a"}', '  → read {"path":']


@pytest.mark.parametrize(
    ("tool", "arguments", "shown"),
    [
        ("fork", {"name": "a", "prompt": "p" * 400, "workspace": "own"}, "  → fork (own tree) {"),
        ("task", {"description": "a", "workspace": "own"}, "  → task (own tree) {"),
        ("fork", {"name": "a", "prompt": "p", "workspace": "shared"}, "  → fork {"),
        ("bash", {"command": "a", "workspace": "own"}, "  → bash {"),
        ("fork", [1], "  → fork [1]"),
        ("fork", None, "  → fork null"),
    ],
)
def test_a_call_that_gives_its_child_a_tree_of_its_own_says_so_before_it_is_cut(tool, arguments, shown):
    calls = [{"id": "c", "name": tool, "arguments": json.dumps(arguments)}]
    text = row_text(row(Kind.ASSISTANT, text="", calls=calls), "me")
    assert text is not None
    assert text.plain.startswith(shown)


def test_the_name_of_a_tool_that_a_model_made_up_does_nothing_to_the_terminal():
    name = "\x1b]0;OWNED\x07\x1b[2J\nx"
    answer = row(Kind.ASSISTANT, text="", calls=[{"id": "c1", "name": name, "arguments": "{}"}])
    result = row(Kind.TOOL_RESULT, name=name, result={"error": "there is no such tool"})
    for shown, mark in ((row_text(answer, "me"), "→"), (row_text(result, "me"), "←")):
        assert shown is not None
        assert shown.plain.startswith(f"  {mark} ]0;OWNED[2J x ")
        assert "\x1b" not in shown.plain


@pytest.mark.parametrize(("is_terminal", "shown"), [(True, 'a,"b\n]0;c",\n'), (False, 'a\x1b,"b\n\x1b]0;c",\n')])
def test_csv_is_raw_in_a_pipe_and_harmless_on_a_terminal(capsys, monkeypatch, is_terminal, shown):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    print_csv(QueryResult(["x\x1b", "y", "z"], [25, 25, 25], [("a\x1b", "b\n\x1b]0;c", None)]))
    assert capsys.readouterr().out == ("x,y,z\n" if is_terminal else "x\x1b,y,z\n") + shown


def test_a_table_does_nothing_to_the_terminal(capsys):
    print_rows(QueryResult(["x\x1b[2J"], [25], [("a\x1b[2J",)]))
    assert capsys.readouterr().out == "x[2J\na[2J\n"


@pytest.mark.parametrize("depth", [700, 100_000])
def test_a_call_of_thousands_of_brackets_is_told_as_it_was_written(depth):
    text = '{"path": ' + "[" * depth + "]" * depth + "}"
    answer = row(Kind.ASSISTANT, text="", calls=[{"id": "c1", "name": "read", "arguments": text}])
    (event,) = events.of_row(agent(), answer)
    assert event["arguments"] == text
    shown = row_text(answer, "me")
    assert shown is not None
    assert '→ read {"path": [[[' in shown.plain


def test_an_answer_of_calls_alone_is_no_empty_message():
    calls = [{"id": "c1", "name": "read", "arguments": "{}"}]
    assert [event["type"] for event in events.of_row(agent(), row(Kind.ASSISTANT, text="", calls=calls))] == [
        "tool_call"
    ]


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("length", "limit of output"),
        ("limit", "limits.answer_tokens"),
        ("content_filter", "content filter"),
        ("abort", "(abort)"),
    ],
)
def test_an_answer_that_was_cut_off_says_why(reason, words):
    answer = row(Kind.ASSISTANT, text="I", finish_reason=reason)
    shown = row_text(answer, "me")
    assert shown is not None
    assert words in shown.plain
    assert [event["finish_reason"] for event in events.of_row(agent(), answer)] == [reason]


@pytest.mark.parametrize("width", [30, 40, 60, 80, 120])
def test_a_narrow_terminal_leaves_out_columns_and_cuts_long_cells_but_never_an_id(width):
    columns = [
        Column("ID"),
        Column("NAME", least=8),
        Column("TOKENS", right=True, spare=1),
        Column("NOTE", least=10, spare=2),
    ]
    console = Console(width=width)
    with console.capture() as captured:
        console.print(Grid(columns, [["0123abcd", "a-name-of-thirty-characters-it", "13k", "n" * 60]]))
    head, line = captured.get().splitlines()
    assert line.startswith("0123abcd  a-name")
    assert len(head) <= width
    assert len(line) <= width
    assert ("13k" in line, "NOTE" in head) == (width >= 30, width >= 40)


def test_a_name_that_is_cut_keeps_its_end():
    columns = [Column("NAME", least=12, keeps_end=True), Column("ID")]
    names = ["reviewer-of-the-part-1", "reviewer-of-the-part-22", "short"]
    lines = [line.plain for line in Grid(columns, [[name, "0123abcd"] for name in names]).lines(26)]
    assert lines[1:] == ["reviewer-…part-1  0123abcd", "reviewer-…art-22  0123abcd", "short             0123abcd"]


def test_json_is_safe_for_a_terminal_and_loses_nothing():
    text = "a\x1b\x9b\u202e\ud800 ü 😀"
    shown = dumps({"text": text, "cost": Decimal("0.5"), "id": ID})
    assert json.loads(shown) == {"text": text, "cost": 0.5, "id": str(ID)}
    assert not {"\x1b", "\x9b", "\u202e", "\ud800"} & set(shown)


def test_the_children_of_a_reaped_agent_stay_in_the_tree():
    reaped = agent("gone", agent().id, 2, reaped_at=datetime(2026, 1, 1, tzinfo=UTC), status=AgentStatus.DEAD)
    (root,) = tree_data([agent(), reaped, agent("orphan", reaped.id, 3)])
    assert [child["name"] for child in root["children"]] == ["orphan"]


def test_a_waits_result_is_readable(capsys):
    print_outcome(
        {
            "outcome": "timeout",
            "results": [
                {"agent_id": str(ID), "name": "a", "status": "received", "message": "one\n\ntwo\x1b", "more": 2},
                {"agent_id": "nobody", "error": "there is no such agent", "hint": "look"},
                {"name": "user", "message": "stop"},
            ],
        }
    )
    assert capsys.readouterr().out.splitlines() == [
        "✓ received  a (00000000)  and 2 more unread",
        "    one",
        "",
        "    two",
        "? unknown  nobody",
        "    error: there is no such agent",
        "    hint: look",
        "✓ message   user",
        "    stop",
        "(timeout)",
    ]


def test_a_querys_json_has_native_values_and_every_column(capsys):
    columns, types = ["n", "ok", "j", "n", "t", "x"], [20, 16, 3802, 1700, 1184, 25]
    print_json(QueryResult(columns, types, [("1", "t", '{"a": 1}', "NaN", "infinity", None)]))
    assert json.loads(capsys.readouterr().out) == [
        {"n": 1, "ok": True, "j": {"a": 1}, "n_2": "NaN", "t": "infinity", "x": None}
    ]


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (114, '{"a": 1e400, "b": [-1e400, 1.5]}', {"a": "1e400", "b": ["-1e400", 1.5]}),
        (3802, f"[{'9' * 5000}, 12]", ["9" * 5000, 12]),
        (114, "[" * 20_000 + "]" * 20_000, "[" * 20_000 + "]" * 20_000),
        (1700, "1" + "0" * 30_000, "1" + "0" * 30_000),
        (1700, "1" + "0" * 400 + ".5", "1" + "0" * 400 + ".5"),
        (1700, "-12.50", -12.5),
        (701, "-Infinity", "-Infinity"),
    ],
)
def test_a_number_that_no_program_could_read_stays_text_in_a_querys_json(capsys, type_, text, value):
    print_json(QueryResult(["x"], [type_], [(text,)]))
    told = capsys.readouterr().out
    assert json.loads(told, parse_constant=pytest.fail) == [{"x": value}]


def test_thousands_are_grouped_wherever_a_count_is_written_out():
    assert plural(1, "row") == "1 row"
    assert plural(4977, "row") == "4,977 rows"
    assert line_changes(1204, 4) == "+1,204 −4"
    assert listed(["a"] * 1001, 1) == "a and 1,000 more"
