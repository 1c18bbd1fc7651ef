"""Agents that call tools of MCP servers: through the engine, with real workers and a scripted model."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from agentmesh.config.mcp import Mcp, McpServer, McpServers, NamedServer
from agentmesh.domain.images import tokens
from agentmesh.domain.states import PermissionMode
from agentmesh.engine.calls import DIED
from agentmesh.llm.simulator.reply import ScriptedCall
from agentmesh.llm.simulator.request import ChatRequestView
from agentmesh.store import person, requests
from agentmesh.tools import toolset
from agentmesh.tools.mcp.hub import Hub
from tests.fixtures.engine import Rig, call, do, say, until
from tests.fixtures.pictures import png
from tests.tools.calling import is_alive

SERVER = Path(__file__).with_name("mcp_server.py")
SERVERS = McpServers(
    {"t": NamedServer("t", McpServer(command=sys.executable, args=(str(SERVER), "clings")), "the file")}
)


def begin(rig: Rig, mode: PermissionMode = PermissionMode.ALL, attended: bool = True) -> None:
    """Begin a session whose root has the tools of the server, as a program lists them that begins one."""
    rig.root = rig.session(mode=mode)
    hub = Hub(lambda _workdir: SERVERS, Mcp(), os.environ)
    try:
        tools = [*toolset.definitions(toolset.builtin(rig.db)), *hub.definitions(rig.workdir)]
    finally:
        hub.close()
    rig.db.run(person.set_settings, rig.root, tools=tools, what="tools")
    if not attended:
        rig.db.run(requests.set_attended, session_of(rig), False, idempotent=True)


def session_of(rig: Rig) -> Any:
    return rig.one("select session_id from agentmesh.agents where id = %s", rig.root)


def lines(rig: Rig, file: str) -> list[str]:
    path = rig.workdir / file
    return path.read_text().split() if path.exists() else []


def pids(rig: Rig) -> list[int]:
    return [int(line) for line in lines(rig, "starts")]


def test_an_agent_calls_a_tool_and_its_model_sees_the_result(rig: Rig):
    begin(rig)
    rig.script("root", do(call("mcp__t__echo", text="hello")), say("seen"))
    rig.worker(mcp=SERVERS)
    assert rig.run() == "seen"
    assert rig.results() == [{"output": "hello"}]
    first, second = rig.requests()
    names = [tool["function"]["name"] for tool in first.body["tools"]]
    assert "mcp__t__echo" in names
    assert first.body["tools"] == second.body["tools"]
    assert second.body["messages"][-1]["content"] == '{"output": "hello"}'


def test_a_model_that_sees_is_shown_the_image_of_a_result_and_so_is_its_fork(rig: Rig):
    (rig.workdir / "shot").write_bytes(png(640, 480))
    begin(rig)
    rig.script("root", do(call("mcp__t__gallery")), do(call("fork", name="child", prompt="go")))
    rig.worker(mcp=SERVERS)
    rig.run()
    rig.rest()
    digest = hashlib.sha256(png(640, 480)).hexdigest()
    for agent, number in (("root", 1), ("child", 0)):
        view = ChatRequestView(rig.requests(agent)[number].body)
        assert [one.sha256 for one in view.images] == [digest, digest]
    (kept,) = rig.conn.execute("select digest, width from agentmesh.images").fetchall()
    assert kept == (digest, 640)
    counted = "select sum(agentmesh.image_bytes(kind, content)) from agentmesh.transcript where kind = 'tool_result'"
    assert rig.one(counted) == 2 * 4 * tokens(640, 480)


def test_a_fork_has_the_same_tools_and_another_call_the_same_server(rig: Rig):
    begin(rig)
    rig.script("root", do(call("mcp__t__echo", text="1"), call("fork", name="child", prompt="go")), say("done"))
    rig.script("child", do(call("mcp__t__echo", text="2")), say("done"))
    rig.worker(mcp=SERVERS)
    rig.run()
    assert rig.results("mcp__t__echo", "child") == [{"output": "2"}]
    assert rig.requests("child")[0].body["tools"] == rig.requests()[0].body["tools"]
    assert len(pids(rig)) == 2  # one that listed the tools, one for both agents


def test_a_missing_argument_is_told_with_those_that_the_tool_takes(rig: Rig):
    begin(rig)
    rig.script("root", do(call("mcp__t__echo", words="hello")), say("done"))
    rig.worker(mcp=SERVERS)
    rig.run()
    (result,) = rig.results()
    assert "text is missing" in result["error"]
    assert "mcp__t__echo takes: text." in result["hint"]
    assert not lines(rig, "calls")


@pytest.mark.parametrize(
    "half", ['{"text": "a\\ud83d"}', '{"text": {"a\\udc00": ["x"]}}', r'{"text": "", "items": "[\"\\ud83d\"]"}']
)
def test_half_a_character_is_refused_and_does_not_end_the_server(rig: Rig, half: str):
    begin(rig)
    calls = do(call("mcp__t__echo", text="1"), ScriptedCall("mcp__t__add", half), call("mcp__t__echo", text="2"))
    rig.script("root", calls, say("done"))
    rig.worker(mcp=SERVERS)
    rig.run()
    first, refused, second = rig.results()
    assert (first, second) == ({"output": "1"}, {"output": "2"})
    assert "half of a character" in refused["error"]
    assert len(pids(rig)) == 2  # one that listed the tools, one for all calls


def test_a_call_is_asked_about_whatever_the_server_says_of_it(rig: Rig):
    begin(rig, PermissionMode.ASK)
    rig.script("root", do(call("mcp__t__add", number=1)), do(call("mcp__t__add", number=2)), say("done"))
    rig.worker(mcp=SERVERS)
    rig.prompt()
    (request,) = until(lambda: rig.db.run(requests.pending, session_of(rig)))
    assert (request.kind, request.tool, request.arguments) == ("approval", "mcp__t__add", {"number": 1})
    assert not lines(rig, "calls")
    rig.db.run(requests.answer, request.id, {"decision": "always"}, "tester")
    rig.rest()
    assert [result["output"] for result in rig.results()] == ['{"number": 1}', '{"number": 2}']


def test_with_nobody_to_ask_it_is_refused_and_the_flag_named(rig: Rig):
    begin(rig, PermissionMode.ASK, attended=False)
    rig.script("root", do(call("mcp__t__echo", text="hello")), say("done"))
    rig.worker(mcp=SERVERS)
    rig.run()
    assert rig.results()[0]["allow_with"] == "--permission-mode all"
    assert not lines(rig, "calls")


@pytest.mark.parametrize("mode", [PermissionMode.PLAN, PermissionMode.EDITS])
def test_no_careful_mode_allows_it(rig: Rig, mode: PermissionMode):
    begin(rig, mode, attended=False)
    rig.script("root", do(call("mcp__t__echo", text="hello")), say("done"))
    rig.worker(mcp=SERVERS)
    rig.run()
    assert rig.results()[0]["refused"] is True
    assert not lines(rig, "calls")


@pytest.mark.parametrize(
    ("effect", "pattern", "is_called"),
    [("deny", "mcp__t__*", False), ("deny", "mcp__u__*", True), ("ask", "mcp__t__echo", True)],
)
def test_rules_name_servers_and_tools(rig: Rig, effect: str, pattern: str, is_called: bool):
    begin(rig)
    layer = f'[[{{"effect": "{effect}", "tool": "{pattern}", "pattern": "*"}}]]'
    rig.conn.execute("update agentmesh.agents set permissions = %s where id = %s", [layer, rig.root])
    rig.script("root", do(call("mcp__t__echo", text="hello")), say("done"))
    rig.worker(mcp=SERVERS)
    rig.run()
    assert bool(lines(rig, "calls")) is is_called


def test_an_interrupt_ends_the_call_and_the_agent_is_idle(rig: Rig):
    begin(rig)
    rig.script("root", do(call("mcp__t__late")), say("not reached"))
    rig.worker(mcp=SERVERS)
    rig.prompt()
    until(lambda: lines(rig, "calls"))
    rig.interrupt("root")
    rig.rest()
    assert rig.results()[0]["interrupted"] is True
    until(lambda: lines(rig, "heard"))


def test_killing_an_agent_and_stopping_the_worker_leaves_no_process(rig: Rig):
    begin(rig)
    rig.fork("child", "go")
    rig.script("child", do(call("mcp__t__brood")), do(call("mcp__t__hang")))
    worker = rig.worker(mcp=SERVERS)
    until(lambda: lines(rig, "calls") == ["brood", "hang"])
    (bred,) = (int(result["output"]) for result in rig.results("mcp__t__brood", "child"))
    assert is_alive(bred)
    rig.kill("child")
    until(lambda: worker.worker.idle_since is not None)
    worker.close()
    until(lambda: not any(map(is_alive, [bred, *pids(rig)])))


@pytest.mark.timeout(180)
def test_a_call_that_a_crash_cut_off_is_told_and_never_repeated(rig: Rig):
    begin(rig)
    rig.script("root", do(call("mcp__t__hang")), say("told"))
    first = rig.process(mcp=SERVERS)
    rig.prompt()
    until(lambda: lines(rig, "calls"), seconds=120)  # it imports the SDK first
    first.process.kill()
    first.join()
    until(lambda: not any(map(is_alive, pids(rig))))
    rig.bury(first.worker_id)
    rig.worker(mcp=SERVERS)
    rig.rest()
    assert rig.last() == ("told", None)
    assert rig.results()[0]["error"] == DIED
    assert lines(rig, "calls") == ["hang"]


def test_a_session_goes_on_without_a_server_that_is_gone(rig: Rig):
    begin(rig)
    rig.script("root", do(call("mcp__t__echo", text="hello")), say("done"))
    rig.worker()
    assert rig.run() == "done"
    assert "not configured any more, or not trusted" in rig.results()[0]["error"]


def test_a_sub_agent_has_them_and_one_that_only_explores_has_not(rig: Rig):
    begin(rig)
    general = call("task", description="all", prompt="[all] go")
    careful = call("task", description="looks", prompt="[looks] go", subagent_type="explore")
    rig.script("root", do(general, careful), say("done"))
    rig.worker(mcp=SERVERS)
    rig.run()

    def names(agent: str) -> list[str]:
        return [tool["function"]["name"] for tool in rig.requests(agent)[0].body["tools"]]

    assert "mcp__t__echo" in names("all")
    assert not [name for name in names("looks") if name.startswith("mcp__")]
