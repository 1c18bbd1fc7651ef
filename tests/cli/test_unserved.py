"""Issue 17, point 5: agents that nobody runs are not shown as running without a word."""

from __future__ import annotations

import psycopg
import pytest

from agentmesh.app import HostAndUser

_HINT = "No worker serves this session, so its 1 running agent stands still: agentmesh worker goes on with it."


@pytest.mark.parametrize("command", ["ps", "tree"])
def test_17_5_that_no_worker_serves_a_running_agent_is_said(am, mesh, here, command):
    mesh.call(mesh.fork(here, "sleeper", "sleep"), "bash")
    assert "worker" not in am(command).err
    mesh.conn.execute("update agentmesh.workers set seen_at = now() - interval '65 s'")
    done = am(command)
    assert done.code == 0
    assert "sleeper" in done.out
    assert _HINT in done.err
    assert _HINT in am(command, "--json").err, "data stays data"


@pytest.mark.parametrize("command", ["ps", "tree"])
def test_17_5_a_worker_that_was_killed_is_missed_at_once(am, mesh, here, database_url, command):
    mesh.fork(here, "sleeper", "sleep")
    place = HostAndUser.here()
    with psycopg.connect(database_url, autocommit=True) as connection:
        worker = mesh.join(connection, host=place.host, os_user=place.os_user, pid=2**31 - 1)
        mesh.conn.execute("update agentmesh.workers set ended_at = now() where id <> %s", [worker])
        assert "worker" not in am(command).err
    assert _HINT in am(command).err, "its lock is gone, though it was seen a moment ago"


@pytest.mark.parametrize("command", ["ps", "tree"])
def test_17_5_a_session_in_which_nobody_runs_needs_no_worker(am, mesh, here, command):
    mesh.fork(here, "idle")
    mesh.conn.execute("update agentmesh.workers set ended_at = now()")
    assert "worker" not in am(command).err


def test_17_5_one_that_only_another_program_can_run_is_said_with_its_name(am, mesh, here):
    mesh.fork(here, "forecast", "x")
    mesh.conn.execute("update agentmesh.workers set ended_at = now()")
    mesh.conn.execute("update agentmesh.sessions set needs = '{tool weather}' where id = %s", [mesh.session_of(here)])
    assert "the Python program that has tool weather goes on with it" in am("tree").err


def test_17_5_ps_of_all_sessions_names_each(am, mesh, here):
    mesh.fork(here, "one", "x")
    mesh.fork(mesh.root, "two", "x")
    mesh.conn.execute("update agentmesh.workers set ended_at = now()")
    said = am("ps", "--all").err
    for session in (mesh.session, mesh.session_of(here)):
        assert f"No worker serves session {str(session)[:8]}, so its 1 running agent" in said


def test_17_5_who_waits_for_agents_that_nobody_runs_is_told(am, mesh, here):
    mesh.fork(here, "sleeper", "x")
    mesh.conn.execute("update agentmesh.workers set ended_at = now()")
    done = am("wait", "--timeout", "0.5")
    assert done.code == 3
    assert _HINT in done.err
