"""The board, used by models in real turns."""

from __future__ import annotations

import pytest

from agentmesh.store import todos
from tests.fixtures.engine import Rig, call, do, say


def test_an_agent_adds_claims_and_ends_its_work(rig: Rig):
    rig.script(
        "root",
        do(call("todo", action="add", content="build")),
        do(call("todo", action="claim"), call("todo", action="claim"), call("todo", action="list")),
        do(call("todo", action="done", id=1, note="built"), call("todo", action="done"), call("todo", action="add")),
        say("ready"),
    )
    rig.worker()
    rig.run("Work!")
    added, claimed, nothing, listed, done, no_id, no_content = rig.results("todo")
    assert (added["added"]["content"], added["added"]["ready"]) == ("build", True)
    assert claimed["claimed"]["owner"]["name"] == "root"
    assert nothing["claimed"] is None
    assert [one["status"] for one in listed["todos"]] == ["claimed"]
    assert (done["done"]["status"], done["done"]["note"], done["ready"]) == ("done", "built", [])
    assert no_id["error"] == "done needs an id"
    assert no_content["error"] == "add needs content"


@pytest.mark.parametrize("failpoint", ["before claim_todo 1", "after claim_todo 1"])
def test_a_worker_that_dies_at_a_claim_leaves_one_claim_with_one_result(rig: Rig, failpoint: str):
    session = rig.one("select session_id from agentmesh.agents where id = %s", rig.root)
    first, second = (rig.db.run(todos.add_todo, session, None, content) for content in ("build", "test"))
    rig.script("root", do(call("todo", action="claim")), say("ready"))
    rig.crash(failpoint)
    (result,) = rig.results("todo")
    assert result["claimed"]["id"] == first
    assert [(one.id, one.status) for one in rig.db.run(todos.board, session)] == [(first, "claimed"), (second, "open")]
