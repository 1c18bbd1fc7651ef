from __future__ import annotations

import threading
from typing import Any, Literal
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from agentmesh.domain.errors import BadAnswer, RequestOver, UnknownRequest
from agentmesh.domain.permissions import Decision, Permissions, Rule
from agentmesh.domain.states import PermissionMode
from agentmesh.store import agents, requests, sessions
from tests.fixtures.engine import Rig, call, do, say, until, when


@pytest.fixture
def asking(rig: Rig) -> Rig:
    """A session in which writing and commands ask, and somebody may answer."""
    rig.root = rig.session(mode=PermissionMode.ASK)
    return rig


def session_of(rig: Rig) -> Any:
    return rig.one("select session_id from agentmesh.agents where id = %s", rig.root)


def column(rig: Rig, name: Literal["id", "state", "answered_by"]) -> list[Any]:
    """Return this column of all requests of the session."""
    query = f"select {name} from agentmesh.v_requests where session_id = %s order by asked_at, id"
    return [row[0] for row in rig.conn.execute(query, [session_of(rig)])]


def pending(rig: Rig, count: int = 1) -> list[Any]:
    """Wait until so many requests wait, and return them."""

    def there() -> list[Any] | None:
        found = rig.db.run(requests.pending, session_of(rig))
        return found if len(found) == count else None

    return list(until(there, f"{count} requests"))


def answer(rig: Rig, request: UUID, **words: Any) -> None:
    rig.db.run(requests.answer, request, words, "tester")


def test_what_must_be_asked_waits_for_a_person_and_runs_after_once(asking: Rig):
    asking.script("root", do(call("bash", command="touch made")), say("made"))
    asking.worker()
    asking.prompt()
    (request,) = pending(asking)
    assert (request.kind, request.tool, request.arguments["command"]) == ("approval", "bash", "touch made")
    assert request.name == "root"
    assert request.reason
    assert not (asking.workdir / "made").exists()
    assert until(lambda: asking.one("select activity from agentmesh.v_agents where id = %s", asking.root)) is not None
    until(
        lambda: (
            asking.one("select activity from agentmesh.v_agents where id = %s", asking.root) == "needs approval: bash"
        )
    )
    answer(asking, request.id, decision="once")
    asking.rest()
    assert (asking.workdir / "made").exists()
    assert asking.last() == ("made", None)
    assert "error" not in asking.results()[0]


def test_no_is_the_result_of_the_call_with_its_reason(asking: Rig):
    asking.script("root", do(call("bash", command="touch made")), say("not made"))
    asking.worker()
    asking.prompt()
    (request,) = pending(asking)
    answer(asking, request.id, decision="no", reason="write a test first")
    asking.rest()
    refused = asking.results()[0]
    assert refused["error"] == "the user refused this call: write a test first"
    assert refused["hint"].startswith("Heed what the user says")
    assert not (asking.workdir / "made").exists()
    assert asking.last() == ("not made", None)


def test_arguments_may_be_edited_and_the_model_is_told(asking: Rig):
    asking.script("root", do(call("bash", command="touch made")), say("done"))
    asking.worker()
    asking.prompt()
    (request,) = pending(asking)
    answer(asking, request.id, decision="once", arguments={"command": "touch other"})
    asking.rest()
    assert (asking.workdir / "other").exists()
    assert not (asking.workdir / "made").exists()
    assert "touch other" in asking.results()[0]["note"]


def test_edited_arguments_that_cannot_be_read_are_an_error_of_the_call(asking: Rig):
    asking.script("root", do(call("bash", command="touch made")), say("done"))
    asking.worker()
    asking.prompt()
    (request,) = pending(asking)
    answer(asking, request.id, decision="once", arguments={"timeout": "x"})
    asking.rest()
    assert "bash" in asking.results()[0]["error"]


def test_all_calls_of_a_step_are_asked_about_at_once_and_run_in_their_order(asking: Rig):
    calls = [call("write", path="a", content="1"), call("bash", command="cat a > b"), call("read", path="b")]
    asking.script("root", do(*calls), say("done"))
    asking.worker()
    asking.prompt()
    first, second = pending(asking, 2)
    assert [first.tool, second.tool] == ["write", "bash"]
    answer(asking, second.id, decision="once")
    pending(asking, 1)
    assert not (asking.workdir / "b").exists(), "the later call runs after the earlier"
    answer(asking, first.id, decision="once")
    asking.rest()
    assert [result.get("error") for result in asking.results()] == [None, None, None]
    assert "1" in str(asking.results("read"))


def test_always_settles_what_it_covers_for_every_agent_of_the_session(asking: Rig):
    asking.script("root", do(call("bash", command="git init x")), do(call("bash", command="git init z")), say("done"))
    asking.script("child", do(call("bash", command="git init y")), say("done"))
    asking.fork("child", "go")
    asking.worker()
    asking.prompt()
    found = pending(asking, 2)
    mine = next(request for request in found if request.name == "root")
    assert mine.rules == [{"effect": "allow", "tool": "bash", "pattern": "git init *"}]
    answer(asking, mine.id, decision="always")
    asking.rest()
    asking.rest()
    assert [(asking.workdir / name).is_dir() for name in "xyz"] == [True] * 3
    by_id = dict(zip(column(asking, "id"), column(asking, "answered_by"), strict=True))
    assert [by for request, by in by_id.items() if request != mine.id] == ["a rule or the mode"]
    assert asking.db.run(requests.rules, session_of(asking)) == mine.rules


def test_a_rule_of_always_is_no_leave_for_another_command(asking: Rig):
    asking.script(
        "root", do(call("bash", command="git init x")), do(call("bash", command="git init y && touch z")), say("ok")
    )
    asking.worker()
    asking.prompt()
    (request,) = pending(asking)
    answer(asking, request.id, decision="always")
    until((asking.workdir / "x").exists)
    (request,) = pending(asking)
    assert request.arguments["command"] == "git init y && touch z"
    assert [rule["pattern"] for rule in request.rules] == ["touch z"]
    answer(asking, request.id, decision="no")
    asking.rest()


def test_always_with_rules_of_ones_own_allows_these_instead(asking: Rig):
    asking.script("root", do(call("bash", command="git init x")), do(call("bash", command="git init y")), say("ok"))
    asking.worker()
    asking.prompt()
    (request,) = pending(asking)
    narrower = [{"effect": "allow", "tool": "bash", "pattern": "git init x *"}]
    answer(asking, request.id, decision="always", rules=narrower)
    until((asking.workdir / "x").exists)
    (again,) = until(lambda: [r for r in asking.db.run(requests.pending, session_of(asking)) if r.id != request.id])
    assert again.arguments["command"] == "git init y"
    assert asking.db.run(requests.rules, session_of(asking)) == narrower
    answer(asking, again.id, decision="no")
    asking.rest()


def test_forgotten_rules_ask_again(asking: Rig):
    asking.script("root", do(call("bash", command="touch x")), do(call("bash", command="touch x")), say("ok"))
    asking.worker()
    asking.prompt()
    (request,) = pending(asking)
    answer(asking, request.id, decision="once")
    (again,) = until(lambda: [r for r in asking.db.run(requests.pending, session_of(asking)) if r.id != request.id])
    answer(asking, again.id, decision="always")
    asking.rest()
    assert asking.db.run(requests.forget_rules, session_of(asking), 1) == 1
    assert asking.db.run(requests.rules, session_of(asking)) == []
    assert asking.db.run(requests.forget_rules, session_of(asking)) == 0


def test_a_change_of_the_mode_settles_what_waits(asking: Rig):
    asking.script("root", do(call("write", path="a", content="1"), call("bash", command="touch b")), say("done"))
    asking.worker()
    asking.prompt()
    pending(asking, 2)
    asking.db.run(sessions.set_mode, session_of(asking), PermissionMode.EDITS)
    (left,) = pending(asking, 1)
    assert left.tool == "bash"
    until((asking.workdir / "a").exists)
    asking.db.run(sessions.set_mode, session_of(asking), PermissionMode.ALL)
    asking.rest()
    assert (asking.workdir / "b").exists()


def test_a_request_survives_the_worker_and_is_answered_while_nobody_runs_it(asking: Rig):
    asking.script("root", do(call("bash", command="touch made")), say("made"))
    process = asking.process()
    asking.prompt()
    (request,) = pending(asking)
    process.process.kill()
    process.join()
    answer(asking, request.id, decision="once")
    asking.bury(process.worker_id)
    asking.worker()
    asking.rest()
    assert (asking.workdir / "made").exists()
    assert len([kind for kind in asking.kinds() if kind == "tool_result"]) == 1


def test_a_pending_request_is_taken_over_unanswered(asking: Rig):
    asking.script("root", do(call("bash", command="touch made")), say("made"))
    process = asking.process()
    asking.prompt()
    (request,) = pending(asking)
    process.process.kill()
    process.join()
    asking.bury(process.worker_id)
    parts = asking.worker()
    until(lambda: parts.worker.idle_since is None)
    assert [r.id for r in pending(asking)] == [request.id], "it is not asked twice"
    answer(asking, request.id, decision="once")
    asking.rest()
    assert (asking.workdir / "made").exists()


def test_an_answer_is_found_without_its_notification(asking: Rig):
    asking.script("root", do(call("bash", command="touch made")), say("made"))
    asking.worker(deaf=True, tick=0.1)
    asking.prompt()
    (request,) = pending(asking)
    answer(asking, request.id, decision="once")
    asking.rest()
    assert (asking.workdir / "made").exists()


def test_an_agent_that_waits_for_a_person_holds_no_thread(asking: Rig):
    asking.script("root", do(call("bash", command="touch made")), say("made"))
    asking.script("child", say("I could work"))
    asking.worker(concurrency=1)
    asking.prompt()
    (request,) = pending(asking)
    asking.fork("child", "go")
    until(lambda: asking.status("child") == "idle")
    assert asking.last("child") == ("I could work", None)
    answer(asking, request.id, decision="no")
    asking.rest()


def test_a_question_is_answered_in_words(asking: Rig):
    asking.script("root", do(call("ask_user", question="Which colour?", options=["red", "blue"])), say("so be it"))
    asking.worker()
    asking.prompt()
    (request,) = pending(asking)
    assert (request.kind, request.question, request.options) == ("question", "Which colour?", ["red", "blue"])
    until(lambda: asking.one("select activity from agentmesh.v_agents where id = %s", asking.root) == "asking")
    answer(asking, request.id, text="neither")
    asking.rest()
    assert asking.results() == [{"answer": "neither"}]


def test_where_nobody_can_answer_nothing_is_asked(asking: Rig):
    asking.db.run(requests.set_attended, session_of(asking), False)
    asking.script("root", do(call("ask_user", question="Which?"), call("bash", command="touch made")), say("done"))
    asking.worker()
    asking.prompt()
    asking.rest()
    question, bash = asking.results()
    assert question["error"] == "nobody is here to answer"
    assert bash["refused"] is True
    assert bash["allow_with"] == "--permission-mode all"


def offered(asking: Rig, agent: str = "root") -> list[set[str]]:
    """Return the names of the tools in each request of an agent."""
    return [{tool["function"]["name"] for tool in request.body["tools"]} for request in asking.requests(agent)]


def test_where_nobody_is_the_question_is_not_offered_to_an_agent_and_its_forks(asking: Rig):
    asking.db.run(requests.set_attended, session_of(asking), False)
    asking.script(
        "root", do(call("fork", name="child", prompt="x")), do(call("wait", from_agents=["child"])), say("ok")
    )
    asking.worker()
    asking.prompt()
    asking.rest()
    root, child = offered(asking), offered(asking, "child")
    assert all("ask_user" not in names and "bash" in names for names in (*root, *child))
    first, made = asking.requests()[0].raw, asking.requests("child")[0].raw
    assert made.startswith(first.rstrip(b"]}"))


def test_once_a_person_is_there_the_question_is_offered(asking: Rig):
    def come(_view):
        asking.db.run(requests.set_attended, session_of(asking), True)
        return do(call("bash", command="ls"))

    asking.db.run(requests.set_attended, session_of(asking), False)
    asking.script("root", come, say("ok"))
    asking.worker()
    asking.prompt()
    asking.rest()
    assert ["ask_user" in names for names in offered(asking)] == [False, True]


def test_when_the_last_person_leaves_what_waits_is_refused(asking: Rig):
    asking.script("root", do(call("ask_user", question="Which?"), call("bash", command="touch made")), say("done"))
    asking.worker()
    asking.prompt()
    pending(asking, 2)
    asking.db.run(requests.set_attended, session_of(asking), False)
    asking.rest()
    assert ["error" in result for result in asking.results()] == [True, True]
    assert set(column(asking, "state")) == {"cancelled"}


def test_a_denial_cannot_be_approved(asking: Rig):
    rules = Permissions.of([Rule(Decision.DENY, "bash", "touch *")]).to_json()
    asking.conn.execute("update agentmesh.agents set permissions = %s where id = %s", [Jsonb(rules), asking.root])
    asking.script("root", do(call("bash", command="mkdir d")), do(call("bash", command="touch made")), say("done"))
    asking.worker()
    asking.prompt()
    (request,) = pending(asking)
    answer(asking, request.id, decision="once", arguments={"command": "touch made"})
    asking.rest()
    assert ["denies" in result["error"] for result in asking.results()] == [True, True]
    assert not (asking.workdir / "made").exists()


@pytest.mark.parametrize("end", ["interrupt", "kill"])
def test_the_end_of_the_turn_cancels_what_waits(asking: Rig, end: str):
    asking.script("child", do(call("bash", command="touch made"), call("ask_user", question="Which?")), say("done"))
    asking.fork("child", "go")
    asking.worker()
    found = pending(asking, 2)
    if end == "interrupt":
        asking.interrupt("child")
        until(lambda: asking.status("child") == "idle")
    else:
        asking.kill("child")
    assert asking.db.run(requests.pending, session_of(asking)) == []
    for request in found:
        with pytest.raises(RequestOver):
            answer(asking, request.id, decision="once", text="blue")
    assert len(asking.results(agent="child")) == 2


def test_what_is_no_answer_is_refused_and_nothing_is_lost(asking: Rig):
    asking.script("root", do(call("bash", command="touch made"), call("ask_user", question="Which?")), say("done"))
    asking.worker()
    asking.prompt()
    approval, question = pending(asking, 2)
    rule = {"effect": "allow", "tool": "bash", "pattern": "x"}
    bad: list[Any] = [
        "bash(x)",
        [],
        [rule, 1],
        {},
        1,
        [rule | {"effect": "deny"}],
        [rule | {"tool": 1}],
        [{"tool": "x"}],
    ]
    wrong: list[dict[str, Any]] = [{}, {"decision": "maybe"}, {"text": "yes"}, {"decision": "once", "arguments": [1]}]
    for words in (*wrong, *({"decision": "always", "rules": rules} for rules in bad)):
        with pytest.raises(BadAnswer):
            answer(asking, approval.id, **words)
    with pytest.raises(BadAnswer):
        answer(asking, question.id, decision="once")
    with pytest.raises(UnknownRequest):
        answer(asking, UUID(int=0), decision="once")
    assert len(pending(asking, 2)) == 2
    answer(asking, approval.id, decision="once")
    with pytest.raises(RequestOver, match="tester has answered"):
        answer(asking, approval.id, decision="no")
    answer(asking, question.id, text="blue")
    asking.rest()
    assert asking.results("ask_user") == [{"answer": "blue"}]


def test_two_answers_at_once_are_one(asking: Rig):
    asking.script("root", do(call("bash", command="touch made")), say("done"))
    asking.worker()
    asking.prompt()
    (request,) = pending(asking)
    outcomes: list[str] = []

    def say_so(decision: str) -> None:
        try:
            answer(asking, request.id, decision=decision)
            outcomes.append(decision)
        except RequestOver:
            outcomes.append("over")

    threads = [threading.Thread(target=say_so, args=(decision,)) for decision in ("once", "no", "once", "no")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asking.rest()
    assert outcomes.count("over") == 3
    assert (asking.workdir / "made").exists() == ("once" in outcomes)
    assert len(asking.results()) == 1


def test_a_parent_that_waits_for_a_child_that_asks_goes_on_when_it_is_answered(asking: Rig):
    asking.script(
        "root",
        do(call("fork", name="child", prompt="ask")),
        do(call("wait", timeout=60, from_agents=["child"])),
        say("all"),
    )
    asking.script("child", do(call("ask_user", question="Which?")), say("it is blue"))
    asking.worker(concurrency=1)
    asking.prompt()
    (request,) = pending(asking)
    assert (request.name, request.path) == ("child", "root/child")
    answer(asking, request.id, text="blue")
    asking.rest()
    assert asking.results("wait")[0]["results"][0]["output"] == "it is blue"


def test_a_prompt_is_found_by_the_first_digits_of_its_request(asking: Rig):
    asking.script("root", do(call("ask_user", question="Which?")), say("ok"))
    asking.worker()
    asking.prompt()
    (request,) = pending(asking)
    assert asking.db.run(requests.resolve, str(request.id)[:8]).id == request.id
    with pytest.raises(UnknownRequest):
        asking.db.run(requests.resolve, "zz")
    assert asking.db.run(agents.interrupt, asking.root)
    asking.rest()


def test_the_mode_that_counts_is_the_one_when_the_call_begins(rig: Rig):
    answered = threading.Event()
    rig.script("root", when(answered, do(call("bash", command="touch made"))), say("done"))
    rig.worker()
    rig.prompt()
    rig.until_asked()
    rig.db.run(sessions.set_mode, session_of(rig), PermissionMode.PLAN)
    answered.set()
    rig.rest()
    assert "mode plan" in rig.results()[0]["error"]
    assert not (rig.workdir / "made").exists()


def test_a_mode_that_changes_between_two_calls_holds_for_the_second(rig: Rig):
    rig.script("root", do(call("bash", command="touch one"), call("bash", command="touch two")), say("done"))
    changed = threading.Event()

    def change(when: str, name: str) -> None:
        if (when, name) == ("after", "finish_calls") and not changed.is_set():
            changed.set()
            rig.db.run(sessions.set_mode, session_of(rig), PermissionMode.PLAN)

    rig.worker(hook=change)
    rig.prompt()
    rig.rest()
    assert ["error" in result for result in rig.results()] == [False, True]
    assert not (rig.workdir / "two").exists()


def test_a_mode_that_changes_while_it_is_asked_is_not_missed(asking: Rig):
    asking.script("root", do(call("bash", command="touch made")), say("done"))
    changed = threading.Event()

    def change(when: str, name: str) -> None:
        if (when, name) == ("before", "ask") and not changed.is_set():
            changed.set()
            asking.db.run(sessions.set_mode, session_of(asking), PermissionMode.ALL)

    asking.worker(hook=change)
    asking.prompt()
    asking.rest()
    assert (asking.workdir / "made").exists()
    assert column(asking, "id") == []
