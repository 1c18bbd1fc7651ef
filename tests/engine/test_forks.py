from __future__ import annotations

import json
import threading
from typing import Any
from unittest.mock import ANY

import pytest

from agentmesh.domain.errors import NoModel
from agentmesh.llm.simulator.request import ChatRequestView, said
from agentmesh.store import agents
from agentmesh.tools.fork import Fork
from agentmesh.tools.task import Task
from agentmesh.tools.typed import Delegation
from tests.fixtures.engine import Rig, call, do, say, when
from tests.fixtures.mesh import entry

END = b"]}"
"""What ends the list of messages, the last thing in a request."""


def assert_valid(messages: list[dict[str, Any]]) -> None:
    """Each tool call is followed by its result, before anything else is said; no result is without a call."""
    owed: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            owed.remove(message["tool_call_id"])
            continue
        assert not owed, f"{message['role']} comes before the results of {owed}"
        owed = [call["id"] for call in message.get("tool_calls", [])]
    assert not owed


def test_three_forks_of_one_step_inherit_the_same_bytes(rig: Rig):
    (rig.workdir / "f").write_text("x\n")
    forks = [call("fork", name=name, prompt=f"Task of {name}.") for name in "abc"]
    rig.script("root", do(call("read", path="f")), do(call("list_agents"), *forks, text="Three helpers."), say("go on"))
    rig.worker()
    rig.run("Fork!")
    parent = rig.requests("root")
    assert len(parent) >= 3
    for name in "abc":
        (request,) = rig.requests(name)
        assert request.raw.startswith(parent[1].raw.removesuffix(END)), "the prefix that the provider has cached"
        assert_valid(request.body["messages"])
        own = request.body["messages"][len(parent[1].body["messages"]) :]
        assert [message["role"] for message in own] == ["user"]
        intro = own[0]["content"]
        fork = ChatRequestView(request.body).fork
        assert fork is not None
        assert (fork.prompt, fork.by_parent) == (f"Task of {name}.", True)
        assert str(rig.agent(name)) not in intro
        assert str(rig.root) not in intro
        for part in (
            f'the agent "{name}"',
            'a child of "root"',
            "fork none of them",
            'send(to: "parent"',
            f"Task of {name}.",
        ):
            assert part in intro
    for request in parent:
        assert_valid(request.body["messages"])


def test_a_child_that_the_user_forks_answers_the_user(rig: Rig):
    rig.worker()
    rig.run("hello")
    rig.fork("helper", "Do this.")
    rig.rest()
    (request,) = rig.requests("helper")
    intro = request.body["messages"][-1]["content"]
    assert 'You are the agent "helper"' in intro
    assert "fork none of them" not in intro
    assert "The user gives you the task below" in intro
    assert intro.endswith("\n\nDo this.")
    fork = ChatRequestView(request.body).fork
    assert fork is not None
    assert (fork.prompt, fork.by_parent) == ("Do this.", False)


def test_a_child_whose_first_mail_is_anothers_is_told_so(rig: Rig):
    rig.fork("a")
    rig.fork("b")
    rig.worker()
    rig.send("a", "b", "hello b")
    rig.rest()
    intro, body = said(rig.requests("b")[0].body["messages"][-1]).split("\n\n", 1)
    assert "no task of your own" in intro
    sender = {"agent_id": str(rig.agent("a")), "name": "a"}
    assert json.loads(body)["mail"] == {"message_id": ANY, "from": sender, "message": "hello b"}


def test_forks_nest_and_each_prefix_stays_the_parents(rig: Rig):
    rig.script("root", do(call("fork", name="child", prompt="Fork in your turn.")), say("done"))
    rig.script("child", do(call("list_agents")), do(call("fork", name="grandchild", prompt="Deep.")), say("done"))
    rig.worker()
    rig.run()
    rig.until_asked("grandchild")
    child, grandchild = rig.requests("child"), rig.requests("grandchild")[0]
    assert child[0].raw.startswith(rig.requests("root")[0].raw.removesuffix(END))
    assert grandchild.raw.startswith(child[1].raw.removesuffix(END))
    assert_valid(grandchild.body["messages"])
    rig.prompt("again", "grandchild")
    rig.rest()
    assert rig.requests("grandchild")[1].raw.startswith(grandchild.raw.removesuffix(END))


def test_what_the_parent_says_later_never_reaches_the_child(rig: Rig):
    parent_went_on = threading.Event()
    rig.script(
        "root", do(call("fork", name="child", prompt="x")), do(call("bash", command="echo SECRET")), say("SECRET")
    )
    rig.script("child", when(parent_went_on, say("first")), say("second"))
    rig.worker()
    rig.prompt()
    rig.until(lambda: rig.status() == "idle", "the parent's end")
    assert rig.last()[0] == "SECRET"
    parent_went_on.set()
    rig.rest()
    rig.prompt("more", "child")
    rig.rest()
    assert len(rig.requests("child")) == 2
    for request in rig.requests("child"):
        assert b"SECRET" not in request.raw


def test_a_fork_by_the_user_in_the_middle_of_a_step_leaves_that_step_out(rig: Rig):
    (rig.workdir / "hold").touch()
    wait_for_it = "touch ready; while [ -e hold ]; do sleep 0.01; done"
    rig.script("root", do(call("list_agents"), call("bash", command=wait_for_it)), say("done"))
    rig.worker()
    rig.prompt()
    rig.until((rig.workdir / "ready").exists, "the command")
    rig.fork("child", "x")
    rig.until_asked("child")
    (rig.workdir / "hold").unlink()
    rig.rest()
    request = rig.requests("child")[0]
    assert_valid(request.body["messages"])
    assert request.raw.startswith(rig.requests("root")[0].raw.removesuffix(END))
    assert b"list_agents" not in request.raw[len(rig.requests("root")[0].raw) :]


def test_a_fork_from_ten_thousand_messages_shares_them(rig: Rig):
    rig.conn.execute(
        "insert into agentmesh.transcript (agent_id, seq, kind, content, created_at)"
        " select %s, n, case when n %% 2 = 1 then 'user' else 'assistant' end,"
        " jsonb_build_object('text', 'message ' || n), now()"
        " from generate_series(1, 10000) n",
        [rig.root],
    )
    rig.script("root", *[say("no")] * 5000, do(call("fork", name="child", prompt="x")))
    rig.worker()
    rig.run()
    parent, (child,) = rig.requests("root")[0], rig.requests("child")
    assert len(parent.body["messages"]) == 10_002
    assert child.raw.startswith(parent.raw.removesuffix(END))
    assert rig.one("select count(*) from agentmesh.transcript where agent_id = %s", rig.agent("child")) == 2


def test_a_refused_fork_says_what_to_use_instead(rig: Rig):
    rig.root = rig.session(max_children=1)
    rig.fork("idler")
    rig.script("root", do(call("fork", name="one-more", prompt="x")), say("I see."))
    rig.worker()
    assert rig.run() == "I see."
    (result,) = rig.results("fork")
    assert "max_children" in result["error"]
    assert "idler" in result["hint"]
    assert "Do not retry" in result["hint"]


def test_a_taken_name_gets_a_number_that_the_caller_is_told(rig: Rig):
    rig.fork("helper")
    rig.script("root", do(call("fork", name="Helper", prompt="x"), call("fork", name="my  Helper", prompt="x")))
    rig.worker()
    rig.run()
    assert [result["name"] for result in rig.results("fork")] == ["helper-2", "my-helper"]
    assert rig.results("fork")[0]["agent_id"] == str(rig.agent("helper-2"))


def test_a_child_uses_its_name_and_parent_to_report(rig: Rig):
    rig.script(
        "root",
        do(call("fork", name="child", prompt="Report."), call("wait", timeout=20, from_agents=["child"])),
        say("got it"),
    )
    rig.script("child", do(call("send", to="parent", message="the report")), say("sent"))
    rig.worker()
    assert rig.run() == "got it"
    (result,) = rig.results("wait")
    child = rig.db.run(agents.get, rig.agent("child"))
    assert result == {"outcome": "complete", "results": [entry(child.id, "child", "received", message="the report")]}


def test_a_fork_without_the_conversation_sends_its_prompt_and_the_tools_that_it_was_given(rig: Rig):
    made = [call("fork", name="bare", prompt="Task.", context="none", tools=["read"])]
    made.append(call("fork", name="wide", prompt="Task.", tools=["read", "nosuch"]))
    rig.script("root", do(*made, text="One helper."), say("go on"))
    rig.worker()
    rig.run("Fork, says the secret word.")
    (request,) = rig.requests("bare")
    assert b"secret word" not in request.raw
    assert "Task." in json.dumps(request.body["messages"])
    assert [tool["function"]["name"] for tool in request.body["tools"]] == ["read"]
    told = json.dumps(rig.requests("root")[1].body["messages"])
    assert "its tools differ: nothing of the parent's prefix is cached" in told
    assert "its fork cannot: nosuch" in told


def test_a_fork_with_the_last_turns_sends_them_and_the_same_bytes_after_a_restart(rig: Rig):
    made = call("fork", name="short", prompt="Task.", context="last 2")
    rig.script("root", say("one"), say("two"), do(made), say("x"))
    rig.script("short", say("first"), say("second"))
    parts = rig.worker()
    for text in ("The old one.", "The middle one.", "Fork."):
        rig.run(text)
    parts.close()
    rig.worker()
    rig.prompt("More.", "short")
    rig.rest()
    first, second = rig.requests("short")
    assert second.raw.startswith(first.raw.removesuffix(END))
    assert_valid(second.body["messages"])
    said = json.dumps(first.body["messages"])
    assert "The old one." not in said
    assert said.index("The middle one.") < said.index("Fork.") < said.index("Task.")
    assert "it inherits only the last turns" in json.dumps(rig.results("fork"))


def test_a_fork_of_a_type_sends_that_types_prompt_and_only_its_tools(rig: Rig):
    made = [call("fork", name="looker", prompt="Look.", type="explore")]
    made.append(call("fork", name="wide", prompt="Look.", type="Explore", tools=["read", "bash"]))
    made.append(call("fork", name="odd", prompt="Look.", type="no\nsuch"))
    rig.script("root", do(*made), say("go on"))
    rig.worker()
    rig.run("Fork, says the secret word.")
    (request,) = rig.requests("looker")
    assert b"secret word" not in request.raw
    assert "a sub-agent in agentmesh that finds things" in request.body["messages"][0]["content"]
    assert [tool["function"]["name"] for tool in request.body["tools"]] == ["ask_user", "glob", "grep", "read"]
    _looker, wide, odd = rig.results("fork")
    assert wide["error"] == "a sub-agent of type explore cannot have these tools: bash"
    assert odd == {
        "error": "there is no type of sub-agent 'no\\nsuch'",
        "hint": "Types: explore, general-purpose, plan.",
    }


def test_a_type_that_a_rule_denies_to_tasks_is_denied_to_forks_too(rig: Rig):
    denied = '[[{"effect": "deny", "tool": "task", "pattern": "explore"}]]'
    rig.script("root", do(call("fork", name="looker", prompt="Look.", type="explore")), say("I see"))
    rig.worker()
    rig.conn.execute("update agentmesh.agents set permissions = %s where id = %s", [denied, rig.agent("root")])
    assert rig.run() == "I see"
    (result,) = rig.results("fork")
    assert "a rule denies `explore`" in result["error"]


@pytest.mark.parametrize("tool", ["fork", "task"])
def test_a_model_that_cannot_be_used_is_the_calls_error_and_ends_no_turn(rig: Rig, tool: str):
    def no_key(name: str) -> str:
        raise NoModel(f"the provider of model {name} has no key", hint="Set a key.")

    arguments = {"fork": {"name": "child", "prompt": "x"}, "task": {"description": "child", "prompt": "x"}}
    rig.script("root", do(call(tool, model="nobody/x", **arguments[tool])), say("I see"))
    parts = rig.worker()
    delegation = Delegation(model_name=no_key)
    parts.tools.update(fork=Fork(rig.db, delegation=delegation), task=Task(rig.db, delegation))
    assert rig.run() == "I see"
    assert rig.results() == [{"error": "the provider of model nobody/x has no key", "hint": "Set a key."}]
