from __future__ import annotations

import json
import threading
from typing import Any

from agentmesh.store import agents
from tests.fixtures.engine import Rig, call, do, say, when

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
        child = rig.agent(name)
        intro = own[0]["content"]
        for part in (f'"{name}" (id {child})', f'"root" (id {rig.root})', 'send(to: "parent"', f"Task of {name}."):
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
    assert f'"helper" (id {rig.agent("helper")})' in intro
    assert "The user gives you the task below" in intro
    assert intro.endswith("\n\nDo this.")


def test_a_child_whose_first_mail_is_anothers_is_told_so(rig: Rig):
    rig.fork("a")
    rig.fork("b")
    rig.worker()
    rig.send("a", "b", "hello b")
    rig.rest()
    intro, body = rig.requests("b")[0].body["messages"][-1]["content"].split("\n\n", 1)
    assert "no task of your own" in intro
    assert json.loads(body)["mail"] == {"from": {"agent_id": str(rig.agent("a")), "name": "a"}, "message": "hello b"}


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
    entry = {"agent_id": str(child.id), "name": "child", "status": "received", "message": "the report"}
    assert result == {"outcome": "complete", "results": [entry]}
