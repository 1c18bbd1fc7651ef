"""fork: one commit or nothing; running from that commit on; the tool's result with it."""

from __future__ import annotations

from typing import Any

import pytest
from psycopg.types.json import Jsonb

from agentmesh.domain.errors import (
    BadArgument,
    CallClosed,
    DeadAgent,
    EmptyMessage,
    Fenced,
    MessageTooLarge,
    SessionEnded,
    UnknownAgent,
)
from agentmesh.domain.ids import AgentId
from agentmesh.domain.shape import Shape
from agentmesh.domain.states import AgentStatus
from agentmesh.store import agents, sessions, transcript, workers
from agentmesh.store.call import Lease
from tests.fixtures.mesh import Mesh, json, unknown

pytestmark = pytest.mark.only_rows

ODD = ("last 0", "last -1", "last", "last 1.5", "last 9999999", "LAST 2", "last 2\n", "last ٢", "last 2; drop")
DENY_WRITE = {"effect": "deny", "tool": "write", "pattern": "*"}


def test_with_a_prompt_it_is_running_in_the_forks_own_commit(mesh: Mesh):
    child = mesh.fork(mesh.root, "child", "do it")
    same = mesh.one(
        "select a.xmin = m.xmin from agentmesh.agents a join agentmesh.mail m on m.recipient = a.id where a.id = %s",
        child,
    )
    assert same is True
    assert mesh.status(child) is AgentStatus.RUNNING
    assert mesh.unread(child) == ["do it"]


def test_without_a_prompt_it_is_idle_and_has_no_mail(mesh: Mesh):
    child = mesh.fork(mesh.root, "child")
    assert mesh.status(child) is AgentStatus.IDLE
    assert mesh.unread(child) == []


def test_it_inherits_settings_model_and_permissions(mesh: Mesh):
    mesh.conn.execute(
        "update agentmesh.agents set model = 'm/x', permissions = '[{\"deny\": \"bash\"}]' where id = %s", [mesh.root]
    )
    root, child = mesh.run(agents.get, mesh.root), mesh.run(agents.get, mesh.fork(mesh.root, "child"))
    for field in ("session_id", "model", "settings_id", "permissions"):
        assert getattr(child, field) == getattr(root, field)
    assert (child.parent_id, child.depth) == (root.id, 1)


def test_by_tool_the_prompt_is_from_the_parent_and_the_result_in_the_same_commit(mesh: Mesh):
    call = mesh.call(mesh.root, "fork")[0]
    child = mesh.fork(mesh.root, "Child", "do it", call)
    assert mesh.result(call) == {"agent_id": str(child), "name": "child"}
    assert mesh.one("select sender from agentmesh.mail where recipient = %s", child) == mesh.root
    same = mesh.one(
        "select a.xmin = t.xmin from agentmesh.agents a, agentmesh.transcript t"
        " where a.id = %s and t.agent_id = a.parent_id and t.kind = 'tool_result'",
        child,
    )
    assert same is True


def test_by_a_person_the_prompt_is_from_the_user(mesh: Mesh):
    child = mesh.fork(mesh.root, "child", "do it")
    assert mesh.conn.execute("select sender from agentmesh.mail where recipient = %s", [child]).fetchone() == (None,)


def test_a_refused_fork_changes_nothing(mesh: Mesh):
    call = mesh.call(mesh.root, "fork")[0]
    with pytest.raises(EmptyMessage):
        mesh.fork(mesh.root, "child", " \n", call)
    with pytest.raises(MessageTooLarge):
        mesh.fork(mesh.root, "child", "x" * 262145, call)
    assert mesh.one("select count(*) from agentmesh.agents") == 1
    assert mesh.result(call) is None


def test_the_same_call_forks_once(mesh: Mesh):
    call = mesh.call(mesh.root, "fork", "bash")[0]
    mesh.fork(mesh.root, "child", "do it", call)
    with pytest.raises(CallClosed):
        mesh.fork(mesh.root, "child", "do it", call)
    assert mesh.one("select count(*) from agentmesh.agents") == 2


def test_a_worker_that_lost_the_agent_forks_nothing(mesh: Mesh):
    call = mesh.call(mesh.root, "fork")[0]
    mesh.run(workers.release, mesh.worker)
    mesh.claim(worker=mesh.join())
    with pytest.raises(Fenced):
        mesh.fork(mesh.root, "child", "do it", call)
    assert mesh.one("select count(*) from agentmesh.agents") == 1


def test_a_lease_without_a_call_is_no_persons_fork(mesh: Mesh):
    lease = mesh.begin(mesh.root)
    with pytest.raises(CallClosed):
        mesh.fork(mesh.root, "child", "do it", lease)
    stale = Lease(lease.agent_id, lease.worker_id, lease.epoch - 1)
    with pytest.raises(Fenced):
        mesh.fork(mesh.root, "child", "do it", stale)


def test_a_dead_an_unknown_and_an_ended_parent_are_refused(mesh: Mesh):
    child = mesh.fork(mesh.root, "child")
    mesh.kill(child)
    with pytest.raises(DeadAgent, match=r"child \("):
        mesh.fork(child, "grandchild")
    with pytest.raises(UnknownAgent):
        mesh.fork(unknown(), "child")
    mesh.run(sessions.end_session, mesh.session)
    with pytest.raises(SessionEnded):
        mesh.fork(mesh.root, "late")


def test_plain_sql_needs_no_more_than_parent_and_name(mesh: Mesh):
    child = mesh.one("select agentmesh.fork(%s, 'from psql', 'hello')", mesh.root)
    assert mesh.name(child) == "from-psql"
    assert mesh.status(child) is AgentStatus.RUNNING


def test_the_note_about_a_call_goes_into_its_result(mesh: Mesh):
    call = mesh.call(mesh.root, "fork")[0].call(2, 0, "unknown argument colour")
    child = mesh.fork(mesh.root, "child", "do it", call)
    assert mesh.result(call) == {"agent_id": str(child), "name": "child", "note": "unknown argument colour"}


def tools_of(mesh: Mesh, agent: AgentId) -> list[str]:
    settings = mesh.one("select settings_id from agentmesh.agents where id = %s", agent)
    return [tool["function"]["name"] for tool in mesh.run(agents.settings, settings).tools]


def give_tools(mesh: Mesh, *names: str) -> None:
    defined = Jsonb([{"type": "function", "function": {"name": name}} for name in names])
    mesh.conn.execute(
        "select agentmesh.set_settings(%s, null, %s, 'other tools')",
        [mesh.root, defined],
    )


def test_a_fork_takes_another_model_and_some_of_its_parents_tools_and_says_what_that_costs(mesh: Mesh):
    give_tools(mesh, "read", "grep", "write")
    same = mesh.run(agents.fork, mesh.root, "same", shape=Shape(tools=["write", "grep", "read"], context="all"))
    assert mesh.run(agents.fork_cache, same) is None
    modelled = mesh.run(agents.fork, mesh.root, "modelled", shape=Shape(model="other/model"))
    assert mesh.one("select model from agentmesh.agents where id = %s", modelled) == "other/model"
    assert mesh.run(agents.fork_cache, modelled) == "its model differs: nothing of the parent's prefix is cached"
    narrow = mesh.run(agents.fork, mesh.root, "narrow", shape=Shape(tools=["grep", "read"]))
    assert tools_of(mesh, narrow) == ["read", "grep"]
    assert mesh.run(agents.fork_cache, narrow) == "its tools differ: nothing of the parent's prefix is cached"
    assert tools_of(mesh, mesh.run(agents.fork, narrow, "below")) == ["read", "grep"]
    assert tools_of(mesh, mesh.run(agents.fork, narrow, "bare", shape=Shape(tools=[]))) == []
    assert tools_of(mesh, mesh.root) == ["read", "grep", "write"]


@pytest.mark.parametrize(
    ("shape", "message", "hint"),
    [
        (Shape(tools=["read", "bash"]), "so its fork cannot: bash", "It has: read, grep."),
        (Shape(tools=[""]), "so its fork cannot: ", "It has: read, grep."),
        (Shape(tools=["x\0' or true --"]), "so its fork cannot: x", "It has: read, grep."),
        (Shape(context="-1"), "a context is all, none or last N, not '-1'", "only its prompt"),
        (Shape(context=""), "a context is all, none or last N, not ''", "only its prompt"),
        *((Shape(context=odd), "a context is all, none or last N", "three turns") for odd in ODD),
    ],
)
def test_what_the_parent_has_not_is_refused_and_nothing_is_made(mesh: Mesh, shape: Shape, message: str, hint: str):
    give_tools(mesh, "read", "grep")
    with pytest.raises(BadArgument) as refused:
        mesh.run(agents.fork, mesh.root, "wide", shape=shape)
    assert message in refused.value.message
    assert hint in refused.value.hint
    assert mesh.one("select count(*) from agentmesh.agents where session_id = %s", mesh.session) == 1


def test_without_the_conversation_it_inherits_from_no_generation_and_is_introduced(mesh: Mesh):
    mesh.conn.execute("select agentmesh.append(%s, 'user', '{\"text\": \"old\"}')", [mesh.root])
    middle = mesh.fork(mesh.root, "middle")
    child = mesh.run(agents.fork, middle, "child", "do it", shape=Shape(context="none"))
    assert mesh.run(transcript.context, middle) != []
    assert mesh.run(transcript.context, child) == []
    assert mesh.unread(child) == ["do it"]
    cache = "it begins without the conversation: only the system prompt and the tools are cached"
    assert mesh.run(agents.fork_cache, child) == cache
    me = "select agentmesh.introduction(a) from agentmesh.agents a where id = %s"
    assert mesh.one(me, child)["introduces"]["alone"] is True
    assert mesh.one("select clean from agentmesh.agents where id = %s", child) is False


EXPLORE = {"name": "explore", "system_prompt": "You find things.", "permissions": [[], [DENY_WRITE]]}


def test_a_fork_of_a_type_has_its_prompt_and_rules_and_begins_without_the_conversation(mesh: Mesh):
    give_tools(mesh, "read", "write")
    mesh.conn.execute("select agentmesh.append(%s, 'user', '{\"text\": \"old\"}')", [mesh.root])
    shape = Shape(tools=["read"], type="explore", definition=EXPLORE)
    child = mesh.run(agents.fork, mesh.root, "looker", "look", shape=shape)
    row = mesh.conn.execute(
        "select a.subagent_type, a.permissions, s.system_prompt, a.clean from agentmesh.agents a"
        " join agentmesh.settings s on s.id = a.settings_id where a.id = %s",
        [child],
    ).fetchone()
    assert row == ("explore", [[], [DENY_WRITE]], "You find things.", False)
    assert tools_of(mesh, child) == ["read"]
    assert mesh.run(transcript.context, child) == []
    assert mesh.run(agents.fork_cache, child) == "its system prompt differs: nothing of the parent's prefix is cached"
    heir = mesh.run(agents.fork, mesh.root, "heir", shape=shape._replace(context="all"))
    assert mesh.run(transcript.context, heir) != []


def test_a_child_of_a_person_reports_to_its_parent_if_asked_to(mesh: Mesh):
    child = mesh.run(agents.fork, mesh.root, "looker", "look", report=True)
    assert mesh.one("select sender from agentmesh.mail where recipient = %s", child) == mesh.root
    mesh.claim()
    mesh.answer(child, "found it")
    assert mesh.unread(mesh.root) == ["found it"]


def test_a_type_that_gives_more_rights_than_its_parents_is_refused(mesh: Mesh):
    mesh.conn.execute("update agentmesh.agents set permissions = %s where id = %s", [json([[DENY_WRITE]]), mesh.root])
    with pytest.raises(BadArgument, match="do not begin with the layers of its parent's"):
        mesh.run(agents.fork, mesh.root, "wide", shape=Shape(definition={**EXPLORE, "permissions": [[]]}))


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ([], "it is no object"),
        ("explore", "it is no object"),
        ({}, "its name"),
        ({"name": 3}, "its name"),
        ({"name": "Ex plore"}, "its name"),
        ({"name": "x" * 65}, "its name"),
        ({"name": "x", "system_prompt": " "}, "its system prompt"),
        ({"name": "x", "system_prompt": ["y"]}, "its system prompt"),
        ({"name": "x", "permissions": {}}, "its permissions"),
        ({"name": "x", "permissions": [{"mode": "all"}]}, "its permissions"),
        ({"name": "x", "tools": []}, "more keys"),
    ],
)
def test_what_is_no_type_is_refused_and_nothing_is_made(mesh: Mesh, wrong: Any, why: str):
    with pytest.raises(BadArgument) as refused:
        mesh.run(agents.fork, mesh.root, "x", shape=Shape(definition=wrong))
    assert why in refused.value.message
    assert mesh.one("select count(*) from agentmesh.agents where session_id = %s", mesh.session) == 1


@pytest.mark.parametrize("tools", [[None], ["bash", None]])
def test_tools_without_a_name_are_refused(mesh: Mesh, tools: list[str | None]):
    with pytest.raises(BadArgument, match=r"so its fork cannot: .*null"):
        mesh.run(lambda conn: conn.execute("select agentmesh.fork(%s, 'a', 'x', tools => %s)", [mesh.root, tools]))


def test_a_fork_has_a_model_with_a_name(mesh: Mesh):
    with pytest.raises(BadArgument, match="the model has no name"):
        mesh.run(lambda conn: conn.execute("select agentmesh.fork(%s, 'a', 'x', model => ' ')", [mesh.root]))
