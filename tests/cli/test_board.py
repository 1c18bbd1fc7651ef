"""``agentmesh board``."""

from __future__ import annotations

from agentmesh.store import steps
from agentmesh.store.board import SESSIONS


def crew(mesh, here):
    """One agent of each kind."""
    rests = mesh.fork(here, "rests")
    for name in ("broken", "has-done", "asks"):
        mesh.fork(here, name, "do it")
    by_name = {
        name: mesh.one("select id from agentmesh.agents where name = %s", name) for name in ("broken", "has-done")
    }
    mesh.run(steps.fail_turn, mesh.begin(by_name["broken"]), {"error": "401: no such key"})
    mesh.begin(by_name["has-done"])
    mesh.answer(by_name["has-done"])
    return rests


def test_who_needs_a_person_comes_first(am, mesh, here):
    crew(mesh, here)
    done = am("board")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0].split()[:5] == ["AGENT", "NAME", "STATE", "SINCE", "DOES"]
    names = [line.split()[1] for line in lines[1:]]
    assert names[:2] == ["broken", "has-done"]
    assert set(names) == {"root", "broken", "has-done", "asks", "rests"}
    assert "▲ failed" in lines[1]
    assert "401: no such key" in lines[1]
    assert "● done" in lines[2]


def test_json_has_the_need_and_the_details(am, mesh, here):
    crew(mesh, here)
    first = am("board", "--json").data[0]
    assert (first["name"], first["need"], first["unseen"]) == ("broken", "failed", True)
    assert first["said"] == "401: no such key"
    assert first["since_seconds"] >= 0


def test_the_board_of_all_sessions_names_each(am, mesh, here):
    crew(mesh, here)
    done = am("board", "--all")
    assert done.code == 0, done.err
    assert "SESSION" in done.out.splitlines()[0]
    assert "broken" in done.out


def test_the_board_of_all_sessions_says_that_it_is_not_all(am, mesh, here):
    for _ in range(SESSIONS - 3):
        mesh.new_session()
    assert "newest" not in am("board", "--all").err
    mesh.new_session()
    mesh.new_session()
    for done in (am("board", "--all"), am("board", "--all", "--json")):
        assert f"those of the newest {SESSIONS} open sessions; agentmesh sessions --limit lists more" in done.err


def test_a_directory_without_a_session_says_so(am):
    done = am("board")
    assert done.code == 1
    assert "Traceback" not in done.err
