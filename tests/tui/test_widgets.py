"""What entries say of rows and calls, which of them are mounted, and small widgets."""

from __future__ import annotations

import json

import pytest

from agentmesh.domain.states import Kind
from agentmesh.tui import theme
from agentmesh.tui.conversation import tool_text
from agentmesh.tui.conversation.entries import ChatMessage, ModelMessage, Note, ToolCall, ToolResult, entries_of
from agentmesh.tui.conversation.prose import is_plain
from agentmesh.tui.conversation.window import MOST, Window
from agentmesh.tui.widgets.double_press import DoublePress
from agentmesh.tui.widgets.plain import Plain
from tests.tui.faces import row
from tests.tui.piloting import Show, called, puppet, result, said


def test_rows_become_entries():
    def one(found):
        (entry,) = entries_of(found)
        return entry

    assert one(said(1, "hi", Kind.USER)) == ChatMessage("1", "you", "hi", True)
    mail = said(2, "done", Kind.MAIL, name="child", automatic=True, failed=True)
    assert one(mail) == ChatMessage("2", "child", "done", False, "how its turn failed")
    merged = said(2, "Your files were merged.", Kind.MAIL, name="root", automatic=True, failed=False, about="merge")
    assert one(merged) == ChatMessage("2", "root", "Your files were merged.", False, "merge")
    assert one(called(3, "glob", '{"pattern": "*"}')) == ToolCall("3.0", "glob", '{"pattern": "*"}')
    assert one(result(4, 3, "glob", {"files": []})) == ToolResult("3.0", "glob", {"files": []})
    assert one(row(5, Kind.EVENT, event="x", text="it happened")) == Note("5", Kind.EVENT, "it happened")
    found = list(entries_of(row(6, Kind.ERROR, error="no", hint="try", partial="half")))
    assert found == [ModelMessage("6.partial", "half", "", True), Note("6", Kind.ERROR, "no", "try")]
    assert list(entries_of(said(7, ""))) == []


def test_a_wait_of_a_person_says_whom_it_found_how():
    outcome = {"outcome": "complete", "results": [{"name": "a", "status": "received"}, {"name": "b", "status": "dead"}]}
    (entry,) = entries_of(row(1, Kind.COMMAND, command="wait", result=outcome))
    assert entry == Note("1", Kind.COMMAND, "/wait", "complete: a received, b dead")


def test_control_and_bidi_characters_are_gone():
    (entry,) = entries_of(said(1, "a\x1b[31m\u202eb\x00", Kind.USER))
    assert entry == ChatMessage("1", "you", "a[31mb", True)


@pytest.mark.parametrize(
    ("name", "arguments", "said_of_it"),
    [
        ("bash", '{"command": "ls\\n-l"}', "ls -l"),
        ("grep", '{"pattern": "x", "path": "src"}', "x in src"),
        ("wait", '{"timeout": 5}', "for anyone, up to 5 s"),
        ("wait", '{"timeout": 5, "from_agents": ["a"]}', "for 1 agent, up to 5 s"),
        ("kill", '{"agent_id": "deadbeef-0000-4000-8000-000000000000"}', "deadbeef"),
        ("fork", '{"name": "a", "prompt": "Look.", "workspace": "own"}', "a (own tree): Look."),
        ("fork", '{"name": "a", "prompt": "Look."}', "a: Look."),
        ("task", '{"description": "look", "workspace": "own"}', "look (own tree)"),
        ("unknown", '{"a": 1, "b": "x"}', "a=1 b=x"),
        ("todo_write", '{"items": [{"content": "x", "status": "completed"}]}', "1/1 done"),
        ("todo_write", '{"items": "[{\\"content\\": \\"x\\", \\"status\\": \\"in_progress\\"}]"}', "0/1 done, now: x"),
        ("web_fetch", '{"url": "https://example.com"}', "https://example.com"),
        ("bash", '{"command": "cut off', '{"command": "cut off'),
        ("bash", "[1]", "[1]"),
    ],
)
def test_a_call_in_one_line(name, arguments, said_of_it):
    assert tool_text.headline(name, arguments) == said_of_it


@pytest.mark.parametrize(
    ("name", "value", "said_of_it", "failed"),
    [
        ("bash", {"exit_code": 0, "output": "one\n"}, "one", False),
        ("bash", {"exit_code": 2, "output": ""}, "exit 2, no output", True),
        ("bash", {"process_id": 3, "state": "running"}, "process 3, in the background", False),
        ("glob", {"files": ["a"]}, "1 file", False),
        ("grep", {"matches": ["a", "b"]}, "2 matches", False),
        ("grep", {"matches": ["a"]}, "1 match", False),
        ("send", {"status": "sent", "to": {"name": "root"}}, "sent to root", False),
        ("peek", {"unread": 2, "messages": []}, "2 unread", False),
        ("interrupt", {"name": "a", "interrupted": True}, "", False),
        ("interrupt", {"name": "a", "interrupted": False}, "was not running", False),
        ("kill", {"killed": [{"name": "a"}, {"name": "b"}]}, "killed a, b", False),
        ("write", {"bytes": 3, "created": True}, "created, 3 bytes", False),
        ("todo_write", {"items": 3, "open": 2}, "2 open", False),
        ("web_fetch", {"status": 200, "title": "A page", "content": "x"}, "200, A page", False),
        ("web_fetch", {"status": 301, "redirect": "https://b/"}, "redirects to https://b/", False),
        ("anything", {"error": "it broke"}, "it broke", True),
        ("anything", "text", "text", False),
    ],
)
def test_a_result_in_a_few_words(name, value, said_of_it, failed):
    assert (tool_text.outcome(name, value), tool_text.failed(value)) == (said_of_it, failed)


def test_a_write_is_shown_as_a_diff_of_added_lines():
    diff = tool_text.diff_of("write", '{"content": "a\\nb\\n"}', {"bytes": 4})
    assert diff == "@@ -0,0 +1,2 @@\n+a\n+b"
    assert tool_text.diff_of("write", '{"content": "a"}', {"error": "no"}) is None


def test_a_to_do_list_is_shown_as_a_check_list():
    items = [("done", "completed"), ("doing\x1b[31m\n[b]it", "in_progress"), ("next", "pending")]
    arguments = json.dumps({"items": [{"content": content, "status": status} for content, status in items]})
    assert tool_text.checklist("todo_write", arguments) == "☑ done\n◐ doing[31m [b]it\n☐ next"
    assert tool_text.checklist("todo_write", '{"items": [{"content": "x", "status": ["?"]}, 3]}') is None
    assert tool_text.checklist("bash", arguments) is None


def test_names_that_a_model_made_up_do_nothing_to_the_terminal():
    shown = tool_text.arguments_in_full(json.dumps({"a\x1b[2J": "b\x1b[2J", "c\x07": 1}))
    assert shown == "a[2J: b[2J\nc: 1"


def test_a_very_long_result_is_cut_and_says_so():
    shown = tool_text.result_in_full({"output": "x" * 100_000})
    assert "more characters" in shown
    assert len(shown) < 70_000


def test_the_window_moves_over_all_entries_and_holds_a_bounded_part_of_them():
    notes = [Note(str(n), Kind.EVENT, "x") for n in range(1000)]
    window = Window(notes)
    assert window.around(None) == window.mounted == notes[window.first :]
    while window.first:
        window.up()
        window.drop_below()
        assert len(window.mounted) <= MOST * window.lines
    seen = set(window.mounted)
    while not window.at_end:
        seen |= set(window.down())
        window.drop_above()
        assert len(window.mounted) <= MOST * window.lines
    assert seen == set(notes)
    assert not window.append(notes) or window.at_end


def test_the_window_around_a_place_holds_it_with_what_is_on_both_sides():
    window = Window([Note(str(n), Kind.EVENT, "x") for n in range(1000)])
    window.around(window.place("500"))
    assert window.first < 500 < window.last < 1000
    assert not window.append([Note("new", Kind.EVENT, "x")]), "the end is not in it"
    assert window.place("nobody") is None


def test_one_entry_higher_than_all_screens_stays_mounted():
    window = Window([Note("1", Kind.EVENT, "x\n" * 10_000)])
    window.around(None)
    assert window.drop_above() == []


def test_plain_words_need_no_markdown():
    assert is_plain("I look at it, then (maybe) say more: 3 files.")
    for text in ("# x", "1. x", "a *b*", "a\n\nb", "[a](b)", "`a`", "- x", "a_b", "<b>"):
        assert not is_plain(text)


def test_the_third_press_is_a_first_one():
    twice = DoublePress(1.0)
    assert [twice.pressed(now) for now in (0.0, 0.5, 0.6, 2.0, 2.9)] == [False, True, False, False, True]
    assert not twice.is_open(3.0), "the next is a first one"
    twice.pressed(3.0)
    assert [twice.is_open(now) for now in (4.0, 4.1)] == [True, False]
    assert twice.left(3.75) == 0.25


@pytest.mark.parametrize(
    ("environ", "wanted", "name"),
    [
        ({}, "auto", "agentmesh-dark"),
        ({"COLORFGBG": "0;15"}, "auto", "agentmesh-light"),
        ({"COLORFGBG": "15;default;0"}, "auto", "agentmesh-dark"),
        ({"COLORFGBG": "0;15"}, "dark", "agentmesh-dark"),
        ({}, "light", "agentmesh-light"),
    ],
)
def test_the_theme_follows_the_configuration_then_the_terminal(environ, wanted, name):
    assert theme.theme_for(environ, wanted) == name


def test_without_colour_every_state_can_still_be_told(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")

    async def scene(show: Show) -> None:
        await show.rows(called(1, "bash"), result(2, 1, "bash", {"error": "no"}))
        assert show.app.no_color
        colours = {
            colour.triplet
            for strip in show.app.screen._compositor.render_strips()
            for segment in strip.apply_filter(show.app._filters[0], show.app.screen.background_colors[1])
            if segment.style and (colour := segment.style.color) and colour.triplet
        }
        assert all(red == green == blue for red, green, blue in colours), "a colour was left"
        assert "✗ no" in show.text

    puppet(scene)


def test_the_light_theme_can_be_read():
    """Dim text on its background, by the contrast of WCAG."""
    for look in theme.THEMES:
        assert _contrast(look.variables["dim"], look.background or "") > 4.5
        assert _contrast(look.foreground or "", look.background or "") > 9


def _contrast(one: str, other: str) -> float:
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_plain_shows_markup_as_text():
    assert str(Plain("[/x] [b]").render()) == "[/x] [b]"
