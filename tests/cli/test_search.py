"""search, fork --at and tree --at, as a person gives them."""

from __future__ import annotations

import json

import pytest

from agentmesh.store import sessions, transcript
from tests.fixtures.invariants import violations

NASTY = "\x1b[31m needle \x9b2J [bold]x[/] \u202e\n«forged»"
CONTROLS = {"\x1b", "\x9b", "\u202e"}


def test_a_search_prints_where_the_words_stand_and_marks_them(am, mesh, here):
    mesh.send(None, here, "look for the needle in src/parser.py")
    mesh.answer(here, "no such thing")
    mail = mesh.send(None, mesh.fork(here, "child"), "another Needle")
    done = am("search", "needle")
    assert done.code == 0
    first, snippet, second, more = done.out.splitlines()
    assert first.startswith("child  20")
    assert first.endswith(f"unread message {mail}")
    assert snippet == "    another «Needle»"
    assert second.startswith("root:1  20")
    assert second.endswith("user")
    assert more == "    look for the «needle» in src/parser.py"
    assert am("search", "parser.py", "look").out.splitlines()[1] == "    «look» for the needle in src/«parser.py»"
    assert am("search", "--agent", "root", "needle").out.count("needle") == 1


def test_a_search_as_json(am, mesh, here):
    mesh.send(None, here, NASTY)
    mesh.answer(here)
    done = am("search", "--json", "needle")
    (hit,) = done.data
    assert (hit["name"], hit["seq"], hit["kind"], hit["message_id"]) == ("root", 1, "user", None)
    assert (hit["agent_id"], hit["session_id"]) == (str(here), str(mesh.session_of(here)))
    assert not CONTROLS & set(done.out)
    text = am("search", "needle").out
    assert not CONTROLS & set(text)
    assert '«needle» 2J [bold]x[/] "forged"' in text, "nobody else writes the marks"


def test_a_search_that_finds_nothing_says_where_it_looked(am, mesh, here):
    mesh.send(None, mesh.root, "elsewhere a needle")
    none = am("search", "needle")
    assert (none.code, none.out) == (0, "")
    assert "--all looks into all" in none.err
    everywhere = am("search", "--all", "needle")
    assert f"session {str(mesh.session)[:8]}, agent {str(mesh.root)[:8]}" in everywhere.out
    assert am("search", "--session", str(mesh.session)[:8], "needle").out.startswith("root  20")
    assert am("search", "--all", "needle", "--limit", "1").err == "The newest 1: --limit shows more.\n"
    assert am("search", "--json", "nowhere").data == []


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["search"], "is empty"),
        (["search", "--", "-only"], "no word to look for"),
        (["search", "--all", "--agent", "root", "x"], "--all looks into all sessions"),
        (["search", "x" * 1001], "1001 bytes"),
    ],
)
def test_a_search_for_nothing_is_refused_with_advice(am, here, args, words):
    done = am(*args)
    assert done.code == 2
    assert words in done.err
    assert "Traceback" not in done.err


def test_a_fork_at_a_row_inherits_up_to_it(am, mesh, here):
    mesh.send(None, here, "one")
    mesh.answer(here, "two")
    mesh.send(None, here, "three")
    mesh.answer(here, "four")
    done = am("fork", "--at", "root:2", "try otherwise", "--json")
    assert (done.data["name"], done.data["seq"], done.data["session_id"]) == ("fork", 2, str(mesh.session_of(here)))
    assert mesh.unread(done.data["agent_id"]) == ["try otherwise"]
    idle = am("fork", "--at", f"{str(here)[:8]}:0", "--name", "Fresh Start")
    assert "Forked fresh-start (" in idle.err
    assert "at row 0" in idle.err
    assert [content["text"] for _, content in mesh.context(idle.out.strip())] == []


def test_a_row_inside_a_step_is_said_to_be_there(am, mesh, here):
    mesh.send(None, here, "one")
    (call,) = mesh.call(here, "bash")
    mesh.finish(call)
    done = am("fork", "--at", "root:2")
    assert "Row 2 of root is inside a step: the fork begins before that step, at row 1." in done.err


def test_the_numbers_of_rows_are_to_be_had(am, mesh, here):
    mesh.send(None, here, "one")
    mesh.answer(here, "two")
    assert am("log", "root", "--rows").out.splitlines() == ["root:1", "user ▸ one", "root:2", "root ▸ two"]


def test_from_the_dead_and_the_ended_a_new_session_begins(am, mesh, here):
    child = mesh.fork(here, "child", "work")
    mesh.answer(child, "as I said")
    mesh.kill(child)
    dead = am("fork", "--at", "child:2", "go on")
    assert "a copy of child (" in dead.err
    assert "agentmesh --resume " in dead.err
    root = dead.out.strip()
    assert [content.get("text") for _, content in mesh.context(root)] == ["work", "as I said"]
    session = mesh.session_of(root)
    assert session != mesh.session_of(here)
    assert mesh.unread(root) == ["go on"]
    mesh.run(sessions.end_session, mesh.session_of(here))
    ended = am("fork", "--at", f"{str(here)[:8]}:0", "--json").data
    assert (ended["name"], ended["seq"]) == ("root", 0)
    assert len({str(session), ended["session_id"], str(mesh.session_of(here))}) == 3
    alive = am("fork", "--at", f"{ended['agent_id']}:1", "--new-session", "--json").data
    assert alive["session_id"] != ended["session_id"]
    assert violations(mesh.conn) == []


@pytest.mark.parametrize(
    ("args", "words", "code"),
    [
        (["--at", "root"], "is not AGENT:ROW", 2),
        (["--at", ":3"], "is not AGENT:ROW", 2),
        (["--at", "root:99"], "has no row 99: its newest is 0", 2),
        (["--at", "nobody:0"], "no agent 'nobody'", 1),
        (["--at", "root:0", "a", "b"], "--at AGENT:ROW [--name NAME]", 2),
        (["--at", "root:0", "--parent", "root"], "--at AGENT:ROW [--name NAME]", 2),
        (["--at", "root:0", "--name", "x", "--new-session"], "Leave --name out", 2),
        (["x", "--new-session"], "go with --at", 2),
        ([], "Missing argument 'NAME'", 2),
    ],
)
def test_a_fork_that_makes_no_sense_is_refused(am, mesh, here, args, words, code):
    done = am("fork", *args)
    assert done.code == code
    assert words in done.err
    assert mesh.one("select count(*) from agentmesh.agents where session_id = %s", mesh.session_of(here)) == 1


def test_the_tree_of_a_time(am, mesh, here):
    session = mesh.session_of(here)
    child = mesh.fork(here, "child", "work")
    (call,) = mesh.call(child, "bash")
    then = mesh.one("select clock_timestamp()::text")
    mesh.finish(call)
    mesh.kill(child)
    told = am("tree", "--at", then, "--json").data
    assert told["session_id"] == str(session)
    (root,) = told["agents"]
    assert (root["name"], root["status"], root["seq"]) == ("root", "idle", 0)
    (was,) = root["children"]
    assert (was["name"], was["status"], was["activity"], was["seq"]) == ("child", "running", "tool: bash", 2)
    text = am("tree", "--at", then)
    assert "as far as its rows tell" in text.err
    assert "└─ child" in text.out
    assert "row 2" in text.out
    assert "✗ dead" in am("tree").out


@pytest.mark.parametrize(
    ("time", "words"),
    [
        ("yesterday", "is not a time"),
        ("2999-01-01", "in the future"),
        ("1999-01-01 10:00", "began later"),
        ("", "it is empty"),
    ],
)
def test_a_time_that_cannot_be_is_refused(am, here, time, words):
    done = am("tree", "--at", time)
    assert done.code == 2
    assert words in done.err


def test_a_child_at_a_row_of_the_demo_begins_there(am, mesh, here):
    """What search finds is what fork takes: the place of a hit is a way back."""
    mesh.send(None, here, "the needle")
    mesh.answer(here)
    place = am("search", "needle").out.split()[0]
    made = json.loads(am("fork", "--at", place, "--json").out)
    assert len(mesh.run(transcript.context, made["agent_id"])) == 1
