"""The list of all that waits for a person: what shares a line, what is selected, and what one key answers."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta
from typing import Any

import pytest
from textual.containers import VerticalScroll

from agentmesh.domain.errors import RequestOver
from agentmesh.tui.commands import permissions
from agentmesh.tui.commands.calls import ANSWER, Failed
from agentmesh.tui.commands.messages import ActionDone
from agentmesh.tui.input.help import Help
from agentmesh.tui.requests.dialog import RequestDialog
from agentmesh.tui.requests.queue import RequestQueue, grouped
from agentmesh.tui.requests.request_list import RequestList
from agentmesh.tui.requests.request_text import group_cells, group_in_full
from agentmesh.tui.screen import MainScreen
from tests.tui.faces import NOW, asking, face, id_of, request
from tests.tui.piloting import Puppet, Show, asked, puppet

PYTEST = [{"effect": "allow", "tool": "bash", "pattern": "pytest *"}]


def run_tests(agent: str, number: int = 1, **more: Any) -> Any:
    command = {"command": f"pytest -q {agent}.py"}
    return request(agent, arguments=command, rules=PYTEST, number=number, **more)


def writing(agent: str, path: str = "src/a") -> Any:
    rules = [{"effect": "allow", "tool": "write", "pattern": "src/**"}]
    return request(agent, "write", {"path": path, "content": "x"}, rules=rules)


FAN = tuple(run_tests(f"t{n}", n) for n in range(1, 8))
PUSH = request("coder", number=9)
WHICH = request("planner", question="Which [b]colour[/b]?", options=["red"], number=10)


@pytest.fixture(autouse=True)
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentmesh.tui.requests.guarded_dialog.GRACE", 0.0)
    monkeypatch.setattr("agentmesh.tui.requests.guarded_dialog.BURST", 0.05)


def test_agents_with_the_same_rules_share_a_line():
    groups = grouped([*FAN, PUSH, WHICH])
    assert [len(group.requests) for group in groups] == [7, 1, 1]
    assert [group.can_select for group in groups] == [True, True, False]
    who, what, waited = group_cells(groups[0], NOW + timedelta(seconds=61))
    assert (who, what, waited) == ("7 agents", "bash(pytest *)", "1 min 00 s")
    assert group_in_full(groups[0]).splitlines()[6] == "t7: pytest -q t7.py"
    assert group_cells(groups[1], NOW)[:2] == ("coder", "bash: git push")


def test_edits_questions_and_calls_without_a_rule_have_lines_of_their_own():
    without = [request(name, rules=[]) for name in ("a", "b")]
    questions = [request(name, question="Why?") for name in ("c", "d")]
    assert len(grouped([writing("e"), writing("f"), *without, *questions])) == 6


def test_the_same_request_of_several_agents_is_named_itself():
    same = [request(name, number=n) for n, name in enumerate(("a", "b"), 1)]
    (group,) = grouped([*same, request("a", number=3)])
    assert group_cells(group, NOW)[:2] == ("2 agents", "bash: git push (3×)")


def board_of(*requests: Any) -> list[Any]:
    return [asking(one.name, one) for one in requests]


async def opened(show: Show) -> RequestList:
    await show.press("f2")
    await show.until(lambda: isinstance(show.app.screen, RequestList) and show.app.screen.takes_keys)
    assert isinstance(show.app.screen, RequestList)
    return show.app.screen


async def press(show: Show, *keys: str) -> None:
    for key in keys:
        await show.press(key)
        await show.until(lambda: getattr(show.app.screen, "_typing", None) is None)


async def listing(show: Show, *requests: Any) -> RequestList:
    show.app.main.presenter.opens_dialogs = False
    await show.board(*board_of(*requests))
    return await opened(show)


def answered(app: Puppet) -> list[tuple[set[str], dict[str, Any]]]:
    return [(set(call.args[0].split()), json.loads(call.args[1])) for call in app.calls if call.name == ANSWER]


def ids(*requests: Any) -> set[str]:
    return {str(one.id) for one in requests}


@pytest.mark.parametrize("size", [(80, 24), (40, 12), (160, 50)])
def test_the_list_says_which_agents_wait_for_what_and_how_long(size):
    async def scene(show: Show) -> None:
        await listing(show, *FAN, PUSH, WHICH)
        await show.sees("9 requests wait", "7 agents", "coder", "planner", "t1: pytest -q t1.py", "Esc later")
        await press(show, "down")
        await show.sees("root › coder · git push")
        await press(show, "down", "down")
        await show.sees("t1: pytest -q t1.py")

    puppet(scene, size=size)


def test_a_long_request_is_scrolled():
    long = request("one", arguments={"command": "\n".join(f"echo {n}" for n in range(200))}, number=1)

    async def scene(show: Show) -> None:
        await listing(show, long, PUSH)
        part = show.app.screen.query_one("#full", VerticalScroll)
        await press(show, "pagedown")
        await show.until(lambda: part.scroll_y > 0)
        await press(show, "pageup")
        await show.until(lambda: part.scroll_y == 0)
        await press(show, "down", "pagedown", "pageup")
        await show.sees("git push")

    puppet(scene)


def test_the_help_opens_over_the_list_and_leaves_its_selection():
    async def scene(show: Show) -> None:
        shown = await listing(show, *FAN, PUSH)
        await press(show, "space", "f1")
        await show.until(lambda: isinstance(show.app.screen, Help))
        await press(show, "n", "escape")
        await show.until(lambda: show.app.screen is shown)
        await show.sees("[x] 7 agents", "[ ] coder", "y allows 7 requests")

    assert puppet(scene).calls == []


def test_selected_requests_are_allowed_after_a_second_question():
    async def scene(show: Show) -> None:
        await listing(show, *FAN, PUSH, WHICH)
        await press(show, "y")
        await show.sees("Nothing is selected: Space selects")
        await press(show, "space")
        await show.sees("[x] 7 agents", "[ ] coder", "y allows 7 requests")
        await press(show, "y")
        await show.sees("Allow 7 requests? y again allows each once")
        assert asked(show) == []
        await press(show, "y")
        await show.until(lambda: isinstance(show.app.screen, MainScreen))

    assert answered(puppet(scene)) == [(ids(*FAN), {"decision": "once"})]


def test_all_are_selected_by_a_key_and_refused_with_a_reason():
    async def scene(show: Show) -> None:
        await listing(show, *FAN, PUSH, WHICH)
        await press(show, "a", "n")
        await show.sees("Each of these agents reads it", "Enter refuses 8 requests")
        await press(show, *"later", "enter")
        await show.until(lambda: isinstance(show.app.screen, MainScreen))

    assert answered(puppet(scene)) == [(ids(*FAN, PUSH), {"decision": "no", "reason": "later"})]


@pytest.mark.parametrize(
    "keys",
    [
        ["space", "y", "escape", "y"],
        ["space", "y", "down", "y"],
        ["space", "y", "enter"],
        ["space", "y", "space", "y"],
        ["space", "y", "n"],
        ["space", "n", "escape", "y"],
        ["a", "a", "y", "y"],
        ["down", "down", "space", "y", "y"],
        ["enter"],
        ["1", "x", "y", "y"],
    ],
)
def test_no_other_keys_answer_anything(keys):
    async def scene(show: Show) -> None:
        await listing(show, *FAN, PUSH, WHICH)
        await press(show, *keys)

    assert puppet(scene).calls == []


@pytest.mark.parametrize("word", ["yy", "yes", "always", "no", "nay"])
def test_a_word_goes_to_the_input_and_answers_nothing(word, monkeypatch):
    monkeypatch.setattr("agentmesh.tui.requests.guarded_dialog.BURST", 3600.0)

    async def scene(show: Show) -> None:
        await listing(show, *FAN)
        await show.press("space", *word)
        await show.until(lambda: isinstance(show.app.screen, MainScreen))
        assert show.typed == word

    assert puppet(scene).calls == []


def test_one_is_opened_and_answered_alone_as_ever():
    async def scene(show: Show) -> None:
        await listing(show, *FAN, PUSH)
        await press(show, "down", "enter")
        await show.until(lambda: isinstance(show.app.screen, RequestDialog) and show.app.screen.takes_keys)
        await show.sees("coder asks: may it use bash?", "8 of 8")
        await press(show, "f2")
        await show.until(lambda: isinstance(show.app.screen, RequestList) and show.app.screen.takes_keys)
        await show.sees("❯ [ ] coder")
        await press(show, "enter")
        await show.until(lambda: isinstance(show.app.screen, RequestDialog) and show.app.screen.takes_keys)
        await press(show, "y")
        await show.until(lambda: isinstance(show.app.screen, MainScreen))

    assert answered(puppet(scene)) == [(ids(PUSH), {"decision": "once"})]


def test_what_is_settled_elsewhere_leaves_the_list_and_takes_the_question_back():
    async def scene(show: Show) -> None:
        await listing(show, *FAN, PUSH)
        await press(show, "space", "y")
        await show.sees("Allow 7 requests?")
        await show.board(*board_of(*FAN[1:], PUSH))
        await show.sees("7 requests wait", "y allows 6 requests")
        await show.board(*board_of(*FAN[1:], run_tests("t9", 11), PUSH))
        await show.sees("[-] 7 agents")
        await press(show, "y", "y")
        await show.until(lambda: isinstance(show.app.screen, MainScreen))

    assert answered(puppet(scene)) == [(ids(*FAN[1:]), {"decision": "once"})]


def test_the_list_closes_when_nothing_waits():
    async def scene(show: Show) -> None:
        await listing(show, *FAN)
        await show.board(*(face(one.name) for one in FAN))
        await show.until(lambda: isinstance(show.app.screen, MainScreen))

    assert puppet(scene).calls == []


def test_an_answer_to_several_that_fails_leaves_all_waiting():
    async def scene(show: Show) -> None:
        await listing(show, *FAN)
        await press(show, "space", "y", "y")
        await show.until(lambda: asked(show))
        await show.post(ActionDone(asked(show)[-1], id_of("t1"), Failed("the database is away")))
        queue: RequestQueue = show.app.main.presenter.requests
        assert len(queue.waiting) == 7

    puppet(scene)


def test_space_goes_on_to_the_next_line_as_on_the_board():
    async def scene(show: Show) -> None:
        await listing(show, *FAN, PUSH)
        await press(show, "space")
        await show.sees("  [x] 7 agents", "❯ [ ] coder")
        await press(show, "space", "space")
        await show.sees("  [x] 7 agents", "❯ [ ] coder")

    puppet(scene)


def test_a_click_selects():
    async def scene(show: Show) -> None:
        shown = await listing(show, *FAN, PUSH)
        await show.pilot.click(list(shown.query("GroupLine"))[1])
        await show.sees("[x] coder", "[ ] 7 agents")

    puppet(scene)


def test_a_list_of_200_is_drawn_and_moves():
    many = [request(f"a{n}", number=n, arguments={"command": f"rm {n}"}, rules=[]) for n in range(200)]

    async def scene(show: Show) -> None:
        await listing(show, *many)
        await show.sees("200 requests wait", "Esc later")
        await press(show, "up")
        await show.sees("❯ [ ] a199")

    puppet(scene)


class Store:
    """Answers requests; some of them somebody else has answered."""

    def __init__(self, *over: str) -> None:
        self.over, self.answers = over, list[Any]()

    def run_persistently(self, _function: Any, request_id: uuid.UUID, said: Any, _by: str) -> None:
        if str(request_id) in self.over:
            raise RequestOver("late")
        self.answers.append((str(request_id), said))


@pytest.mark.parametrize(
    ("decision", "over", "text"),
    [
        ("once", 0, "Allowed 3 requests."),
        ("no", 0, "Refused 3 requests."),
        ("once", 2, "Allowed 1 request; 2 others had an answer already."),
    ],
)
def test_several_are_answered_with_the_same_words(decision, over, text, monkeypatch):
    names = [str(uuid.UUID(int=n)) for n in range(3)]
    store = Store(*names[:over])
    context: Any = store
    store.mesh = type("M", (), {"place": type("P", (), {"os_user": "ada"})})  # type: ignore[attr-defined]
    store.ensure_served = lambda: None  # type: ignore[attr-defined]
    store.run_idempotent = lambda *_: request("a", answer={"decision": "no"}, answered_by="eve")  # type: ignore[attr-defined]
    done = permissions.answer(context, " ".join(names), json.dumps({"decision": decision}))
    assert done.text == text
    assert store.answers == [(name, {"decision": decision}) for name in names[over:]]
