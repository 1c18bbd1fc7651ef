"""Races around processes: who comes first decides, and each piece of news is one mail."""

from __future__ import annotations

import psycopg
import pytest

from agentmesh.domain.errors import DeadAgent, Fenced, TooManyProcesses
from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import AgentStatus, WaitOutcome
from agentmesh.store import agents, processes, sessions, steps, waits, workers
from agentmesh.store.call import Lease
from agentmesh.store.errors import translated
from agentmesh.store.processes import ProcessKey
from tests.fixtures.blocking import Stage
from tests.fixtures.mesh import Mesh

pytestmark = [pytest.mark.only_rows, pytest.mark.usefixtures("nothing_is_broken")]


@pytest.fixture
def call(mesh: Mesh) -> Lease:
    """A call of an agent below the root that starts a process."""
    return mesh.call(mesh.fork(mesh.root, "a", "work"), "bash", "bash")[0]


@pytest.fixture
def key(mesh: Mesh, call: Lease) -> ProcessKey:
    """A process that is watched, of an agent that is idle now."""
    number = mesh.run(processes.start, call, "npm run dev", "ready")
    for ordinal in (0, 1):
        mesh.finish(call.call(call.seq or 0, ordinal))
    mesh.answer(call.agent_id)
    assert mesh.status(call.agent_id) is AgentStatus.IDLE
    return ProcessKey(mesh.session, number, call.worker_id)


def exits(conn: psycopg.Connection, key: ProcessKey) -> bool:
    return processes.finish(conn, key, "exited", 0, "built\n", 6)


def matches(conn: psycopg.Connection, key: ProcessKey, number: int = 1) -> bool:
    return processes.match(conn, key, f"ready {number}", number)


def loses(conn: psycopg.Connection) -> int:
    """Let the tick find processes whose worker has ended."""
    row = conn.execute("select agentmesh.lose_processes()").fetchone()
    assert row is not None
    return int(row[0])


def state(mesh: Mesh) -> str:
    return str(mesh.one("select state from agentmesh.processes"))


def news(mesh: Mesh) -> list[str]:
    """Return what the owner was told, read or not: the first word of each mail."""
    told = mesh.column("select body from agentmesh.mail where about = 'process' order by id")
    return [text.partition(") ")[2].removeprefix("is ").removeprefix("was ").split()[0].strip(":,") for text in told]


def the_worker_ends(mesh: Mesh, key: ProcessKey) -> None:
    mesh.run(workers.release, key.worker)


@pytest.mark.parametrize("whole", [False, True], ids=["kill", "end of the session"])
def test_an_exit_that_comes_first_is_told_and_then_its_owner_dies(
    mesh: Mesh, stage: Stage, key: ProcessKey, call: Lease, whole: bool
):
    assert exits(stage.holder, key)
    end = stage.meanwhile(lambda conn: dies(conn, call.agent_id, whole=whole), blocks=True)
    stage.holder.commit()
    end.result()
    assert (state(mesh), news(mesh)) == ("exited", ["exited"])


@pytest.mark.parametrize("whole", [False, True], ids=["kill", "end of the session"])
def test_an_exit_that_comes_after_the_death_of_its_owner_is_nobodys_news(
    mesh: Mesh, stage: Stage, key: ProcessKey, call: Lease, whole: bool
):
    dies(stage.holder, call.agent_id, whole=whole)
    late = stage.meanwhile(lambda conn: exits(conn, key), blocks=True)
    stage.holder.commit()
    assert late.result() is False
    assert (state(mesh), news(mesh)) == ("killed", [])


def test_a_kill_rolled_back_lets_the_exit_be_told(mesh: Mesh, stage: Stage, key: ProcessKey, call: Lease):
    agents.kill(stage.holder, call.agent_id)
    late = stage.meanwhile(lambda conn: exits(conn, key), blocks=True)
    stage.holder.rollback()
    assert late.result() is True
    assert (state(mesh), news(mesh)) == ("exited", ["exited"])


def dies(conn: psycopg.Connection, agent: AgentId, *, whole: bool) -> None:
    """Kill the agent, or end its whole session."""
    if whole:
        row = conn.execute("select session_id from agentmesh.agents where id = %s", [agent]).fetchone()
        assert row is not None
        sessions.end_session(conn, row[0])
    else:
        agents.kill(conn, agent)


def test_the_tick_passes_over_a_process_that_tells_a_line_and_the_next_one_finds_it(
    mesh: Mesh, stage: Stage, key: ProcessKey
):
    the_worker_ends(mesh, key)
    assert matches(stage.holder, key)
    tick = stage.meanwhile(loses, blocks=False)
    assert tick.result() == 0
    stage.holder.commit()
    assert mesh.run(loses) == 1
    assert (state(mesh), news(mesh)) == ("lost", ["wrote", "lost"])


@pytest.mark.parametrize("late", [matches, exits], ids=["line", "exit"])
def test_what_a_dead_worker_says_after_the_tick_is_not_told(mesh: Mesh, stage: Stage, key: ProcessKey, late):
    the_worker_ends(mesh, key)
    assert loses(stage.holder) == 1
    said = stage.meanwhile(lambda conn: late(conn, key), blocks=True)
    stage.holder.commit()
    assert said.result() is False
    assert (state(mesh), news(mesh)) == ("lost", ["lost"])


def test_two_ticks_at_once_tell_of_a_lost_process_once(mesh: Mesh, stage: Stage, key: ProcessKey):
    the_worker_ends(mesh, key)
    assert loses(stage.holder) == 1
    assert stage.meanwhile(loses, blocks=False).result() == 0
    stage.holder.commit()
    assert mesh.run(loses) == 0
    assert news(mesh) == ["lost"]


def test_the_same_line_sent_twice_at_once_is_told_once(mesh: Mesh, stage: Stage, key: ProcessKey):
    assert matches(stage.holder, key)
    again = stage.meanwhile(lambda conn: matches(conn, key), blocks=True)
    stage.holder.commit()
    assert again.result() is True
    assert news(mesh) == ["wrote"]
    assert mesh.one("select matches from agentmesh.processes") == 1


def test_the_same_exit_sent_twice_at_once_is_told_once(mesh: Mesh, stage: Stage, key: ProcessKey):
    assert exits(stage.holder, key)
    again = stage.meanwhile(lambda conn: exits(conn, key), blocks=True)
    stage.holder.commit()
    assert again.result() is False
    assert news(mesh) == ["exited"]


def test_a_line_while_its_owner_reads_the_one_before_is_a_mail_of_its_own(
    mesh: Mesh, stage: Stage, key: ProcessKey, call: Lease
):
    mesh.run(matches, key)
    mesh.claim()
    steps.begin_step(stage.holder, mesh.lease(call.agent_id), 0)
    line = stage.meanwhile(lambda conn: matches(conn, key, 2), blocks=True)
    stage.holder.commit()
    assert line.result() is True
    assert mesh.unread(call.agent_id) == ["Process 1 (npm run dev) wrote: ready 2\n(2 lines matched so far)"]
    assert news(mesh) == ["wrote", "wrote"]


def test_a_line_that_comes_before_the_reading_is_only_counted(mesh: Mesh, stage: Stage, key: ProcessKey, call: Lease):
    mesh.run(matches, key)
    mesh.claim()
    lease = mesh.lease(call.agent_id)
    matches(stage.holder, key, 2)
    step = stage.meanwhile(lambda conn: steps.begin_step(conn, lease, 0), blocks=True)
    stage.holder.commit()
    assert [row.content["text"] for row in step.result().rows if row.kind == "mail"] == [
        "Process 1 (npm run dev) wrote: ready 1"
    ]
    assert mesh.unread(call.agent_id) == []
    assert mesh.one("select matches from agentmesh.processes") == 2


def test_a_worker_that_reads_the_mail_and_dies_leaves_nothing_for_the_next_to_read(
    mesh: Mesh, stage: Stage, key: ProcessKey, call: Lease
):
    mesh.run(exits, key)
    mesh.claim()
    old = mesh.lease(call.agent_id)
    steps.begin_step(stage.holder, old, 0)
    release = stage.meanwhile(lambda conn: workers.release(conn, key.worker), blocks=True)
    stage.holder.commit()
    release.result()
    mesh.claim(worker=mesh.join())
    mesh.run(steps.begin_step, mesh.lease(call.agent_id), 0)
    with pytest.raises(Fenced):
        mesh.run(steps.begin_step, old, 0)
    rows = [content["text"] for kind, content in mesh.rows(call.agent_id) if kind == "mail"]
    assert [text.splitlines()[0] for text in rows] == ["Process 1 (npm run dev) exited with code 0"]


def test_two_readers_of_a_wait_that_it_ends_get_it_once(mesh: Mesh, stage: Stage, key: ProcessKey, call: Lease):
    assert mesh.person_waits(call.agent_id) is None
    mesh.run(exits, key)
    first = waits.wait_take(stage.holder, call.agent_id)
    other = stage.meanwhile(lambda conn: waits.wait_take(conn, call.agent_id), blocks=True)
    stage.holder.commit()
    found = [one["outcome"] for one in (first, other.result()) if one]
    assert found.count(WaitOutcome.PROCESS) == 1
    assert mesh.unread(call.agent_id) == []
    assert news(mesh) == ["exited"]


def test_a_start_that_comes_after_the_kill_is_refused(mesh: Mesh, stage: Stage, call: Lease):
    agents.kill(stage.holder, call.agent_id)
    late = stage.meanwhile(lambda conn: processes.start(conn, call, "x", None), blocks=True)
    stage.holder.commit()
    with pytest.raises((Fenced, DeadAgent)), translated():
        late.result()
    assert mesh.one("select count(*) from agentmesh.processes") == 0


def test_a_start_that_comes_first_dies_with_its_owner(mesh: Mesh, stage: Stage, call: Lease):
    processes.start(stage.holder, call, "x", None)
    kill = stage.meanwhile(lambda conn: agents.kill(conn, call.agent_id), blocks=True)
    stage.holder.commit()
    kill.result()
    assert (state(mesh), news(mesh)) == ("killed", [])


def test_two_starts_cannot_both_take_the_last_place(mesh: Mesh, stage: Stage, call: Lease):
    for ordinal in range(7):
        mesh.run(processes.start, call.call(call.seq or 0, ordinal), "x", None)
    processes.start(stage.holder, call.call(call.seq or 0, 7), "x", None)
    other = stage.meanwhile(lambda conn: processes.start(conn, call.call(call.seq or 0, 8), "x", None), blocks=True)
    stage.holder.commit()
    with pytest.raises(TooManyProcesses), translated():
        other.result()


def test_one_call_sent_twice_at_once_starts_one(mesh: Mesh, stage: Stage, call: Lease):
    first = processes.start(stage.holder, call, "x", None)
    again = stage.meanwhile(lambda conn: processes.start(conn, call, "x", None), blocks=True)
    stage.holder.commit()
    assert again.result() == first


@pytest.mark.parametrize("stop_first", [True, False])
def test_a_stop_and_an_exit_at_once_end_it_once(mesh: Mesh, stage: Stage, key: ProcessKey, stop_first: bool):
    def stop(conn: psycopg.Connection) -> bool:
        return processes.stop(conn, key.session, key.process)

    def end(conn: psycopg.Connection) -> bool:
        return exits(conn, key)

    first, second = (stop, end) if stop_first else (end, stop)
    assert first(stage.holder)
    other = stage.meanwhile(second, blocks=True)
    stage.holder.commit()
    assert other.result() is stop_first
    assert (state(mesh), news(mesh)) == ("exited", ["exited"])
