"""``agentmesh processes``: list, read and stop commands in the background."""

from __future__ import annotations

import pytest


@pytest.fixture
def process(mesh, here) -> int:
    """A process of the root, as its row says it."""
    mesh.conn.execute(
        "insert into agentmesh.processes (session_id, id, agent_id, seq, ordinal, worker_id, command, watch, output)"
        " select session_id, 7, id, 1, 0, %s, %s, 'x', %s from agentmesh.agents where id = %s",
        [mesh.worker, "npm run\n[red]dev[/red] ünï", "one\n\x1b[2Jtwo\n", here],
    )
    return 7


def test_without_a_process_it_says_so(am, here):
    shown = am("processes")
    assert (shown.code, shown.out, shown.err) == (0, "", "No command was started in the background.\n")


def test_a_process_is_listed_with_its_command_as_it_is(am, mesh, process):
    assert "7  running, 0 lines matched" in am("processes").out
    assert "root: npm run [red]dev[/red] ünï" in am("processes").out
    mesh.conn.execute("update agentmesh.processes set matches = 1")
    assert "7  running, 1 line matched" in am("processes").out
    (shown,) = am("processes", "--json").data
    assert (shown["process_id"], shown["state"], shown["agent"]["name"]) == (7, "running", "root")


def test_its_output_cannot_steer_the_terminal(am, process):
    assert "\x1b" not in am("processes", "--output", "7").out
    assert am("processes", "--output", "7", "--json").data["output"].startswith("one\n")


def test_a_stop_is_stored_for_its_worker(am, mesh, process):
    assert am("processes", "--stop", "7").err == "Process 7 is being stopped.\n"
    assert mesh.one("select stop_at is not null from agentmesh.processes")
    mesh.conn.execute("update agentmesh.processes set state = 'killed', ended_at = clock_timestamp()")
    assert am("processes", "--stop", "7").err == "Process 7 has ended already.\n"


@pytest.mark.parametrize("option", ["--stop", "--output"])
def test_a_process_that_is_not_there_is_named(am, here, option):
    refused = am("processes", option, "77")
    assert (refused.code, refused.out) == (1, "")
    assert "there is no process 77" in refused.err


@pytest.mark.parametrize("words", [("--stop", "0"), ("--stop", "x"), ("--stop", "1", "--output", "1")])
def test_a_call_without_sense_is_refused(am, here, words):
    refused = am("processes", *words)
    assert (refused.code, refused.out) == (2, "")
    assert "Traceback" not in refused.err
