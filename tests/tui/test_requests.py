"""What agents ask a person: which one is asked about, which keys count, what an answer is, and how all of it looks."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.containers import VerticalScroll
from textual.document._document import Document

from agentmesh.domain.text import visible
from agentmesh.tui.board.neighbours_line import neighbours_line
from agentmesh.tui.commands.calls import ANSWER, Call, Done, Failed
from agentmesh.tui.commands.messages import ActionDone
from agentmesh.tui.input.help import Help
from agentmesh.tui.requests.dialog import RequestDialog
from agentmesh.tui.requests.field import Field
from agentmesh.tui.requests.key_guard import KeyGuard
from agentmesh.tui.requests.options import options
from agentmesh.tui.requests.proposals import proposal
from agentmesh.tui.requests.queue import RequestQueue
from agentmesh.tui.requests.replies import BadEdit, always, edit_says, edit_text, edited, proposed_rules, refused
from agentmesh.tui.requests.request_text import asks_in_full, banner, settled_text
from agentmesh.tui.screen import MainScreen
from agentmesh.tui.session.messages import RequestSettled
from agentmesh.tui.widgets.formats import rule_text
from agentmesh.tui.widgets.lines import plain
from tests.tui.faces import asking, board, face, id_of, request
from tests.tui.piloting import Puppet, Show, asked, puppet
from tests.tui.with_defaults import status_line

ONE, TWO, THREE = request("alpha"), request("beta", number=2), request("gamma", number=3)


# The queue


def test_the_oldest_is_asked_first_and_each_knows_its_place():
    queue = RequestQueue()
    assert queue.show([ONE, TWO]) == [ONE, TWO]
    assert queue.show([ONE, TWO, THREE]) == [THREE]
    assert queue.first() == ONE
    assert queue.first(id_of("gamma")) == THREE
    assert queue.place(TWO.id) == (2, 3)
    assert [queue.after(one.id) for one in (ONE, THREE)] == [TWO, ONE]


def test_what_is_put_aside_stays_and_what_is_new_is_asked():
    queue = RequestQueue()
    queue.show([ONE])
    queue.put_aside()
    assert (queue.held_back, queue.waiting) == ([], [ONE])
    queue.show([ONE, TWO])
    assert queue.held_back == [TWO]
    assert queue.first() == TWO
    queue.take_up()
    assert queue.held_back == [ONE, TWO]


def test_what_was_answered_here_waits_no_more_unless_that_failed():
    queue = RequestQueue()
    queue.show([ONE, TWO])
    queue.answer(ONE.id)
    assert queue.waiting == [TWO]
    assert queue.place(TWO.id) == (1, 1)
    assert queue.was_answered_here(ONE.id)
    queue.answer_failed(ONE.id)
    assert queue.waits(ONE.id)
    assert queue.held_back == [TWO]
    assert queue.after(THREE.id) == ONE
    queue.show([])
    assert queue.first() is queue.after(ONE.id) is None


def test_a_draft_is_kept_as_long_as_its_request_waits():
    queue = RequestQueue()
    queue.show([ONE])
    queue.keep_draft(ONE.id, "half a")
    assert queue.draft(ONE.id) == "half a"
    queue.show([])
    assert queue.draft(ONE.id) == ""


# Keys


def test_keys_of_the_first_half_second_do_not_count():
    guard = KeyGuard()
    assert not guard.counts(10.0), "before it is drawn"
    guard.appeared(10.0)
    assert not guard.is_over(10.49)
    assert guard.counts(10.5)
    assert guard.counts(10.4) is False


def test_who_types_on_has_not_seen_it_yet_but_not_for_ever():
    guard = KeyGuard()
    guard.appeared(10.0)
    assert [guard.counts(10 + n / 10) for n in (1, 4, 8, 12, 16, 19)] == [False] * 6
    assert guard.counts(12.0)


# Answers


def test_an_edited_command_replaces_only_the_command():
    assert edit_text(ONE) == "git push"
    assert edited(ONE, "git push") == {"decision": "once"}
    assert edited(ONE, "git push -n") == {
        "decision": "once",
        "arguments": {"command": "git push -n", "timeout": 120.0},
    }
    with pytest.raises(BadEdit, match="no command"):
        edited(ONE, " ")


def test_other_arguments_are_edited_as_json():
    write = request("a", "fetch", {"path": "x", "content": "é\n"})
    assert edit_text(write) == '{\n  "path": "x",\n  "content": "é\\n"\n}'
    assert edited(write, '{"path": "y"}') == {"decision": "once", "arguments": {"path": "y"}}
    for wrong in ("{", "[1]"):
        with pytest.raises(BadEdit, match="JSON"):
            edited(write, wrong)


def test_the_text_of_a_new_file_is_edited_as_text():
    given = {"path": "a.py", "content": 'print("one")\n'}
    asked = request("alpha", "write", given)
    assert edit_text(asked) == 'print("one")\n'
    assert edited(asked, "print(2)\n") == {"decision": "once", "arguments": {**given, "content": "print(2)\n"}}
    assert edited(asked, "") == {"decision": "once", "arguments": {**given, "content": ""}}
    assert edited(asked, edit_text(asked)) == {"decision": "once"}
    says = [edit_says(one) for one in (request("alpha"), asked, request("alpha", "edit", {"path": "a.py"}))]
    assert says == ["What is to run instead:", "What a.py is to hold instead:", "The arguments instead, as JSON:"]


@pytest.mark.parametrize(
    "odd", ["\r\n", "\r", "\x00", "\x0b", "\x0c", "\x1c", "\x1e", "\x7f", "\x85", "\u2028", "\u202e"]
)
@pytest.mark.parametrize(("tool", "part"), [("bash", "command"), ("write", "content")])
def test_a_text_that_a_field_would_change_is_edited_as_json_with_all_that_is_in_it(tool, part, odd):
    given = {"path": "a.py", part: f"one{odd}two"}
    asked = request("alpha", tool, given)
    text = edit_text(asked)
    assert Document(text).text == text, "the field shows it as it is"
    assert edited(asked, text) == {"decision": "once"}
    more = {"decision": "once", "arguments": {**given, "path": "b.py"}}
    assert edited(asked, text.replace("a.py", "b.py")) == more


def test_the_editor_leaves_the_last_newline_of_a_file(monkeypatch):
    monkeypatch.setenv("VISUAL", "true")
    asked = request("alpha", "write", {"path": "a.py", "content": "print(1)\n"})

    async def scene(show: Show) -> None:
        monkeypatch.setattr(show.app, "suspend", nullcontext)  # there is no terminal to hand over
        await show.board(asking("alpha", asked))
        await opened(show)
        await press(show, "e", "ctrl+g")
        assert show.app.screen.query_one(Field).text == "print(1)\n"
        await press(show, "enter")
        await closed(show)

    assert answers(puppet(scene)) == [{"decision": "once"}]


def test_a_reason_may_be_left_out():
    assert refused("  ") == {"decision": "no"}
    assert refused(" tests first \n") == {"decision": "no", "reason": "tests first"}


# Words


def test_rules_are_written_as_in_the_configuration():
    assert rule_text({"effect": "allow", "tool": "bash", "pattern": "git commit *"}) == "bash(git commit *)"


def test_what_a_terminal_would_hide_is_written_out():
    assert visible("rm -rf /\r\x1b[2Kls\u202e") == "rm -rf /\\u000d\\u001b[2Kls\\u202e"
    assert visible("tab\tand\nline") == "tab\tand\nline"


def test_who_has_answered_is_told():
    by = {"state": "answered", "answered_by": "ada (agentmesh answer)"}
    assert settled_text(request("a", answer={"decision": "no"}, **by)) == (
        "a (bash) was answered by ada (agentmesh answer): no"
    )
    assert settled_text(request("a", question="Which?", answer={"text": "red\nblue"}, **by)).endswith(": red blue")
    assert "no longer asks" in settled_text(request("a", state="cancelled"))


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_banner_says_who_asks_in_one_line(width):
    long = request("alpha", arguments={"command": "echo 'x\n" + "y" * 300})
    (line,) = banner([long, TWO], width, "F2")
    assert plain(line).startswith(" ! alpha asks and 1 more: bash: echo 'x")
    assert plain(line).endswith("F2 answers")
    assert len(plain(line)) <= width
    assert banner([], width, "F2") == []


def test_agents_that_ask_are_marked_and_counted():
    shown = board(asking("alpha"), face("beta"), asking("gamma", request("gamma"), request("gamma", number=2)))
    assert "▸ 3 children !" in plain(neighbours_line(shown, id_of("root"), 80))
    line = plain(neighbours_line(shown, id_of("alpha"), 80))
    assert line.startswith(" root › !alpha ")
    assert line.endswith(" ‹ !gamma  1/3  beta › ")
    assert "3 need you: alpha, gamma (F2)" in plain(status_line(shown, id_of("root"), 80, None, "F2"))


# What a call would do


def test_a_command_is_shown_whole():
    command = "set -e\n" + "\n".join(f"echo {n}" for n in range(500))
    shown = proposal(request("a", arguments={"command": command, "timeout": 5, "description": "count"}), None)
    assert shown.text == command
    assert shown.remark == "it says: count · timeout 5 s"


def test_a_description_is_one_line_and_cannot_look_like_a_choice():
    said = "list files\n\n  y  once   safe" + "\nmore" * 200
    shown = proposal(request("a", arguments={"command": "ls", "description": said}), None)
    assert shown.remark.startswith("it says: list files")
    assert "\n" not in shown.remark
    assert len(shown.remark) < 140


def test_a_run_of_blank_lines_in_a_command_is_one_line():
    given = {"command": "echo a\n\n\necho hi" + " " * 300 + "\n" * 40 + " \t\npython3 -c 'print(1)'\n"}
    shown = proposal(request("a", arguments=given), None)
    assert shown.text == "echo a\n\n\necho hi … 300 blanks …\n… 40 blank lines …\npython3 -c 'print(1)'\n"
    assert asks_in_full(request("a", arguments=given)) == shown.text


def test_a_write_is_compared_with_the_file(tmp_path: Path):
    (tmp_path / "f").write_text("a\nb\n")
    shown = proposal(request("a", "write", {"path": "f", "content": "a\nc\n"}), tmp_path)
    assert (shown.path, shown.remark) == ("f", "")
    assert shown.text.splitlines()[1:] == [" a", "-b", "+c"]
    new = proposal(request("a", "write", {"path": "g", "content": "x"}), tmp_path)
    assert (new.text.splitlines()[1:], new.remark) == (["+x", "\\ No newline at end of file"], "A new file.")
    elsewhere = proposal(request("a", "write", {"path": "f", "content": "x\n"}), None)
    assert (elsewhere.text.splitlines()[1:], elsewhere.remark) == (["+x"], "The session's files are on another host.")


def test_an_edit_is_shown_in_its_file_or_as_it_was_asked_for(tmp_path: Path):
    (tmp_path / "f").write_bytes(b"one\r\ntwo\r\ntwo\r\n")
    both = {"path": "f", "old": "two", "new": "2", "replace_all": True}
    assert proposal(request("a", "edit", both), tmp_path).text.count("+2") == 2
    once = proposal(request("a", "edit", both | {"replace_all": False}), tmp_path)
    assert once.text.count("+2") == 1
    gone = proposal(request("a", "edit", both | {"old": "three"}), tmp_path)
    assert "-three" in gone.text
    assert gone.remark == "The file is without this text now."


def test_a_file_whose_lines_end_with_crlf_is_compared_by_its_lines(tmp_path: Path):
    (tmp_path / "f").write_bytes(b"a\r\nb\r\n")
    shown = proposal(request("a", "write", {"path": "f", "content": "a\r\nc\r\n"}), tmp_path)
    assert (shown.text.splitlines()[1:], shown.remark) == ([" a", "-b", "+c"], "Its lines end with CRLF.")
    mixed = proposal(request("a", "write", {"path": "f", "content": "a\r\nc\n"}), tmp_path)
    assert mixed.text.splitlines()[1:] == ["-a", "-b", "+a\\u000d", "+c"]
    edit = {"path": "f", "old": "a\r\nb\r\n", "new": "x\r\n"}
    assert proposal(request("a", "edit", edit), tmp_path).text.splitlines()[1:] == ["-a", "-b", "+x"]


LOSES = "Its lines no longer end with CRLF."


@pytest.mark.parametrize(
    ("before", "content", "text", "remark"),
    [
        ("a\r\nb\r\n", "a\nb\n", "(no word changes)", LOSES),
        ("a\nb\n", "a\r\nb\r\n", "(no word changes)", "Its lines end with CRLF."),
        ("a\r\nb\n", "a\r\nb\n", "(nothing changes)", ""),
        ("a\r\nb\n", "a\nb\n", "-a\\u000d\n+a\n b", ""),
        ("\ufeffa\n", "a\n", "(no word changes)", "Its byte order mark goes."),
        ("a\n", "\ufeffa\n", "(no word changes)", "Its byte order mark is new."),
        ("\ufeffa\r\n", "\ufeffa\n", "(no word changes)", LOSES),
    ],
)
def test_a_write_that_changes_the_form_of_a_file_says_so(
    tmp_path: Path, before: str, content: str, text: str, remark: str
):
    (tmp_path / "f").write_bytes(before.encode())
    shown = proposal(request("a", "write", {"path": "f", "content": content}), tmp_path)
    assert (shown.text.partition("@@\n")[2] or shown.text, shown.remark) == (text, remark)


def test_an_edit_leaves_the_line_ends_of_a_mixed_file(tmp_path: Path):
    (tmp_path / "f").write_bytes(b"a\r\nb\nc\n")
    both = {"path": "f", "old": "a\r\nb", "new": "a\r\nx"}
    assert proposal(request("a", "edit", both), tmp_path).text.splitlines()[1:] == [" a\\u000d", "-b", "+x", " c"]


def test_what_is_no_file_is_not_read(tmp_path: Path):
    import os

    os.mkfifo(tmp_path / "pipe")
    for path in ("pipe", "."):
        shown = proposal(request("a", "write", {"path": path, "content": "x"}), tmp_path)
        assert "cannot be compared" in shown.remark


def test_too_much_says_that_it_is_cut():
    shown = proposal(request("a", "fetch", {"text": "x" * 300_000}), None)
    assert "more characters are not shown!" in shown.remark


# The dialog


@pytest.fixture(autouse=True)
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let keys count at once; what is about the first moment says so itself."""
    monkeypatch.setattr("agentmesh.tui.requests.guarded_dialog.GRACE", 0.0)
    monkeypatch.setattr("agentmesh.tui.requests.guarded_dialog.BURST", 0.05)
    monkeypatch.setattr("agentmesh.tui.input.quiet_input.QUIET", 0.0)


async def press(show: Show, *keys: str) -> None:
    """Press keys one by one, each long enough after the other that it is no part of a word."""
    for key in keys:
        await show.press(key)
        await show.until(lambda: getattr(show.app.screen, "_typing", None) is None)


async def opened(show: Show) -> RequestDialog:
    """Wait for a dialog whose keys count."""

    def there() -> bool:
        dialog = show.app.screen
        return isinstance(dialog, RequestDialog) and dialog.takes_keys

    await show.until(there)
    assert isinstance(show.app.screen, RequestDialog)
    return show.app.screen


def test_no_dialog_comes_before_the_list_of_sessions_that_a_person_picks_from():
    async def scene(show: Show) -> None:
        show.app.main.presenter.is_held = True
        await show.board(asking("one", request("one")))
        assert isinstance(show.app.screen, MainScreen)
        show.app.main.presenter.is_held = False
        await opened(show)

    puppet(scene)


def test_a_long_proposal_is_scrolled_and_a_short_one_stays():
    long = request("one", arguments={"command": "\n".join(f"echo {n}" for n in range(200))})

    async def scene(show: Show) -> None:
        await show.board(asking("one", long))
        dialog = await opened(show)
        part = dialog.query_one("#proposal", VerticalScroll)
        for key, is_there in (
            ("pagedown", lambda: part.scroll_y > 0),
            ("ctrl+end", lambda: part.scroll_y == part.max_scroll_y),
            ("pageup", lambda: 0 < part.scroll_y < part.max_scroll_y),
            ("ctrl+home", lambda: part.scroll_y == 0),
        ):
            await press(show, key)
            await show.until(is_there)
        await press(show, "y")
        await closed(show)
        await show.board(asking("two", request("two")))
        await opened(show)
        await press(show, "pagedown", "pageup", "ctrl+home", "ctrl+end", "y")
        await closed(show)

    assert answers(puppet(scene)) == [{"decision": "once"}] * 2


async def closed(show: Show) -> None:
    await show.until(lambda: isinstance(show.app.screen, MainScreen))


def answers(app: Puppet) -> list[dict[str, Any]]:
    return [json.loads(call.args[1]) for call in app.calls if call.name == ANSWER]


def test_a_request_shows_at_once_whoever_is_in_view_with_the_askers_lineage():
    deep = request("deep", path="root/alpha/deep", arguments={"command": "git push [red]x[/] [/b]"})

    async def scene(show: Show) -> None:
        await show.board(face("alpha"), asking("deep", deep, parent="alpha"))
        await opened(show)
        await show.sees("deep asks: may it use bash?", "root › alpha › deep", "git push [red]x[/] [/b]")
        await show.sees("for all agents of the session: bash(git push *)", "it is not a known read-only command")
        assert show.in_view == "root"
        await press(show, "y")
        await closed(show)

    app = puppet(scene)
    assert answers(app) == [{"decision": "once"}]
    assert app.hand.asked[-1] == (Call(ANSWER, (str(deep.id), '{"decision": "once"}')), id_of("deep"))


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        (["down", "enter"], {"decision": "once"}),
        (["1"], {"decision": "once"}),
        (["enter", "y"], {"decision": "once"}),
        (["a", "enter", "enter"], {"decision": "always"}),
        (["down", "down", "enter", "enter", "enter"], {"decision": "always"}),
        (["2", "enter", "enter"], {"decision": "always"}),
        (["a", "escape", "y"], {"decision": "once"}),
        (["a", "enter", "escape", "y"], {"decision": "once"}),
        (["a", "enter", "x", "enter", "backspace", "enter", "enter"], {"decision": "always"}),
        (["n", "enter"], {"decision": "no"}),
        (["n", *"later", "enter"], {"decision": "no", "reason": "later"}),
        (["n", "escape", "y"], {"decision": "once"}),
        (["e", *" -n", "enter"], {"decision": "once", "arguments": {"command": "git push -n", "timeout": 120.0}}),
        (["up", "up", "enter", "enter"], {"decision": "once"}),
    ],
)
def test_approvals_are_answered_by_keys(keys, answer):
    async def scene(show: Show) -> None:
        await show.board(asking("alpha"))
        await opened(show)
        await press(show, *("space" if key == " " else "minus" if key == "-" else key for key in keys))
        await closed(show)

    assert answers(puppet(scene)) == [answer]


FAN_OUT = request(
    "alpha",
    "task",
    {"description": "count", "items": ["a", "b"], "prompt": "Count {item}."},
    reason="starts 20 agents on openai/gpt-5-mini, reserves up to $3.10 of $10.00 ($9.58 left)",
    agents=20,
    rules=[],
)


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        (["y"], {"decision": "once"}),
        (["a", "a"], {"decision": "always"}),
        (["n", *"dear", "enter"], {"decision": "no", "reason": "dear"}),
    ],
)
def test_the_question_before_many_agents_start_says_what_they_reserve(keys, answer):
    async def scene(show: Show) -> None:
        await show.board(asking("alpha", FAN_OUT))
        await opened(show)
        await show.sees("alpha asks: may it start 20 agents?", "starts 20 agents on openai/gpt-5-mini,")
        await show.sees("start these 20 agents", "ask no more in this session", "Count {item}.")
        await press(show, *keys)
        await closed(show)

    assert answers(puppet(scene)) == [answer]
    assert "alpha asks: starts 20 agents on openai" in plain(banner([FAN_OUT], 80, "F2")[0])


@pytest.mark.parametrize(
    ("keys", "text"),
    [(["2"], "blue [/x]"), (["down", "down", "enter"], "blue [/x]"), (["o", *"green", "enter"], "green")],
)
def test_questions_are_answered_by_an_option_or_in_words(keys, text):
    question = request("alpha", question="Which [b]colour[/b]?", options=["red", "blue [/x]"])

    async def scene(show: Show) -> None:
        await show.board(asking("alpha", question))
        await opened(show)
        await show.sees("alpha asks you", "Which [b]colour[/b]?", "1 red", "2 blue [/x]")
        await press(show, *keys)
        await closed(show)

    assert answers(puppet(scene)) == [{"text": text}]


def test_options_from_the_tenth_on_have_letters_and_what_is_below_is_named():
    question = request("alpha", question="Which?", options=[f"choice {n}" for n in range(1, 21)])

    async def scene(show: Show) -> None:
        await show.board(asking("alpha", question))
        await opened(show)
        await show.sees("9 choice 9", "a choice 10", "b choice 11", "▾ 11 more lines · ↓", "Esc later")
        await press(show, "up", "up", "up")
        await show.sees("l choice 20", "o other", "g go there")
        await show.until(lambda: "more line" not in show.text)
        await press(show, "l")
        await closed(show)

    assert answers(puppet(scene)) == [{"text": "choice 20"}]


@pytest.mark.parametrize("height", [10, 12, 18, 20, 24])
def test_a_long_question_with_many_options_leaves_the_keys_in_sight(height):
    question = request("alpha", question="Which?\n" * 30, options=[f"choice {n}" for n in range(1, 21)])

    async def scene(show: Show) -> None:
        await show.board(asking("alpha", question), asking("beta", request("beta", number=2)))
        await opened(show)
        await show.sees("alpha asks you", "Which?", "1 choice 1", "Esc later", "lists all")

    puppet(scene, size=(80, height))


@pytest.mark.parametrize("size", [(80, 24), (40, 12)])
def test_many_rules_of_always_leave_the_keys_in_sight(size):
    rules = [{"effect": "allow", "tool": "bash", "pattern": f"make part-{n} *"} for n in range(60)]
    asks = request("alpha", "edit", {"path": "a.txt", "old": "a", "new": "b"}, rules=rules)

    async def scene(show: Show) -> None:
        await show.board(asking("alpha", asks))
        await opened(show)
        await show.sees("y once", "a always", "n no", "e edit", "g go there", "Esc later")
        assert ("a shows all" in show.text) == (size == (80, 24))
        await press(show, "a")
        await show.sees("make part-59 *", "Enter asks once more", "Esc goes back")
        await press(show, "enter")
        await show.sees("Allow this from now on? Enter", "Esc goes back")

    puppet(scene, size=size)


def test_rules_that_no_field_can_show_are_all_beside_always():
    rules = [{"effect": "allow", "tool": "bash", "pattern": f"set -{n}\nmake"} for n in "abcdef"]
    (always,) = (option for option in options(request("alpha", rules=rules)) if option.name == "always")
    assert "bash(set -f" in always.explained
    assert "more" not in always.explained


def test_an_open_question_has_its_field_at_once_and_keeps_a_draft():
    async def scene(show: Show) -> None:
        await show.board(asking("alpha", request("alpha", question="Why?")))
        dialog = await opened(show)
        await show.until(lambda: dialog.focused)
        await press(show, "enter", *"because")
        await press(show, "escape")
        await closed(show)
        assert "1 needs you: alpha (F2)" in show.text
        await press(show, "f2")
        dialog = await opened(show)
        await show.until(lambda: dialog.focused)
        await press(show, *" so", "enter")
        await closed(show)

    assert answers(puppet(scene)) == [{"text": "because so"}]


def test_keys_of_the_first_moment_answer_nothing(monkeypatch):
    monkeypatch.setattr("agentmesh.tui.requests.guarded_dialog.GRACE", 3600.0)

    async def scene(show: Show) -> None:
        await show.board(asking("alpha"))
        await show.until(lambda: isinstance(show.app.screen, RequestDialog))
        await press(show, "y", "enter", "a", "n", "escape", "ctrl+c", "tab")
        assert show.app.main.composer.prompt.text == ""
        assert isinstance(show.app.screen, RequestDialog)
        assert not show.app.screen.has_field

    app = puppet(scene)
    assert app.calls == []


@pytest.mark.parametrize("back", ["escape", "f1", "q"])
def test_the_help_opens_over_a_dialog_and_leads_back_to_it(back):
    question = request("alpha", question="Why?")

    async def scene(show: Show) -> None:
        await show.board(asking("alpha", question))
        dialog = await opened(show)
        await show.until(lambda: dialog.focused)
        await press(show, *"bec", "f1")
        await show.until(lambda: isinstance(show.app.screen, Help))
        await press(show, "down", "x", "enter", back)
        await show.until(lambda: show.app.screen is dialog)
        await press(show, *"ause", "enter")
        await closed(show)

    assert answers(puppet(scene)) == [{"text": "because"}]


def test_the_help_opens_over_the_choices_by_the_configured_key_and_keeps_the_chosen_one():
    async def scene(show: Show) -> None:
        await show.board(asking("alpha"))
        dialog = await opened(show)
        await press(show, "down", "f10")
        await show.until(lambda: isinstance(show.app.screen, Help))
        await press(show, "y", "escape")
        await show.until(lambda: show.app.screen is dialog)
        await press(show, "enter")
        await closed(show)

    assert answers(puppet(scene, keys={"app.help": "f10"})) == [{"decision": "once"}]


def test_the_help_opens_in_the_first_moment_of_a_dialog_too(monkeypatch):
    monkeypatch.setattr("agentmesh.tui.requests.guarded_dialog.GRACE", 3600.0)

    async def scene(show: Show) -> None:
        await show.board(asking("alpha"))
        await show.until(lambda: isinstance(show.app.screen, RequestDialog))
        dialog = show.app.screen
        await press(show, "f1")
        await show.until(lambda: isinstance(show.app.screen, Help))
        await press(show, "escape")
        await show.until(lambda: show.app.screen is dialog)

    assert puppet(scene).calls == []


def test_a_request_that_is_settled_below_the_help_is_gone_when_that_is_left():
    async def scene(show: Show) -> None:
        await show.board(asking("alpha"))
        await opened(show)
        await press(show, "f1")
        await show.until(lambda: isinstance(show.app.screen, Help))
        await show.board(face("alpha"))
        assert isinstance(show.app.screen, Help)
        await press(show, "escape")
        await closed(show)

    assert puppet(scene).calls == []


@pytest.mark.parametrize("grace", [0.0, 3600.0], ids=["later", "in the first moment"])
@pytest.mark.parametrize("word", ["stop", "maybe", "yes", "always", "no", "11", "aa"])
def test_a_word_typed_into_a_dialog_answers_nothing_and_goes_to_the_input(word, grace, monkeypatch):
    monkeypatch.setattr("agentmesh.tui.requests.guarded_dialog.GRACE", grace)
    monkeypatch.setattr("agentmesh.tui.requests.guarded_dialog.BURST", 3600.0)

    async def scene(show: Show) -> None:
        await show.board(asking("alpha"))
        await show.until(lambda: isinstance(show.app.screen, RequestDialog))
        await show.press(*word)
        await closed(show)
        assert show.typed == word
        await show.sees("1 needs you: alpha (F2)")

    assert puppet(scene).calls == []


def test_a_paste_into_a_dialog_answers_nothing_and_goes_to_the_input(monkeypatch):
    monkeypatch.setattr("agentmesh.tui.requests.guarded_dialog.BURST", 3600.0)
    text = "\n".join(f"line {n}" for n in range(200))

    async def scene(show: Show) -> None:
        await show.board(asking("alpha"))
        await opened(show)
        await show.press("y")
        for pasted in (text, "more"):  # both are there before the dialog has gone
            show.app.post_message(events.Paste(pasted))
        await closed(show)
        await show.pilot.pause()
        assert show.typed == "y[pasted 200 lines]more"
        assert show.app.main.composer.prompt.whole == f"y{text}more"

    assert puppet(scene).calls == []


def test_enter_after_a_word_sends_nothing_but_the_word(monkeypatch):
    monkeypatch.setattr("agentmesh.tui.requests.guarded_dialog.BURST", 3600.0)

    async def scene(show: Show) -> None:
        await show.board(asking("alpha"))
        await opened(show)
        await show.press("enter")
        assert isinstance(show.app.screen, RequestDialog), "nothing is highlighted"
        await show.press(*"stop", "enter")
        await closed(show)

    assert answers(puppet(scene)) == []


def test_always_shows_its_rules_and_asks_again():
    async def scene(show: Show) -> None:
        await show.board(asking("alpha"))
        await opened(show)
        await press(show, "a")
        await show.sees("one rule a line", "bash(git push *)", "Enter asks once more", "Esc goes back")
        await press(show, "enter")
        await show.sees("Allow this from now on? Enter again allows it", "Esc goes back")
        await press(show, "escape")
        await show.sees("↑ ↓ Enter or a key chooses")
        assert isinstance(show.app.screen, RequestDialog)

    assert puppet(scene).calls == []


def test_a_held_enter_confirms_nothing(monkeypatch):
    async def scene(show: Show) -> None:
        await show.board(asking("alpha"))
        dialog = await opened(show)
        await press(show, "a")
        dialog._confirm_guard = KeyGuard(3600.0)
        await press(show, "enter", "enter", "enter")
        await show.sees("Enter again allows it")

    assert puppet(scene).calls == []


def test_a_rule_without_a_line_of_its_own_is_chosen_twice():
    two_lines = [{"effect": "allow", "tool": "bash", "pattern": "set -e\nmake"}]

    async def scene(show: Show) -> None:
        await show.board(asking("alpha", request("alpha", rules=two_lines)))
        await opened(show)
        await press(show, "a")
        await show.sees("Always, for all agents of this session? Again allows it", "Esc goes back")
        await press(show, "y")
        await closed(show)

    assert answers(puppet(scene)) == [{"decision": "once"}]


def test_the_rules_of_always_are_edited(tmp_path: Path):
    async def scene(show: Show) -> None:
        await show.board(asking("alpha"))
        await opened(show)
        await press(show, "a", "left", "left", "left")
        await press(show, "minus", "n")
        await show.sees("bash(git push-n *)")
        await press(show, "enter")
        await show.sees("No rule here covers `git push`")
        await press(show, "backspace", "backspace", "enter")
        await show.sees("Enter again allows it")
        await press(show, "ctrl+u", "enter")
        await show.sees("A line should be a rule")
        await press(show, "escape")

    assert puppet(scene).calls == []


RULES = [{"effect": "allow", "tool": "bash", "pattern": "pytest *"}]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no rule left"),
        ("\n \n", "no rule left"),
        ("bash", "allows every command"),
        ("bash(*)", "allows every command"),
        ("*", "name one tool"),
        ("bash(sh -c *)", "runs any other program"),
        ("bash(python *)", "allows every program"),
        ("bash(pytest *)\nwrite", "allows every file"),
        ("bash(pytest *)ll right", "should be a rule"),
        ("bash(pytest *)ll right (go)", "covers `pytest -q"),
        ("bash(pytest -x *)", "covers `pytest -q tests`"),
        ("bash(mypy *)", "covers `pytest -q tests`"),
        ("pytest *", "should be a rule"),
        ("read(../x)", "cannot be used"),
    ],
)
def test_rules_that_will_not_do_are_refused_in_words(text: str, says: str, tmp_path: Path):
    asked = request("alpha", arguments={"command": "pytest -q tests"}, rules=RULES)
    with pytest.raises(BadEdit, match=says):
        always(asked, text, tmp_path)


def test_edited_rules_are_the_answer(tmp_path: Path):
    asked = request("alpha", arguments={"command": "pytest -q tests"}, rules=RULES)
    assert proposed_rules(asked) == "bash(pytest *)"
    assert always(asked, "bash(pytest *)\n", tmp_path) == {"decision": "always"}
    narrower, more = ({"effect": "allow", "tool": "bash", "pattern": one} for one in ("pytest -q *", "mypy *"))
    text = " bash(pytest -q *)\n\nbash(mypy *)"
    assert always(asked, text, tmp_path) == {"decision": "always", "rules": [narrower, more]}
    write = request("a", "write", {"path": "src/a/x"}, rules=[narrower | {"tool": "write", "pattern": "src/a/**"}])
    assert always(write, "write(src/**)", tmp_path)["rules"] == [narrower | {"tool": "write", "pattern": "src/**"}]
    tool = request("a", "mcp__x", {"n": 1}, rules=[narrower | {"tool": "mcp__x", "pattern": "*"}])
    assert proposed_rules(tool) == "mcp__x"


def test_dialogs_that_open_by_their_key_only():
    async def scene(show: Show) -> None:
        show.app.main.presenter.opens_dialogs = False
        await show.board(asking("alpha"))
        await show.sees("! alpha asks: bash: git push", "F2 answers")
        assert isinstance(show.app.screen, MainScreen)
        await show.press("f2")
        await opened(show)

    puppet(scene)


def test_several_queue_up_and_each_is_answered_for_its_own_agent():
    async def scene(show: Show) -> None:
        await show.board(asking("alpha", ONE), asking("beta", TWO), asking("gamma", THREE))
        first = await opened(show)
        await show.sees("alpha asks", "1 of 3")
        await press(show, "tab")
        await show.until(lambda: show.app.screen is not first)
        await opened(show)
        await show.sees("beta asks", "2 of 3")
        await press(show, "n", "enter")
        await show.sees("alpha asks", "1 of 2")
        await opened(show)
        await press(show, "y")
        await show.sees("gamma asks: may it use bash?")
        await opened(show)
        await press(show, "a", "enter", "enter")
        await closed(show)

    app = puppet(scene)
    asked = [(call.args[0], json.loads(call.args[1])["decision"]) for call in app.calls]
    assert asked == [(str(TWO.id), "no"), (str(ONE.id), "once"), (str(THREE.id), "always")]


def test_later_puts_all_aside_and_a_key_or_a_command_brings_them_back():
    async def scene(show: Show) -> None:
        await show.board(asking("alpha", ONE), asking("beta", TWO))
        await opened(show)
        await press(show, "escape")
        await closed(show)
        await show.sees("2 need you: alpha, beta (F2)")
        await show.board(asking("alpha", ONE), asking("beta", TWO))
        assert isinstance(show.app.screen, MainScreen), "it does not ask again by itself"
        await show.type("/answer")
        await press(show, "enter")
        await show.sees("2 requests wait", "Esc later")
        await press(show, "enter")
        await opened(show)
        await press(show, "escape")
        await closed(show)
        await show.board(asking("alpha", ONE), asking("beta", TWO), asking("gamma", THREE))
        await opened(show)
        await show.sees("gamma asks", "3 of 3")

    puppet(scene)


def test_a_further_escape_right_after_a_dialog_interrupts_nobody(monkeypatch):
    async def scene(show: Show) -> None:
        await show.board(face("root", None, "running"), asking("alpha", ONE))
        await opened(show)
        await press(show, "escape")
        await closed(show)
        monkeypatch.setattr("agentmesh.tui.requests.presenter.GRACE", 3600.0)  # however busy the machine is
        await press(show, "escape", "escape")
        assert asked(show) == []
        monkeypatch.setattr("agentmesh.tui.requests.presenter.GRACE", 0.0)
        await press(show, "escape")
        assert asked(show) == [Call("interrupt")]

    puppet(scene)


def test_go_there_shows_the_asker_and_keeps_the_request():
    async def scene(show: Show) -> None:
        await show.board(face("alpha"), asking("beta", TWO))
        await opened(show)
        await press(show, "g")
        await closed(show)
        assert show.in_view == "beta"
        assert "needs approval: bash" in show.text
        assert "F2 answers" in show.text

    assert puppet(scene).calls == []


def test_what_is_being_typed_is_not_taken_away():
    async def scene(show: Show) -> None:
        await show.type("my dra")
        await show.board(asking("alpha"))
        await show.sees("! alpha asks: bash: git push", "F2 answers")
        await show.type("ft y")
        assert isinstance(show.app.screen, MainScreen)
        assert show.typed == "my draft y"
        await press(show, "f2")
        await opened(show)
        await press(show, "escape")
        await closed(show)
        assert show.typed == "my draft y"

    assert puppet(scene).calls == []


def test_it_opens_by_itself_as_soon_as_nothing_is_typed(monkeypatch):
    async def scene(show: Show) -> None:
        await show.type("hello")
        await show.board(asking("alpha"))
        await show.sees("! alpha asks")
        await press(show, "enter")
        await opened(show)

    assert [call.name for call in puppet(scene).calls] == ["say"]


def test_a_key_of_the_last_moment_holds_a_dialog_back(monkeypatch):
    monkeypatch.setattr("agentmesh.tui.input.quiet_input.QUIET", 3600.0)

    async def scene(show: Show) -> None:
        await press(show, "x", "backspace")
        await show.board(asking("alpha"))
        await show.sees("! alpha asks")
        assert isinstance(show.app.screen, MainScreen)

    puppet(scene)


def test_another_dialog_is_not_covered():
    async def scene(show: Show) -> None:
        await press(show, "f1")
        await show.sees("Commands")
        await show.board(asking("alpha"))
        assert not isinstance(show.app.screen, RequestDialog)
        await press(show, "escape")
        await opened(show)

    puppet(scene)


def test_answered_elsewhere_it_closes_and_says_who_and_keeps_what_was_typed():
    question = request("alpha", question="Why?")
    by: dict[str, Any] = {"answer": {"text": "so"}, "state": "answered", "answered_by": "ada (agentmesh answer)"}

    async def scene(show: Show) -> None:
        await show.board(asking("alpha", question))
        dialog = await opened(show)
        await show.until(lambda: dialog.focused)
        await press(show, *"bec")
        await show.board(face("alpha"))
        await show.post(RequestSettled(request("alpha", question="Why?", **by)))
        await closed(show)
        await show.sees("alpha (question) was answered by ada (agentmesh answer): so")
        assert "need" not in show.lines[-2]
        await press(show, "up")
        assert show.typed == "bec"

    assert puppet(scene).calls == []


def test_one_of_several_that_ends_leaves_the_others():
    async def scene(show: Show) -> None:
        await show.board(asking("alpha", ONE), asking("beta", TWO))
        await opened(show)
        await show.board(face("alpha"), asking("beta", TWO))
        await show.sees("beta asks")
        await show.until(lambda: "1 of 2" not in show.text)

    puppet(scene)


def test_an_answer_that_fails_is_told_and_can_be_given_again():
    async def scene(show: Show) -> None:
        await show.board(asking("alpha", ONE))
        await opened(show)
        await press(show, "y")
        await closed(show)
        await show.until(lambda: show.app.calls)  # type: ignore[attr-defined]
        call = show.app.calls[-1]  # type: ignore[attr-defined]
        await show.post(ActionDone(call, id_of("alpha"), Failed("the database is away", "Try again.")))
        await show.sees("the database is away")
        await press(show, "f2")
        await opened(show)
        await press(show, "y")
        await closed(show)
        await show.until(lambda: len(show.app.calls) == 2)  # type: ignore[attr-defined]
        await show.post(ActionDone(show.app.calls[-1], id_of("alpha"), Done("Allowed.")))  # type: ignore[attr-defined]

    assert len(answers(puppet(scene))) == 2


def test_wrong_json_stays_in_the_field_and_says_why():
    async def scene(show: Show) -> None:
        await show.board(asking("alpha", request("alpha", "fetch", {"n": 1})))
        await opened(show)
        await press(show, "e", "x", "enter")
        await show.sees("This is no JSON")
        await press(show, "backspace", "enter")
        await closed(show)

    assert answers(puppet(scene)) == [{"decision": "once"}]


def writing(pattern: str = "src/**", **more: Any) -> Any:
    more = {"rules": [{"effect": "allow", "tool": "write", "pattern": pattern}], **more}
    return request("alpha", "edit", {"path": "src/a.py", "old": "a", "new": "b"}, **more)


@pytest.mark.parametrize("keys", [["s", "s"], ["down", "down", "down", "enter", "enter"]])
def test_accepting_edits_from_now_on_allows_this_one_and_sets_the_mode(keys):
    async def scene(show: Show) -> None:
        await show.board(asking("alpha", writing()))
        await opened(show)
        await show.sees("s accept edits", "from now on, by all agents, in the working directory")
        await press(show, keys[0], *keys[1:-1])
        await show.sees("Accept all edits in the working directory? Again accepts")
        await press(show, keys[-1])
        await closed(show)

    app = puppet(scene)
    assert answers(app) == [{"decision": "once"}]
    assert app.calls[-1] == Call("mode", ("edits",))


def test_accepting_edits_is_asked_again_and_can_be_left():
    async def scene(show: Show) -> None:
        await show.board(asking("alpha", writing()))
        await opened(show)
        await press(show, "s", "escape")
        await show.sees("Esc later")
        await press(show, "s", "a", "escape", "s", "y")
        await closed(show)

    app = puppet(scene)
    assert answers(app) == [{"decision": "once"}]
    assert len(app.calls) == 1


@pytest.mark.parametrize("shown", [writing("/etc/**"), writing("/x"), request("alpha"), writing(rules=[])])
def test_edits_are_accepted_only_where_the_mode_covers_them(shown):
    assert "edits" not in [option.name for option in options(shown)]


def test_a_reason_is_kept_while_a_person_looks_again():
    async def scene(show: Show) -> None:
        await show.board(asking("alpha"))
        dialog = await opened(show)
        await press(show, "n")
        await show.sees("Why not? The agent reads it", "Enter refuses, also without a reason")
        await press(show, *"why", "escape")
        await show.sees("Esc later")
        await press(show, "escape")
        await closed(show)
        await press(show, "f2")
        dialog = await opened(show)
        await press(show, "n")
        await show.until(lambda: dialog.focused)
        await press(show, *"so", "enter")
        await closed(show)

    assert answers(puppet(scene)) == [{"decision": "no", "reason": "whyso"}]


def test_a_rule_that_nobody_could_make_is_not_offered():
    async def scene(show: Show) -> None:
        await show.board(asking("alpha", request("alpha", rules=[])))
        await opened(show)
        assert "always" not in show.text
        await press(show, "a")
        await press(show, "y")
        await closed(show)

    assert answers(puppet(scene)) == [{"decision": "once"}]


def test_a_long_command_scrolls_and_the_choices_stay_in_sight():
    command = "\n".join(f"echo line {n}" for n in range(200))

    async def scene(show: Show) -> None:
        await show.board(asking("alpha", request("alpha", arguments={"command": command})))
        await opened(show)
        await show.sees("echo line 0", "y once", "go there", "Esc later")
        part = show.app.screen.query_one("#proposal", VerticalScroll)
        await show.sees(f"▾ {part.max_scroll_y} more lines · PgDn")
        await press(show, "pagedown")
        await show.until(lambda: part.scroll_y)
        await show.sees(f"▾ {part.max_scroll_y - part.scroll_y:.0f} more lines · PgDn")
        await press(show, "ctrl+end")
        await show.sees("echo line 199", "y once")
        await show.until(lambda: "more lines" not in show.text)

    puppet(scene)


@pytest.mark.parametrize("size", [(80, 11), (40, 10)])
def test_the_lowest_screen_says_among_the_keys_how_much_is_hidden(size):
    command = "\n".join(f"echo line {n}" for n in range(20))

    async def scene(show: Show) -> None:
        await show.board(asking("alpha", request("alpha", arguments={"command": command})))
        await opened(show)
        part = show.app.screen.query_one("#proposal", VerticalScroll)
        await show.sees("y once", "n no", "Esc later", f"▾ {part.max_scroll_y} more lines · PgDn")
        await press(show, "pagedown")
        await show.until(lambda: part.scroll_y)
        await show.sees(f"▾ {part.max_scroll_y - part.scroll_y:.0f} more line")
        await press(show, "ctrl+end")
        await show.sees("echo line 19", "y once")
        await show.until(lambda: "more line" not in show.text)

    puppet(scene, size=size)


@pytest.mark.parametrize("size", [(40, 10), (40, 12), (60, 14)])
def test_a_low_screen_has_room_for_the_answers(size):
    long = {"command": "pytest -q tests && echo done > log.txt", "timeout": 120}
    rules = [{"effect": "allow", "tool": "bash", "pattern": one} for one in ("pytest *", "> log.txt")]

    async def scene(show: Show) -> None:
        await show.board(asking("alpha", request("alpha", arguments=long, rules=rules)))
        await opened(show)
        await show.sees("alpha asks", "pytest -q", "y once", "a always", "Esc")
        part = show.app.screen.query_one("#proposal", VerticalScroll)
        await show.until(lambda: ("more line" in show.text) == (part.max_scroll_y > 0))
        await press(show, "a")
        await show.sees("pytest -q", "bash(> log.txt)", "Enter asks once more")

    puppet(scene, size=size)


def test_the_bell_rings_for_what_is_new_unless_it_is_switched_off(monkeypatch):
    rung: list[str] = []
    monkeypatch.setattr(Puppet, "bell", lambda _self: rung.append("bell"))

    async def scene(show: Show) -> None:
        await show.board(asking("alpha", ONE))
        await opened(show)
        await show.board(asking("alpha", ONE))
        assert len(rung) == 1
        show.app.main.presenter.rings = False
        await show.board(asking("alpha", ONE), asking("beta", TWO))
        assert len(rung) == 1

    puppet(scene)


def test_the_tree_and_the_picker_mark_who_asks():
    async def scene(show: Show) -> None:
        await show.type("x")
        await show.board(asking("alpha"), face("beta"))
        await press(show, "ctrl+t")
        await show.sees("├ ! alpha needs approval")
        await press(show, "ctrl+p")
        await show.sees("! alpha  needs approval: bash")

    puppet(scene, size=(110, 24))


def test_nothing_to_answer_says_so():
    async def scene(show: Show) -> None:
        await press(show, "f2")
        assert "No agent asks you anything" in show.text

    puppet(scene)
