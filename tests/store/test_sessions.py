"""Sessions: start, find, end, delete."""

from __future__ import annotations

import pytest

from agentmesh.domain.errors import BadArgument, DeadAgent, SessionRunning, UnknownSession
from agentmesh.domain.ids import SessionId
from agentmesh.domain.states import AgentStatus, PermissionMode
from agentmesh.store import agents, person, sessions, steps
from tests.fixtures.mesh import HOST, USER, Mesh, unknown

pytestmark = pytest.mark.only_rows


def new(**values) -> sessions.NewSession:
    given = {
        "workdir": "/w",
        "host": HOST,
        "os_user": USER,
        "model": "demo/x",
        "system_prompt": "p",
        "tools": [],
        **values,
    }
    return sessions.NewSession(**given)


def test_a_session_begins_with_an_idle_root(mesh: Mesh):
    root = mesh.run(sessions.start_session, new(title="T", permission_mode=PermissionMode.PLAN))
    agent = mesh.run(agents.get, root)
    assert (agent.name, agent.depth, agent.status, agent.parent_id, agent.forked_at) == (
        "root",
        0,
        AgentStatus.IDLE,
        None,
        None,
    )
    session = mesh.run(sessions.get, agent.session_id)
    assert (session.root_id, session.title, session.workdir) == (root, "T", "/w")
    assert session.permission_mode is PermissionMode.PLAN


def test_limits_not_given_are_the_defaults_and_null_is_no_cap(mesh: Mesh):
    limits = "max_depth, max_children, max_agents, max_unread, max_tokens, max_cost_usd"
    query = f"select {limits} from agentmesh.sessions where root_id = %s"
    root = mesh.run(sessions.start_session, new())
    assert mesh.conn.execute(query, [root]).fetchone() == (4, 16, 64, 1000, 20_000_000, 10)
    capless = {"max_tokens": None, "max_cost_usd": None, "max_depth": 1}
    root = mesh.run(sessions.start_session, new(limits=capless))
    assert mesh.conn.execute(query, [root]).fetchone() == (1, 16, 64, 1000, None, None)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("limits => '{\"max_agents\": -5}'", "max_agents cannot be -5"),
        ('limits => \'{"max_agents": "x"}\'', "max_agents cannot be"),
        ("limits => '{\"max_depth\": 1e10}'", "max_depth cannot be 10000000000"),
        ("limits => '{\"max_turns\": 5.0}'", "max_turns cannot be 5.0"),
        ("limits => '{\"max_agent\": 5}'", "no limit 'max_agent'"),
        ("limits => '{\"max_tokens\": -1}'", "max_tokens is a whole number"),
        ("limits => '{\"max_tokens\": 1.5}'", "max_tokens is a whole number"),
        ('limits => \'{"max_cost_usd": "x"}\'', "max_cost_usd is a number"),
        ("limits => '{\"max_cost_usd\": 1e8}'", "max_cost_usd is a number"),
        ("limits => '[]'", "limits are an object"),
        ("limits => null", "limits are an object"),
        ("permission_mode => 'zz'", "'zz' is no permission mode"),
        ("permission_mode => null", "null is no permission mode"),
        ("model => null", "the model has no name"),
        ("model => ' '", "the model has no name"),
        ("workdir => ''", "workdir"),
        ("host => null", "host"),
        ("title => null", "title"),
        ("system_prompt => null", "system_prompt"),
        ("tools => '[1]'", "tools are a list of objects"),
        ("tools => null", "tools are a list of objects"),
        ("permissions => '{}'", "permissions are a list of layers"),
        ("permissions => '[{}]'", "permissions are a list of layers"),
        ("workspace => 'mine'", "workspace is shared or own"),
        ("needs => null", "needs"),
        ("external => null", "external"),
    ],
)
def test_a_session_with_senseless_values_is_refused_in_words(mesh: Mesh, given: str, why: str):
    said = dict.fromkeys(("workdir", "host", "os_user", "model", "system_prompt"), "'x'") | {"tools": "'[]'"}
    said |= dict([given.split(" => ")])
    call = ", ".join(f"{name} => {value}" for name, value in said.items())
    with pytest.raises(BadArgument) as refused:
        mesh.run(lambda conn: conn.execute(f"select agentmesh.start_session({call})"))
    assert why in refused.value.message
    assert refused.value.hint


def test_a_title_is_a_text(mesh: Mesh):
    with pytest.raises(BadArgument, match="title"):
        mesh.run(lambda conn: conn.execute("select agentmesh.rename_session(%s, null)", [mesh.session]))


def test_settings_are_shared_and_come_back_as_given(mesh: Mesh):
    tools = [{"name": "bash", "parameters": {"b": 1, "a": [1.5, None]}}]
    first, second = (mesh.run(agents.get, mesh.run(sessions.start_session, new(tools=tools))) for _ in range(2))
    assert first.settings_id == second.settings_id
    kept = mesh.run(agents.settings, first.settings_id)
    assert (kept.system_prompt, kept.tools) == ("p", tools)


def test_found_by_id_by_prefix_and_by_directory(mesh: Mesh):
    session = mesh.session_of(mesh.run(sessions.start_session, new()))
    assert mesh.run(sessions.resolve, str(session)[:8].upper()).id == session
    assert mesh.run(sessions.newest, "/w", HOST, USER) == mesh.run(sessions.get, session)
    assert mesh.run(sessions.newest, "/elsewhere", HOST, USER) is None
    assert mesh.run(sessions.newest, "/w", "elsewhere", USER) is None
    for prefix in ("ab", "zzzz", "%%%%", str(unknown())):
        with pytest.raises(UnknownSession) as refused:
            mesh.run(sessions.resolve, prefix)
        assert refused.value.hint
    with pytest.raises(UnknownSession):
        mesh.run(sessions.get, SessionId(unknown()))


def test_the_list_has_their_figures_newest_first(mesh: Mesh):
    mesh.fork(mesh.root, "a", "work")
    usage = {"input_tokens": 10, "output_tokens": 5, "cached_tokens": 4, "cost_usd": 0.5}
    mesh.run(steps.finish_step, mesh.begin(mesh.root), {"text": ""}, [], usage)
    mesh.run(sessions.start_session, new())
    newest, mine = mesh.run(sessions.list_sessions)
    assert (newest.workdir, mine.id) == ("/w", mesh.session)
    assert (mine.agents, mine.running, mine.tokens, float(mine.cost_usd or 0)) == (2, 1, 11, 0.5)
    assert [each.id for each in mesh.run(sessions.list_sessions, "/w")] == [newest.id]


def test_the_list_finds_older_ones_by_words_of_title_and_directory_and_by_the_beginning_of_the_id(mesh: Mesh):
    mesh.run(person.rename_session, mesh.session, "Fix the 100% of_doom")
    mesh.run(sessions.start_session, new())
    found = {
        wanted: [each.id == mesh.session for each in mesh.run(sessions.list_sessions, None, 1, wanted)]
        for wanted in ("", "fix DOOM", "/tmp fix", str(mesh.session)[:6].upper(), "fix absent", "100%", "f_doom", "x%")
    }
    here = ("fix DOOM", "/tmp fix", str(mesh.session)[:6].upper(), "100%", "f_doom")
    assert found == {"": [False], **{wanted: [True] for wanted in here}, "fix absent": [], "x%": []}


def test_end_kills_all_the_root_too_and_can_be_repeated(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    call = mesh.call(a, "bash")[0]
    assert mesh.run(sessions.end_session, mesh.session) == 2
    assert {mesh.status(agent) for agent in (a, mesh.root)} == {AgentStatus.DEAD}
    assert mesh.result(call) == {"error": "killed"}
    ended = mesh.run(sessions.get, mesh.session).ended_at
    assert ended is not None
    assert mesh.run(sessions.end_session, mesh.session) == 0
    assert mesh.run(sessions.get, mesh.session).ended_at == ended
    assert mesh.run(sessions.newest, "/tmp", HOST, USER) is None
    with pytest.raises(DeadAgent):
        mesh.send(None, mesh.root)


def test_delete_is_refused_while_anything_runs_and_erases_every_row(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    b = mesh.fork(a, "b", "work")
    mesh.wait(mesh.root, a)
    mesh.send(a, mesh.root)
    with pytest.raises(SessionRunning, match="a ") as refused:
        mesh.run(sessions.delete_session, mesh.session)
    assert str(mesh.session) in refused.value.hint
    mesh.kill(b, a)
    mesh.run(sessions.end_session, mesh.session)
    mesh.run(sessions.delete_session, mesh.session)
    for table in ("sessions", "agents", "mail", "transcript", "tool_calls", "model_calls", "wait", "waits", "activity"):
        assert mesh.one(f"select count(*) from agentmesh.{table}") == 0, table
    for gone in (sessions.delete_session, sessions.end_session):
        with pytest.raises(UnknownSession):
            mesh.run(gone, mesh.session)


def test_another_session_is_untouched(mesh: Mesh):
    other = mesh.new_session()
    mesh.run(sessions.end_session, mesh.session)
    mesh.run(sessions.delete_session, mesh.session)
    assert mesh.status(other) is AgentStatus.IDLE


def test_the_mode_can_be_changed_and_the_next_step_knows(mesh: Mesh):
    mesh.run(sessions.set_mode, mesh.session, PermissionMode.ALL)
    assert mesh.run(sessions.get, mesh.session).permission_mode is PermissionMode.ALL
