from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import PermissionMode
from agentmesh.llm.simulator.reply import Fault, FaultKind, ScriptedReply
from agentmesh.llm.simulator.request import ChatRequestView, said
from agentmesh.store import agents, requests
from tests.fixtures.engine import Rig, call, do, say, until, when


def task(description: str, prompt: str = "Do it.", name: str = "", **more: Any) -> Any:
    """Return a call of task; its sub-agent is scripted by this name, else by its description."""
    return call("task", description=description, prompt=f"[{name or description}] {prompt}", **more)


def test_a_task_is_done_in_a_clean_context_and_only_its_answer_comes_back(rig: Rig):
    rig.script(
        "root", say("hello"), do(task("count files", "Count the files.", name="count-files")), say("there are 3")
    )
    rig.script("count-files", do(call("bash", command="ls")), say("3 files"))
    rig.worker()
    rig.run("a secret of the parent")
    assert rig.run("now count") == "there are 3"
    (result,) = rig.results()
    child = rig.agent("count-files")
    assert (result["agent_id"], result["name"], result["status"], result["result"]) == (
        str(child),
        "count-files",
        "completed",
        "3 files",
    )
    assert result["tool_calls"] == 1
    assert result["tokens"] > 0
    (first, _) = rig.requests("count-files")
    texts = [said(message) for message in first.body["messages"]]
    assert texts[1:] == ["[count-files] Count the files."]
    assert "secret" not in str(first.body)
    assert rig.status("count-files") == "idle"
    assert rig.one("select count(*) from agentmesh.mail where automatic") == 0


def test_the_tools_of_a_sub_agent_are_its_parents_without_the_verbs(rig: Rig):
    rig.script("root", do(task("look", subagent_type="explore"), task("work")), say("ok"))
    rig.worker()
    rig.run()
    offered = {
        name: {tool["function"]["name"] for tool in rig.requests(name)[0].body["tools"]}
        for name in ("root", "look", "work")
    }
    assert offered["look"] == {"ask_user", "glob", "grep", "read"}
    assert offered["work"] == offered["root"] - {
        "task",
        "fork",
        "send",
        "wait",
        "kill",
        "interrupt",
        "todo",
        "todo_write",
    }


def test_a_tool_that_it_was_not_given_does_not_run(rig: Rig):
    rig.script("root", do(task("look", subagent_type="explore")), say("ok"))
    rig.script("look", do(call("bash", command="touch made")), say("could not"))
    rig.worker()
    rig.run()
    assert "there is no tool 'bash'" in rig.results(agent="look")[0]["error"]
    assert not (rig.workdir / "made").exists()


def test_tools_and_prompt_and_name_can_be_chosen(rig: Rig):
    chosen = task("Look & See!", name="look-see", tools=["read", "glob"], system_prompt="You are a mole.")
    rig.script("root", do(chosen, task("user"), task("???", name="odd")), say("ok"))
    rig.worker()
    rig.run()
    (asked,) = rig.requests("look-see")
    assert [tool["function"]["name"] for tool in asked.body["tools"]] == ["glob", "read"]
    assert asked.body["messages"][0]["content"].startswith("You are a mole.")
    assert {result["name"] for result in rig.results()} == {"look-see", "general-purpose", "general-purpose-2"}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"subagent_type": "wizard"}, "there is no type of sub-agent 'wizard'"),
        ({"tools": ["fork"]}, "cannot have these tools: fork"),
        ({"agent_id": "nobody"}, "there is no agent 'nobody'"),
        ({"agent_id": "root"}, "no sub-agent of a task of yours"),
        ({"agent_id": "forked"}, "no sub-agent of a task of yours"),
        ({"prompt": " "}, "the message is empty"),
        ({"max_steps": 0}, "max_steps"),
    ],
)
def test_a_task_that_cannot_begin_says_why(rig: Rig, arguments: dict[str, Any], error: str):
    rig.fork("forked")
    rig.script("root", do(call("task", **{"description": "x", "prompt": "y", **arguments})), say("I see"))
    rig.worker()
    assert rig.run() == "I see"
    assert error in rig.results()[0]["error"]


def test_tasks_of_one_step_run_side_by_side_and_results_stay_in_order(rig: Rig):
    both = threading.Barrier(2)

    def meet(text: str) -> Any:
        def reply(_view: ChatRequestView) -> Any:
            both.wait(20)
            return say(text)

        return reply

    rig.script("root", do(task("a"), call("list_agents"), task("b")), say("ok"))
    rig.script("a", meet("from a"))
    rig.script("b", meet("from b"))
    rig.worker(concurrency=2)
    rig.run()
    found = {result["name"]: result["result"] for result in rig.results("task")}
    assert found == {"a": "from a", "b": "from b"}
    last = rig.requests()[-1].body["messages"]
    assert [message["role"] for message in last[-3:]] == ["tool"] * 3


def test_with_one_thread_a_parent_that_waits_for_tasks_holds_none(rig: Rig):
    rig.script("root", do(task("a"), task("b")), say("ok"))
    rig.worker(concurrency=1)
    assert rig.run() == "ok"
    assert {result["status"] for result in rig.results()} == {"completed"}


def test_a_failed_task_is_a_result_and_its_siblings_are_unharmed(rig: Rig):
    rig.script("root", do(task("bad"), task("good")), say("ok"))
    rig.script("bad", *[do(call("nonsense"))] * 5)
    rig.script("good", say("fine"))
    rig.worker()
    rig.run()
    results = {result["name"]: result for result in rig.results()}
    assert results["bad"]["status"] == "failed"
    assert "identical refusals" in results["bad"]["error"]
    assert results["good"]["status"] == "completed"


def test_no_text_at_the_end_gives_an_empty_result_and_says_so(rig: Rig):
    rig.script("root", do(task("quiet")), say("ok"))
    rig.script("quiet", do(call("bash", command="ls"), text="I look."), say(""), say(""))
    rig.worker()
    rig.run()
    (result,) = rig.results()
    assert result["result"] == ""
    assert "note" in result


def test_a_task_ends_after_its_model_calls_and_goes_on_by_its_id(rig: Rig):
    rig.script("root", do(task("long", max_steps=2)), goes_on(rig, "long"), say("ok"))
    rig.script("long", *[do(call("bash", command=f"echo {n}"), text=f"step {n}") for n in range(3)], say("at last"))
    rig.worker()
    rig.run()
    first, second = rig.results()
    assert (first["status"], first["tool_calls"], first["result"]) == ("max_steps", 2, "step 1")
    assert (second["status"], second["result"], second["agent_id"]) == ("completed", "at last", first["agent_id"])
    assert second["tool_calls"] == 1
    assert second["tokens"] < first["tokens"] + second["tokens"]


def goes_on(rig: Rig, name: str) -> Any:
    def reply(_view: ChatRequestView) -> Any:
        return do(call("task", description="more", prompt="Go on.", agent_id=str(rig.agent(name))))

    return reply


def test_killing_a_sub_agent_is_the_result_of_its_task(rig: Rig):
    never = threading.Event()
    rig.script("root", do(task("victim"), task("other")), say("ok"))
    rig.script("victim", when(never, say("never")))
    rig.worker()
    rig.prompt()
    rig.until_asked("victim")
    rig.kill("victim")
    never.set()
    rig.rest()
    results = {result["name"]: result["status"] for result in rig.results()}
    assert results == {"victim": "killed", "other": "completed"}


def test_interrupting_a_sub_agent_is_the_result_of_its_task(rig: Rig):
    never = threading.Event()
    rig.script("root", do(task("slow")), say("ok"))
    rig.script("slow", do(call("bash", command="true"), text="I began."), when(never, say("never")))
    rig.worker()
    rig.prompt()
    rig.until_asked("slow", 2)
    rig.interrupt("slow")
    rig.rest()
    never.set()
    (result,) = rig.results()
    assert (result["status"], result["result"]) == ("interrupted", "I began.")
    assert rig.last() == ("ok", None)


@pytest.mark.parametrize("owned", [True, False])
def test_interrupting_a_parent_interrupts_its_sub_agents_at_any_depth(rig: Rig, owned: bool):
    never = threading.Event()
    rig.script("root", do(task("slow")), say("not reached"))
    rig.script("slow", when(never, say("never")))
    parts = rig.worker()
    rig.prompt()
    rig.until_asked("slow")
    if not owned:
        parts.worker.stop()
        assert rig.one("select count(*) from agentmesh.agents where worker_id is not null") == 0
    rig.interrupt("root")
    rig.rest()
    never.set()
    assert [rig.status(name) for name in ("root", "slow")] == ["idle", "idle"]
    (result,) = rig.results()
    assert (result["agent_id"], result["status"]) == (str(rig.agent("slow")), "interrupted")
    assert rig.one("select count(*) from agentmesh.tasks where ended_at is null") == 0


def test_a_parent_that_was_interrupted_goes_on_with_its_sub_agent(rig: Rig):
    free = threading.Event()

    def again(view: ChatRequestView) -> ScriptedReply:
        told = next(json.loads(said(message)) for message in view.messages if message["role"] == "tool")
        return do(task("slow", "Go on.", agent_id=told["agent_id"]))

    rig.script("root", do(task("slow")), again, say("done"))
    rig.script("slow", when(free, say("went on")))
    rig.worker()
    rig.prompt()
    rig.until_asked("slow")
    rig.interrupt("root")
    rig.rest()
    free.set()
    rig.run("now go on")
    assert [result["result"] for result in rig.results()] == ["", "went on"]
    assert rig.results()[0]["agent_id"] == rig.results()[1]["agent_id"]


def test_killing_the_parent_kills_its_sub_agents(rig: Rig):
    never = threading.Event()
    rig.fork("boss", "go")
    rig.script("boss", do(task("slow")), say("not reached"))
    rig.script("slow", when(never, say("never")))
    rig.worker()
    rig.until_asked("slow")
    rig.kill("boss")
    never.set()
    rig.rest()
    assert [rig.status(name) for name in ("boss", "slow")] == ["dead", "dead"]
    assert rig.one("select status from agentmesh.tasks") == "killed"


def test_a_task_survives_the_worker(rig: Rig):
    go = threading.Event()
    rig.script("root", do(task("slow")), say("ok"))
    rig.script("slow", when(go, say("done it")))
    process = rig.process()
    rig.prompt()
    rig.until_asked("slow")
    process.process.kill()
    process.join()
    rig.bury(process.worker_id)
    go.set()
    rig.worker()
    rig.rest()
    assert [(r["status"], r["result"]) for r in rig.results()] == [("completed", "done it")]
    assert rig.one("select count(*) from agentmesh.tasks") == 1


@pytest.mark.parametrize(
    "failpoint", ["after task 1", "before finish_step 2", "after finish_step 2", "before begin_step 2"]
)
def test_a_crash_at_any_commit_of_a_task_repeats_and_loses_nothing(rig: Rig, failpoint: str):
    rig.script("root", do(task("a")), say("ok"))
    rig.script("a", say("from a"))
    rig.crash(failpoint)
    assert [(r["status"], r["result"]) for r in rig.results()] == [("completed", "from a")]
    assert rig.one("select count(*) from agentmesh.tasks") == 1


def test_the_end_of_a_task_is_found_without_its_notification(rig: Rig):
    rig.script("root", do(task("a")), say("ok"))
    rig.worker(deaf=True, tick=0.1)
    assert rig.run() == "ok"


def test_a_sub_agent_that_falls_silent_ends_its_task_and_can_go_on(rig: Rig):
    rig.script("root", do(task("silent")), say("ok"))
    rig.script("silent", say("I begin " + "and go on " * 50, fault=Fault(FaultKind.HANG_STREAM)))
    rig.worker(tick=0.1, task_silence=0.5)
    rig.run()
    (result,) = rig.results()
    assert result["status"] == "timeout"
    assert "no sign of life" in result["error"]
    assert rig.status("silent") == "idle"


def test_an_idle_sub_agent_counts_against_no_limit_and_is_not_listed(rig: Rig):
    rig.root = rig.session(max_children=1)
    rig.script("root", do(task("a")), do(task("b")), do(call("list_agents")), say("ok"))
    rig.worker()
    rig.run()
    assert [result["status"] for result in rig.results("task")] == ["completed", "completed"]
    assert [agent["name"] for agent in rig.results("list_agents")[0]["agents"]] == ["root"]


def test_a_limit_refuses_a_task_with_advice(rig: Rig):
    rig.root = rig.session(max_children=1)
    rig.script("root", do(task("a"), task("b")), say("ok"))
    rig.worker()
    rig.run()
    refused = next(result for result in rig.results() if "error" in result)
    assert "max_children" in refused["error"]


def test_at_the_depth_limit_a_sub_agent_is_not_offered_what_would_be_refused(rig: Rig):
    rig.root = rig.session(max_depth=1)
    rig.script("root", do(task("a")), say("ok"))
    rig.worker()
    rig.run()
    assert not {"fork", "task"} & {tool["function"]["name"] for tool in rig.requests("a")[0].body["tools"]}


def test_a_question_of_a_sub_agent_reaches_the_person(rig: Rig):
    rig.root = rig.session(mode=PermissionMode.ASK)
    session = rig.one("select session_id from agentmesh.agents where id = %s", rig.root)
    rig.script("root", do(task("ask")), say("ok"))
    rig.script("ask", do(call("ask_user", question="Which?")), say("blue it is"))
    rig.worker(concurrency=1)
    rig.prompt()
    (request,) = until(lambda: rig.db.run(requests.pending, session))
    assert request.path == "root/ask"
    rig.db.run(requests.answer, request.id, {"text": "blue"}, "tester")
    rig.rest()
    assert rig.results()[0]["result"] == "blue it is"


def test_mail_for_a_sub_agent_at_work_prolongs_its_task(rig: Rig):
    go = threading.Event()
    rig.script("root", do(task("a")), say("ok"))
    rig.script("a", when(go, say("first")), say("second"))
    rig.fork("other")
    rig.worker()
    rig.prompt()
    rig.until_asked("a")
    rig.send("other", "a", "one thing more")
    go.set()
    rig.rest()
    assert [(r["status"], r["result"]) for r in rig.results()] == [("completed", "second")]


def test_a_wait_in_the_same_step_comes_after_the_tasks(rig: Rig):
    rig.fork("child", "go")
    rig.script("child", say("I am done"))
    rig.script("root", do(task("a"), call("wait", timeout=20, from_agents=["child"])), say("ok"))
    rig.worker(concurrency=1)
    assert rig.run() == "ok"
    assert [r.get("status") or r["outcome"] for r in rig.results()] == ["completed", "complete"]


def test_a_task_makes_an_edge_of_the_wait_graph(rig: Rig):
    rig.script("root", do(task("a")), say("ok"))
    go = threading.Event()
    rig.script("a", when(go, say("x")))
    rig.fork("watcher")
    rig.worker()
    rig.prompt()
    rig.until_asked("a")
    child: AgentId = rig.agent("a")
    circle = rig.one(
        "select agentmesh.wait_circle(a, array[%s]::uuid[]) from agentmesh.agents a where a.id = %s", rig.root, child
    )
    assert circle == "a → root → a"
    go.set()
    rig.rest()
    assert rig.db.run(agents.busy, rig.one("select session_id from agentmesh.agents where id = %s", rig.root)) == 0


def test_what_a_task_used_is_in_the_figures_of_the_tree(rig: Rig):
    rig.script("root", do(task("a")), say("ok"))
    rig.worker()
    rig.run()
    own, tree = rig.conn.execute(
        "select tokens, tree_tokens from agentmesh.v_agents where id = %s", [rig.root]
    ).fetchone() or (0, 0)
    assert tree == own + rig.results()[0]["tokens"]


def test_a_task_in_the_background_reports_by_mail(rig: Rig):
    go = threading.Event()
    rig.script("root", do(task("slow", background=True)), say("went on"), say("heard it"))
    rig.script("slow", when(go, say("done it")))
    rig.worker()
    rig.prompt()
    until(lambda: rig.status("root") == "idle")
    assert rig.status("slow") == "running"
    (early,) = rig.results()
    assert (early["status"], early["agent_id"]) == ("background", str(rig.agent("slow")))
    go.set()
    rig.rest()
    told = str(rig.requests("root")[-1].body["messages"][-1]["content"])
    assert "done it" in told
    assert "the result of the task that it did in the background" in told
    assert rig.results() == [early]
    assert rig.one("select status from agentmesh.tasks") == "completed"
    assert rig.one("select count(*) from agentmesh.mail where automatic and not failed") == 1


def test_a_task_in_the_background_that_fails_says_how(rig: Rig):
    rig.script("root", do(task("bad", background=True)), say("went on"), say("heard it"))
    rig.script("bad", say("", fault=Fault(FaultKind.STATUS, 400)))
    rig.worker()
    rig.run()
    rig.rest()
    assert rig.one("select failed from agentmesh.mail where automatic") is True
    assert rig.one("select body from agentmesh.mail where automatic").startswith("The task ended as failed: ")


def test_a_person_sends_a_running_task_to_the_background(rig: Rig):
    go = threading.Event()
    rig.script("root", do(task("slow")), say("went on"), say("heard it"))
    rig.script("slow", when(go, say("done it")))
    rig.worker()
    rig.prompt()
    rig.until_asked("slow")
    rig.db.run(agents.background, rig.agent("slow"))
    until(lambda: rig.status("root") == "idle")
    (early,) = rig.results()
    assert early["status"] == "background"
    go.set()
    rig.rest()
    assert rig.results() == [early]
    assert "done it" in str(rig.requests("root")[-1].body["messages"][-1]["content"])


def test_an_interrupt_of_the_parent_leaves_a_task_in_the_background_alone(rig: Rig):
    go, heard = threading.Event(), threading.Event()
    rig.script("root", do(task("slow", background=True)), when(heard, say("heard it")))
    rig.script("slow", when(go, say("done it")))
    rig.worker()
    rig.prompt()
    rig.until_asked("slow")
    until(lambda: len(rig.requests("root")) == 2)
    rig.interrupt("root")
    until(lambda: rig.status("root") == "idle")
    assert rig.status("slow") == "running"
    heard.set()
    go.set()
    rig.rest()
    assert rig.one("select status from agentmesh.tasks") == "completed"
    assert rig.one("select count(*) from agentmesh.mail where automatic and read_at is not null") == 1


@pytest.mark.parametrize("failpoint", ["after task 1", "before finish_step 2", "after finish_step 2"])
def test_a_crash_at_any_commit_of_a_background_task_loses_and_doubles_nothing(rig: Rig, failpoint: str):
    rig.script("root", do(task("a", background=True)), say("went on"), say("heard it"))
    rig.script("a", say("from a"))
    rig.crash(failpoint)
    assert rig.one("select status from agentmesh.tasks") == "completed"
    assert rig.one("select count(*) from agentmesh.mail where automatic and read_at is not null") == 1
    assert rig.status("root") == "idle"
