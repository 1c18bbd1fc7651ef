"""Finding an agent: full id, then exact name, then a prefix of the id that fits one only."""

from __future__ import annotations

from uuid import UUID

import pytest

from agentmesh.domain.errors import AmbiguousAgent, UnknownAgent
from agentmesh.domain.ids import AgentId
from agentmesh.domain.rows import Ref
from agentmesh.store import agents, sessions
from tests.fixtures.mesh import Mesh

pytestmark = pytest.mark.only_rows


def add(mesh: Mesh, id_: str, name: str) -> AgentId:
    """Insert a child of the root with an id of our choice."""
    mesh.conn.execute(
        "insert into agentmesh.agents (id, session_id, parent_id, name, depth, status, settings_id, forked_at,"
        " workspace_id)"
        " select %s, session_id, id, %s, 1, 'idle', settings_id, 0, workspace_id from agentmesh.agents"
        " where id = %s",
        [id_, name, mesh.root],
    )
    return AgentId(UUID(id_))


def find(mesh: Mesh, who: str) -> AgentId:
    return mesh.run(agents.resolve, mesh.session, who).id


def test_by_full_id_by_name_and_by_prefix(mesh: Mesh):
    a = add(mesh, "abcd1234-0000-4000-8000-000000000001", "reader")
    for who in (str(a), str(a).upper(), "reader", "Reader", " reader ", "abcd", "ABCD1234", "abcd1234-00"):
        assert find(mesh, who) == a


def test_a_name_beats_the_prefix_that_it_also_is(mesh: Mesh):
    by_prefix = add(mesh, "cafe0000-0000-4000-8000-000000000001", "x")
    by_name = add(mesh, "11110000-0000-4000-8000-000000000001", "cafe")
    assert find(mesh, "cafe") == by_name
    assert find(mesh, "cafe0") == by_prefix


def test_a_name_is_found_among_any_number_of_agents_whose_id_begins_like_it(mesh: Mesh):
    for n in range(40):
        add(mesh, f"a{n:07x}-0000-4000-8000-000000000001", f"other{n}")
    named = add(mesh, "f0000000-0000-4000-8000-000000000001", "a")
    assert find(mesh, "a") == named


def test_the_dead_are_found_too(mesh: Mesh):
    a = mesh.fork(mesh.root, "a1")
    mesh.kill(a)
    mesh.conn.execute("select agentmesh.reap(%s)", [mesh.session])
    assert find(mesh, "a1") == a


def test_an_ambiguous_prefix_lists_whom_it_fits(mesh: Mesh):
    add(mesh, "abcd1234-0000-4000-8000-000000000001", "one")
    add(mesh, "abcd5678-0000-4000-8000-000000000001", "two")
    with pytest.raises(AmbiguousAgent, match="'abcd'") as refused:
        find(mesh, "abcd")
    assert "one" in refused.value.hint
    assert "two" in refused.value.hint
    assert find(mesh, "abcd1") != find(mesh, "abcd5")


def test_a_prefix_of_three_digits_is_none(mesh: Mesh):
    add(mesh, "abcd1234-0000-4000-8000-000000000001", "one")
    with pytest.raises(UnknownAgent):
        find(mesh, "abc")


def test_an_unknown_one_lists_close_matches(mesh: Mesh):
    mesh.fork(mesh.root, "file-reader")
    mesh.fork(mesh.root, "linter")
    with pytest.raises(UnknownAgent, match="'file-raeder'") as refused:
        find(mesh, "file-raeder")
    assert "file-reader" in refused.value.hint
    assert "linter" not in refused.value.hint


@pytest.mark.parametrize(
    "who", ["", " ", "----", "%", "_", "' or true --", "\x00", "\ud800", "[/x]", "x" * 10_000, "é"]
)
def test_nonsense_is_unknown(mesh: Mesh, who: str):
    with pytest.raises(UnknownAgent) as refused:
        find(mesh, who)
    assert "root" in refused.value.hint
    assert len(refused.value.message) < 200


def test_in_a_session_that_was_deleted_nobody_is_known(mesh: Mesh):
    mesh.run(sessions.end_session, mesh.session)
    mesh.run(sessions.delete_session, mesh.session)
    with pytest.raises(UnknownAgent) as refused:
        find(mesh, "root")
    assert "agentmesh sessions lists all" in refused.value.hint


def test_an_agent_of_another_session_is_unknown_but_can_be_found_anywhere(mesh: Mesh):
    stranger = mesh.fork(mesh.new_session(), "stranger")
    for who in (str(stranger), "stranger"):
        with pytest.raises(UnknownAgent):
            find(mesh, who)
    (ref, session), *more = mesh.run(agents.anywhere, str(stranger))
    assert (ref.id, ref.name, session, more) == (stranger, "stranger", mesh.session_of(stranger), [])
    assert mesh.run(agents.anywhere, "stranger") == []


def test_an_agent_that_is_alone_is_told_so(mesh: Mesh):
    with pytest.raises(UnknownAgent, match="no agent 'agent1'") as caught:
        mesh.run(agents.resolve, mesh.session, "agent1", mesh.root)
    assert caught.value.hint == "You are the only agent here. Do the work yourself, and end your turn with the result."
    with pytest.raises(UnknownAgent) as caught:  # a slip in a name is told as one
        mesh.run(agents.resolve, mesh.session, "rooot", mesh.root)
    assert caught.value.hint.startswith("Close matches: root")
    with pytest.raises(UnknownAgent) as caught:  # a person is not alone
        mesh.run(agents.resolve, mesh.session, "agent1")
    assert caught.value.hint.startswith("Agents here: root")


def test_a_hint_that_lists_some_of_the_living_says_how_many_there_are_and_leaves_out_the_dead(mesh: Mesh):
    kids = [mesh.fork(mesh.root, f"kid{n}") for n in range(6)]
    mesh.kill(kids[5])
    for asker, lists in ((None, "agentmesh tree --all"), (mesh.root, "list_agents")):
        with pytest.raises(UnknownAgent) as caught:
            mesh.run(agents.resolve, mesh.session, "zzzz", asker)
        hint = caught.value.hint
        assert hint.startswith("5 of the 6 agents here: kid4 (")
        assert f"). {lists} lists all. Use the full id" in hint
        assert "kid5" not in hint
    mesh.kill(kids[0])
    with pytest.raises(UnknownAgent) as caught:
        find(mesh, "zzzz")
    assert caught.value.hint.startswith("Agents here: kid4 (")
    assert "lists all" not in caught.value.hint
    with pytest.raises(UnknownAgent) as caught:
        find(mesh, "kid55")
    close = caught.value.hint.split(", kid")
    assert close[0].startswith("Close matches: kid4")
    assert ", dead)" in close[-1]


def test_in_a_session_without_living_agents_the_dead_are_named_as_such(mesh: Mesh):
    mesh.run(sessions.end_session, mesh.session)
    with pytest.raises(UnknownAgent) as caught:
        find(mesh, "zzzz")
    assert caught.value.hint.startswith("Agents here: root (")
    assert ", dead)." in caught.value.hint


def test_an_agent_that_asks_calls_its_parent_parent(mesh: Mesh):
    child = mesh.fork(mesh.root, "child")
    grandchild = mesh.fork(child, "grandchild")
    for who in ("parent", "Parent", " parent "):
        assert mesh.run(agents.resolve, mesh.session, who, grandchild) == Ref(child, "child")
    assert mesh.run(agents.resolve, mesh.session, "root", grandchild).id == mesh.root
    with pytest.raises(UnknownAgent, match="the root has no parent") as caught:
        mesh.run(agents.resolve, mesh.session, "parent", mesh.root)
    assert caught.value.hint == "End your turn with an answer: the user reads it."
    with pytest.raises(UnknownAgent, match="the user is no agent") as caught:
        mesh.run(agents.resolve, mesh.session, "user", mesh.root)
    assert caught.value.hint.startswith("End your turn")
    with pytest.raises(UnknownAgent, match="no agent 'parent'"):  # a person has none
        mesh.run(agents.resolve, mesh.session, "parent")


def test_a_path_from_the_root_on_is_an_agent(mesh: Mesh):
    reader = mesh.fork(mesh.root, "reader")
    tester = mesh.fork(reader, "tester")
    for who in ("root/reader/tester", "Root/Reader/TESTER", " root/reader/tester "):
        assert find(mesh, who) == tester
    assert find(mesh, "root/reader") == reader
    assert find(mesh, "root") == mesh.root
    assert mesh.run(agents.resolve, mesh.session, "root/reader", tester).id == reader
    mesh.kill(tester)
    assert find(mesh, "root/reader/tester") == tester  # who wants it alive says that it is dead


@pytest.mark.parametrize(
    ("path", "message", "hint"),
    [
        ("root/reader/x", "there is no 'x' below root/reader", "Agents here"),
        ("root/tester", "there is no 'tester' below root", "tester is at root/reader/tester."),
        ("root/raeder/tester", "there is no 'raeder' below root", "Close matches: reader"),
        ("reader/tester", "a path begins with the root, not with 'reader'", "reader is at root/reader."),
        ("x/y", "a path begins with the root, not with 'x'", "Agents here"),
        ("root//tester", "the path 'root//tester' has an empty part", "root/NAME"),
        ("/root/reader", "the path '/root/reader' has an empty part", "root/NAME"),
        ("root/reader/", "the path 'root/reader/' has an empty part", "root/NAME"),
        ("/", "the path '/' has an empty part", "root/NAME"),
        ("root/%/_", "there is no '%' below root", "Agents here"),
        ("root/' or true --/x", 'there is no "\' or true --" below root', "Agents here"),
        ("root/reader/root", "there is no 'root' below root/reader", "root is at root."),
        ("root/" + "x" * 10_000, "there is no 'xx", "Agents here"),
    ],
)
def test_a_wrong_path_is_refused_with_the_part_that_is_not_there(mesh: Mesh, path: str, message: str, hint: str):
    mesh.fork(mesh.fork(mesh.root, "reader"), "tester")
    with pytest.raises(UnknownAgent) as refused:
        find(mesh, path)
    assert refused.value.message.startswith(message)
    assert hint in refused.value.hint
    assert len(refused.value.message) < 200


def test_a_path_goes_by_the_names_of_today_and_says_what_a_name_became(mesh: Mesh):
    reader = mesh.fork(mesh.root, "reader")
    tester = mesh.fork(reader, "tester")
    mesh.run(agents.rename, reader, "scout")
    assert find(mesh, "root/scout/tester") == tester
    with pytest.raises(UnknownAgent, match="there is no 'reader' below root") as refused:
        find(mesh, "root/reader/tester")
    assert "reader was renamed: it is scout" in refused.value.hint


def test_a_path_of_another_session_leads_nowhere(mesh: Mesh):
    mesh.fork(mesh.new_session(), "stranger")
    with pytest.raises(UnknownAgent, match="there is no 'stranger' below root"):
        find(mesh, "root/stranger")


def test_what_is_read_for_many_does_not_grow_with_the_session(mesh: Mesh):
    there = [add(mesh, f"{n:08x}-0000-4000-8000-000000000001", f"a{n}") for n in range(600)]
    read = "select seq_tup_read + coalesce(idx_tup_fetch, 0) from pg_stat_xact_user_tables where relname = 'agents'"
    asked = [str(agent) for agent in there[:50]] + [f"a{n}" for n in range(50)] + ["root"]
    with mesh.conn.transaction():
        before = mesh.conn.execute(read).fetchall()[0][0]
        found = agents.resolve_all(mesh.conn, mesh.session, asked, None)
        after = mesh.conn.execute(read).fetchall()[0][0]
    assert [ref.id for ref in found if isinstance(ref, Ref)] == [*there[:50], *there[:50], mesh.root]
    assert after - before <= 2 * len(asked)
