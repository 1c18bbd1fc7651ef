"""What a run leaves behind: commands in the background end with it, and messages that are due later are named."""

from __future__ import annotations

import json
import os
import signal

import pytest

from agentmesh.app import open_mesh
from agentmesh.cli.headless import Headless
from agentmesh.cli.render.progress import Progress
from agentmesh.config.settings import load
from agentmesh.domain.states import PermissionMode
from agentmesh.llm.simulator.reply import ScriptedCall, ScriptedReply
from agentmesh.llm.simulator.request import ChatRequestView
from agentmesh.llm.simulator.server import Simulator
from tests.fixtures.engine import until

STARTED = "I started it."
NOTE = "select content #>> '{result,note}' from agentmesh.transcript where kind = 'tool_result'"


def start(command: str) -> ScriptedReply:
    return ScriptedReply(tool_calls=(ScriptedCall("bash", {"command": command, "background": True}),))


def model(*replies: ScriptedReply) -> Simulator:
    """A model with these answers, and a word of its own after them."""

    def reply(view: ChatRequestView) -> ScriptedReply:
        step = view.steps_since(-1)
        return replies[step] if step < len(replies) else ScriptedReply("Nothing is left to say.")

    return Simulator(reply)


def at(server: Simulator) -> dict[str, str]:
    return {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none", "AGENTMESH_MODEL": "openai/m"}


def test_a_command_that_is_left_when_all_rest_ends_with_the_run_which_says_so(am, mesh):
    with model(start("echo up; exec sleep 1000"), ScriptedReply(STARTED)) as server:
        done = am("run", "--permission-mode", "all", "go", **at(server))
        again = am("run", "-c", stdin=None, **at(server))
    assert (done.code, done.out) == (0, f"{STARTED}\n"), done.err
    assert "Ended with the run: 1 command in the background (root: echo up; exec sleep 1000)." in done.err
    assert len(server.requests) == 2
    assert mesh.column("select state from agentmesh.processes") == ["killed"]
    assert mesh.column("select distinct status from agentmesh.agents") == ["idle"]
    assert mesh.one("select count(*) from agentmesh.mail where read_at is null") == 0
    assert "ends with this run" in mesh.one(NOTE)
    assert (again.code, "Nothing is left to do" in again.err) == (2, True), again.err


def test_json_has_the_command_that_ended_with_the_run(am, mesh):
    with model(start("exec sleep 1000"), ScriptedReply(STARTED)) as server:
        done = am("run", "--json", "--permission-mode", "all", "go", **at(server))
    last = done.events[-1]
    (ended,) = last["processes"]
    assert (last["status"], last["result"], last["timers"]) == ("completed", STARTED, [])
    assert (ended["process_id"], ended["command"], ended["state"]) == (1, "exec sleep 1000", "killed")
    assert ended["agent"]["name"] == "root"
    told = [event for event in done.events if event.get("about") == "process"]
    assert ["was stopped" in event["text"] for event in told] == [True]


def test_a_command_that_an_agent_waits_for_keeps_the_run_going(am, mesh):
    wait = ScriptedReply(tool_calls=(ScriptedCall("wait", {"timeout": 600}),))
    with model(start("echo built"), wait, ScriptedReply("It is built.")) as server:
        done = am("run", "--permission-mode", "all", "go", **at(server))
    assert (done.code, done.out) == (0, "It is built.\n"), done.err
    assert "Ended with the run" not in done.err
    assert mesh.column("select state from agentmesh.processes") == ["exited"]


def test_a_command_that_ends_by_itself_after_the_look_at_the_agents_keeps_the_run_going(database_url, tmp_path, mesh):
    work, end = tmp_path / "work", tmp_path / "work" / "end"
    work.mkdir()

    class Late(Headless):
        """Its first look that finds all agents at rest is followed by the command's own end."""

        def _tell_all(self, heard):
            now = super()._tell_all(heard)
            if not end.exists() and not any(agent.is_working for agent in now):
                end.touch()
                until(lambda: not self._mesh.processes.any_running, "the command's end")
            return now

    command = start("until test -e end; do sleep 0.05; done")
    with model(command, ScriptedReply(STARTED), ScriptedReply("It is built.")) as server:
        environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **at(server)}
        settings = load({"database_url": database_url, "data_dir": str(tmp_path / "data")}, environ, None)
        with open_mesh(settings, role="test", what="test", environ=environ) as opened:
            session = opened.start_session(work, model="openai/m", mode=PermissionMode.ALL)
            result = Late(opened, session, Progress(), None).run("go", (), concurrency=None, timeout=None)
    assert (result.status, result.text) == ("completed", "It is built.")
    assert list(result.processes) == []
    assert mesh.column("select state from agentmesh.processes") == ["exited"]
    assert mesh.column("select distinct status from agentmesh.agents") == ["idle"]


def test_a_run_that_is_interrupted_ends_its_commands_too_and_leaves_all_idle(am, mesh):
    wait = ScriptedReply(tool_calls=(ScriptedCall("wait", {"timeout": 600}),))
    command = ("run", "--json", "--permission-mode", "all", "go")
    with model(start("exec sleep 1000"), wait) as server, am.start(*command, **at(server)) as run:
        run.stdin.close()
        for line in run.stdout:
            if json.loads(line)["type"] == "tool_result":
                break
        run.send_signal(signal.SIGINT)
        last = json.loads(run.stdout.read().splitlines()[-1])
        assert run.wait(30) == 130
    assert (last["status"], [one["state"] for one in last["processes"]]) == ("interrupted", ["killed"])
    assert mesh.column("select distinct status from agentmesh.agents") == ["idle"]


@pytest.mark.parametrize("many", [1, 2])
def test_messages_that_are_due_later_are_named(am, mesh, many):
    alarm = ScriptedCall("send", {"to": "root", "message": "wake me", "after": 3600})
    with model(ScriptedReply(tool_calls=(alarm,) * many), ScriptedReply("I set an alarm.")) as server:
        done = am("run", "go", **at(server))
        last = am("run", "-c", "--json", "and now?", **at(server)).events[-1]
    assert (done.code, done.out) == (0, "I set an alarm.\n"), done.err
    assert "Due later, if a worker runs then (agentmesh worker): " in done.err
    assert f"{many} message{'s' * (many > 1)}, the first at 2" in done.err
    assert [(one["to"]["name"], one["body"]) for one in last["timers"]] == [("root", "wake me")] * many
    assert json.dumps(last["processes"]) == "[]"


def test_a_command_of_another_worker_goes_on_and_is_named(am, mesh, here):
    mesh.conn.execute(
        "insert into agentmesh.processes (session_id, id, agent_id, seq, ordinal, worker_id, command)"
        " select session_id, 7, id, 1, 0, %s, 'npm run dev' from agentmesh.agents where id = %s",
        [mesh.worker, here],
    )
    done = am("run", "-c", "--json", "list files")
    assert done.code == 0, done.err
    assert "Goes on with another worker: 1 command in the background (root: npm run dev)." in done.err
    assert [(one["process_id"], one["state"]) for one in done.events[-1]["processes"]] == [(7, "running")]
