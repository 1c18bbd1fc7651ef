"""What is typed about trees, and the question before files are written."""

from __future__ import annotations

import pytest

from agentmesh.domain.errors import UsageError
from agentmesh.tui.commands.calls import Call, Done, Problem, Question
from agentmesh.tui.commands.messages import ActionDone
from agentmesh.tui.commands.parse import parse
from agentmesh.tui.commands.trees import _merge_of, _parts_of
from tests.tui.piloting import Show, asked, puppet


@pytest.mark.parametrize(
    ("typed", "args"),
    [
        ("/fork --own", ("--own",)),
        ("/fork --own coder do it", ("--own", "coder", "do it")),
        ("/fork --own @12 coder", ("--own", "@12", "coder")),
        ("/fork coder --own", ("coder", "--own")),
        ("/rewind", ()),
        ("/rewind before lunch", ("before lunch",)),
        ("/rewind @", ("@",)),
        ("/rewind @7 --files", ("@7", "--files")),
        ("/undo", ()),
        ("/undo a.txt 'b c.txt'", ("a.txt 'b c.txt'",)),
        ("/merge", ()),
        ("/merge coder --check make test", ("coder", "--check make test")),
    ],
)
def test_what_is_typed_becomes_a_call(typed, args):
    call = parse(typed)
    assert isinstance(call, Call)
    assert call.args == args


def test_a_row_that_is_none_is_refused():
    assert isinstance(parse("/rewind @x"), Problem)


def test_merge_reads_its_options_with_and_without_an_agent():
    assert _merge_of(()) == (None, False, None)
    assert _merge_of(("coder",)) == ("coder", False, None)
    assert _merge_of(("coder", "--check make test")) == ("coder", False, "make test")
    assert _merge_of(("--check", "make test")) == (None, False, "make test")
    assert _merge_of(("--preview",)) == (None, True, None)
    for wrong in ("--check", "--preview now", "please"):
        with pytest.raises(UsageError):
            _merge_of(("coder", wrong))


def test_undo_reads_paths_and_options():
    assert _parts_of(()) == (True, True, None)
    assert _parts_of(("--files",)) == (True, False, None)
    assert _parts_of(("--conversation",)) == (False, True, None)
    assert _parts_of(("a.txt 'b c.txt'",)) == (True, False, ["a.txt", "b c.txt"])
    for wrong in ("--all", "'a", "a.txt --conversation"):
        with pytest.raises(UsageError):
            _parts_of((wrong,))


def test_a_question_is_asked_and_a_yes_goes_on_with_what_was_agreed_to():
    async def scene(show: Show) -> None:
        call = Call("merge", ("coder",), "/merge coder")
        question = Question("Merge coder into ~/shop?", "It writes 1 file: a.txt.", "merge", ("--yes", "coder"))
        in_view = show.app.main.navigation.in_view
        assert in_view
        show.app.post_message(ActionDone(call, in_view, Done(question=question)))
        await show.sees("Merge coder into ~/shop?", "It writes 1 file: a.txt.")
        await show.until(lambda: show.app.screen.check_action("answer", ()))
        await show.press("y")
        await show.until(lambda: asked(show) and asked(show)[-1].args == ("--yes", "coder"))

    puppet(scene)
