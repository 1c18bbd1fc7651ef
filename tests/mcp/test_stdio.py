"""`agentmesh mcp` over stdio, asked by the official client."""

from __future__ import annotations

import json
import signal
from typing import Any

import anyio
import pytest

from agentmesh.domain import commands
from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import AgentStatus
from agentmesh.store import person, processes, waits
from agentmesh.tools import tool_schema, toolset
from tests.fixtures.engine import until
from tests.fixtures.invariants import violations
from tests.fixtures.mesh import entry
from tests.fixtures.team import project
from tests.mcp.conftest import Desk, read, run, soon

pytestmark = pytest.mark.timeout(180)  # each starts Python several times

VERBS = ("fork", "interrupt", "kill", "list_agents", "peek", "process", "send", "todo", "wait")


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_tools_are_those_that_agents_see_and_one_to_read_transcripts(desk: Desk, db, mode: str):
    async def test():
        async with desk.guest(mode=mode) as guest:
            listed = {tool.name: tool for tool in (await guest.client.list_tools()).tools}
            assert list(listed) == sorted([*VERBS, "read_transcript"])
            seen = {name: tool_schema.full(tool)["function"] for name, tool in toolset.builtin(db).items()}
            for name in VERBS:
                assert name == "fork" or listed[name].input_schema == seen[name]["parameters"]
                others = ("fork", "process", "todo")
                assert name in others or listed[name].description == seen[name]["description"]
            assert "nothing of your own conversation" in str(listed["fork"].description)
            told = {key: words.get("description") for key, words in listed["fork"].input_schema["properties"].items()}
            theirs = {key: words.get("description") for key, words in seen["fork"]["parameters"]["properties"].items()}
            assert {key for key in told if told[key] != theirs[key]} == {"workspace", "type"}
            words = f"{told}{listed['todo'].description}"
            assert [name for name in ("task", "to merge", "todo_write") if name in words] == []
        assert desk.mesh.one("select count(*) from agentmesh.sessions") == 1, "the first call begins a session"

    run(test)


def test_fork_then_wait_brings_the_result(desk: Desk):
    async def test():
        async with desk.guest() as guest:
            forked = await guest.call("fork", name="File Reader", prompt="count the files")
            child = await guest.id("file-reader")
            assert forked == {"agent_id": str(child), "name": "file-reader"}
            assert desk.mesh.unread(child) == ["count the files"]
            desk.mesh.answer(child, "there are 3")
            result = await guest.call("wait", timeout="150", from_agents=["file-reader"])
            assert result == {
                "outcome": "complete",
                "results": [entry(child, "file-reader", "idle", output="there are 3")],
            }
            assert desk.mesh.status(await guest.id()) is AgentStatus.RUNNING

    run(test)


def test_a_forks_report_may_have_a_form_and_a_check_that_the_session_allows(desk: Desk):
    count = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

    async def test():
        async with desk.guest() as guest:
            made = await guest.call("fork", name="counter", prompt="count", schema=count, check="ls")
            assert "its tools differ" in made["cache"]
            row = "select (check_command, check_approved)::text from agentmesh.forms"
            assert desk.mesh.one("select schema from agentmesh.forms") == count
            assert desk.mesh.one(row) == "(ls,f)"
            refused = await guest.refused("fork", name="second", prompt="count", check="touch made")
            assert "the check was refused" in refused["error"]
            wrong = await guest.refused("fork", name="third", prompt="count", schema={"type": "wizard"})
            assert "invalid schema" in wrong["error"]
        assert desk.mesh.one("select count(*) from agentmesh.forms") == 1

    run(test)


def test_17_11_wait_gives_its_keys_in_the_contract_s_order_and_send_takes_a_number(desk: Desk):
    async def test():
        async with desk.guest() as guest:
            await guest.call("fork", name="coder", prompt="work")
            child = await guest.id("coder")
            assert (await guest.call("send", to="coder", message=5))["status"] == "sent"
            assert desk.mesh.unread(child) == ["work", "5"]
            desk.mesh.send(child, await guest.id(), "first")
            desk.mesh.send(child, await guest.id(), "second")
            result = await guest.call("wait", timeout=0, from_agents=["coder", "nobody"], wrong=1)
            assert list(result) == ["outcome", "results", "note"]
            received, unknown = result["results"]
            assert list(received) == ["agent_id", "name", "status", "message", "message_id", "more"]
            assert list(unknown) == ["agent_id", "error", "hint"]
            desk.mesh.send(None, await guest.id(), "stop")
            result = await guest.call("wait", timeout=60)
            assert [list(each) for each in result["results"]][1:] == [["name", "message"]]

    run(test)


def test_17_6_a_command_beside_a_lost_answer_of_a_wait_is_not_taken_for_it(desk: Desk):
    async def test():
        async with desk.guest() as guest:
            root = await guest.id()
            found: list[dict[str, Any]] = []

            async def wait() -> None:
                found.append(await guest.call("wait", timeout=150))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await soon(lambda: desk.mesh.run(waits.registered, root))
                desk.mesh.run(person.note, root, commands.row_content("send", ["x", "y"], "Sent."))
                desk.mesh.conn.execute("delete from agentmesh.wait")
                desk.mesh.conn.execute("select pg_notify('agent_event_' || %s, 'mail')", [root])
            assert [one["outcome"] for one in found] == ["interrupted"]

    run(test)


def test_an_agent_sends_to_the_client_which_waits_and_answers(desk: Desk):
    async def test():
        async with desk.guest("--session", desk.session(), "--name", "Claude Code") as guest:
            mesh, me = desk.mesh, await guest.id("claude-code")
            async with anyio.create_task_group() as tasks:
                answers: list[Any] = []

                async def wait() -> None:
                    answers.append(await guest.call("wait", timeout=150))

                tasks.start_soon(wait)
                await soon(lambda: mesh.run(waits.registered, me), "the wait")
                mesh.send(mesh.root, me, "which port?")
            asked = entry(mesh.root, "root", "received", message="which port?")
            assert answers == [{"outcome": "complete", "results": [asked]}]
            sent = await guest.call("send", to="parent", message="8080")
            assert sent["to"] == {"agent_id": str(mesh.root), "name": "root"}
            assert mesh.unread(mesh.root) == ["8080"]

    run(test)


def test_a_client_sends_urgently_but_not_later_too(desk: Desk):
    async def test():
        async with desk.guest("--session", desk.session(), "--name", "Claude Code") as guest:
            sent = await guest.call("send", to="parent", message="stop", urgent=True)
            assert desk.mesh.one("select urgent from agentmesh.v_mail where id = %s", sent["message_id"])
            refused = await guest.refused("send", to="parent", message="stop", urgent=True, after=60)
            assert refused["error"] == "a later message cannot be urgent"

    run(test)


def test_a_client_answers_the_message_that_its_wait_took(desk: Desk):
    async def test():
        async with desk.guest("--session", desk.session(), "--name", "Claude Code") as guest:
            mesh, me = desk.mesh, await guest.id("claude-code")
            asked = mesh.send(mesh.root, me, "which port?")
            (received,) = (await guest.call("wait", timeout=60))["results"]
            assert received["message_id"] == asked
            sent = await guest.call("send", message="8080", reply_to=received["message_id"])
            assert sent["to"] == {"agent_id": str(mesh.root), "name": "root"}
            assert mesh.one("select reply_to from agentmesh.v_mail where id = %s", sent["message_id"]) == asked
            assert (await guest.refused("send", message="8080"))["error"] == "to is missing"
            assert "there is no message 999" in (await guest.refused("send", message="x", reply_to=999))["error"]

    run(test)


def test_a_client_sends_to_several_and_a_later_message_to_one(desk: Desk):
    async def test():
        async with desk.guest("--session", desk.session(), "--name", "Claude Code") as guest:
            await guest.call("fork", name="a", prompt="work")
            await guest.call("fork", name="b", prompt="work")
            listed = await guest.call("send", to=["b", "parent"], message="x")
            assert [one["to"]["name"] for one in listed["sent"]] == ["b", "root"]
            children = await guest.call("send", to="children", message="y")
            assert [one["to"]["name"] for one in children["sent"]] == ["a", "b"]
            refused = await guest.refused("send", to=["a", "nobody"], message="x")
            assert "no agent 'nobody'" in refused["error"]
            later = await guest.refused("send", to="session", message="x", after=60)
            assert later["error"] == "a later message goes to one agent"

    run(test)


def test_a_client_sets_an_alarm_and_repeats_a_message(desk: Desk):
    async def test():
        async with desk.guest() as guest:
            await guest.call("fork", name="reader", prompt="work")
            cron = await guest.call("send", to="reader", message="look", cron="0 9 * * 1-5 Europe/Berlin")
            assert (cron["status"], cron["cron"]) == ("scheduled", "0 9 * * 1-5 Europe/Berlin")
            me = await guest.id()
            alarm = await guest.call("send", to=str(me), message="look again", after=0.1)
            assert (alarm["status"], alarm["to"]["agent_id"]) == ("scheduled", str(me))
            assert "cron" not in alarm
            waited = await guest.call("wait", timeout="150")
            assert waited["results"][0]["message"] == "look again"

    run(test)


def test_a_client_peeks_and_reads_nothing(desk: Desk):
    async def test():
        async with desk.guest("--session", desk.session(), "--name", "Claude Code") as guest:
            desk.mesh.send(None, await guest.id("claude-code"), "news")
            for _ in range(2):
                found = await guest.call("peek")
                assert found["unread"] == 1
                assert [one["begins"] for one in found["messages"]] == ["news"]

    run(test)


def test_a_client_reads_and_stops_the_processes_of_agents_below_it(desk: Desk):
    async def test():
        async with desk.guest("--session", desk.session()) as guest:
            await guest.call("fork", name="builder", prompt="build")
            for name in ("builder", "root"):
                lease = desk.mesh.call(await guest.id(name), "bash")[0]
                desk.mesh.run(processes.start, lease, f"make {name}", None)
            key = processes.ProcessKey(desk.mesh.session, 1, desk.mesh.worker)
            desk.mesh.run(processes.keep_output, key, "one\ntwo\n", 8)
            builder = {"agent_id": str(await guest.id("builder")), "name": "builder"}
            found = await guest.call("process")
            assert [(one["process_id"], one["command"], one["agent"]) for one in found["processes"]] == [
                (1, "make builder", builder)
            ]
            read = await guest.call("process", id=1, tail=1, stop=True)
            assert (read["state"], read["output"], read["truncated"]) == ("running", "two\n", True)
            assert "is being stopped" in read["note"]
            assert desk.mesh.one("select stop_at is not null from agentmesh.processes where id = 1")
            refused = await guest.refused("process", id=2, stop=True)
            assert refused["error"] == "You have no process 2."
            assert not desk.mesh.one("select stop_at is not null from agentmesh.processes where id = 2")

    run(test)


def test_a_client_works_from_the_board_that_agents_share(desk: Desk):
    async def test():
        async with desk.guest("--session", desk.session()) as guest:
            added = (await guest.call("todo", action="add", content="build"))["added"]
            test = (await guest.call("todo", action="add", content="test", after=[added["id"]]))["added"]
            assert (added["status"], added["ready"], test["ready"]) == ("open", True, False)
            claimed = (await guest.call("todo", action="claim"))["claimed"]
            assert (claimed["id"], claimed["owner"]["name"]) == (added["id"], "mcp")
            assert (await guest.call("todo", action="claim"))["claimed"] is None
            assert "must be done first" in (await guest.refused("todo", action="claim", id=test["id"]))["error"]
            listed = await guest.call("todo", action="list")
            assert ([one["status"] for one in listed["todos"]], listed["done"]) == (["claimed", "open"], 0)
            done = await guest.call("todo", action="done", id=added["id"], note="built")
            assert (done["done"]["note"], done["ready"]) == ("built", [test["id"]])
            await guest.call("todo", action="claim", id=test["id"])
            released = await guest.call("todo", action="release", id=test["id"])
            assert (released["released"]["status"], "owner" in released["released"]) == ("open", False)
            assert (await guest.refused("todo", action="done"))["error"] == "done needs an id"
            assert (await guest.refused("todo", action="add"))["error"] == "add needs content"
            assert "there is no todo 99" in (await guest.refused("todo", action="release", id=99))["error"]

    run(test)


def test_a_wait_that_is_cancelled_takes_no_mail_and_the_next_one_does(desk: Desk):
    async def test():
        async with desk.guest() as guest:
            mesh, me = desk.mesh, await guest.id()
            for name in ("a", "b"):
                await guest.call("fork", name=name, prompt="work")
            a, b = await guest.id("a"), await guest.id("b")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(guest.client.call_tool, "wait", {"timeout": 150, "from_agents": ["a", "b"]})
                await soon(lambda: mesh.run(waits.registered, me), "the wait")
                mesh.send(a, me, "half")
                tasks.cancel_scope.cancel()
            await soon(lambda: mesh.run(waits.registered, me) is None, "the end of the wait")
            assert mesh.unread(me) == ["half"]
            assert mesh.one("select count(*) from agentmesh.waits") == 0
            both = await guest.call("wait", timeout=0, from_agents=["a", "b"])
            assert both["results"] == [entry(a, "a", "received", message="half"), entry(b, "b", "running")]

    run(test)


def test_a_wait_that_is_given_up_is_over_before_the_next_begins(desk: Desk):
    async def test():
        async with desk.guest() as guest:
            await guest.call("fork", name="a", prompt="work")
            me = await guest.id()
            for _ in range(5):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(guest.client.call_tool, "wait", {"timeout": 150, "from_agents": ["a"]})
                    await soon(lambda: desk.mesh.run(waits.registered, me), "the wait")
                    tasks.cancel_scope.cancel()
                assert (await guest.call("wait", timeout=0, from_agents=["a"]))["outcome"] == "timeout"

    run(test)


def test_a_long_wait_reports_how_far_it_is(desk: Desk):
    async def test():
        async with desk.guest() as guest:
            for name in ("a", "b"):
                await guest.call("fork", name=name, prompt="work")
            reports: list[tuple[float, float | None, str | None]] = []

            async def note(progress: float, total: float | None, message: str | None) -> None:
                if not reports:
                    desk.mesh.answer(await guest.id("a"), "done")
                    desk.mesh.answer(await guest.id("b"), "done")
                reports.append((progress, total, message))

            arguments = {"timeout": 150, "from_agents": ["a", "b"]}
            answer = await guest.client.call_tool("wait", arguments, progress_callback=note)
            assert [each["status"] for each in read(answer)["results"]] == ["idle", "idle"]
            assert reports[0][1:] == (150, "waiting for 2 of 2 agents")
            assert [each[0] for each in reports] == sorted(each[0] for each in reports)

    run(test)


def test_a_wait_ends_at_its_timeout_and_a_second_one_is_refused_meanwhile(desk: Desk):
    async def test():
        async with desk.guest() as guest:
            await guest.call("fork", name="a", prompt="work")
            me, first = await guest.id(), []

            async def wait() -> None:
                first.append(await guest.call("wait", timeout=150, from_agents=["a"]))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await soon(lambda: desk.mesh.run(waits.registered, me), "the wait")
                assert "already inside a wait" in (await guest.refused("wait", timeout=150))["error"]
                desk.mesh.answer(await guest.id("a"), "done")
            assert first[0]["outcome"] == "complete"
            assert (await guest.call("wait", timeout=0.3))["outcome"] == "timeout"
            assert desk.mesh.one("select count(*) from agentmesh.wait") == 0

    run(test)


def test_a_person_interrupts_the_wait(desk: Desk):
    async def test():
        async with desk.guest() as guest:
            await guest.call("fork", name="a", prompt="work")
            me, ended = await guest.id(), []

            async def wait() -> None:
                ended.append(await guest.call("wait", timeout=150, from_agents=["a"]))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await soon(lambda: desk.mesh.run(waits.registered, me), "the wait")
                assert desk.mesh.interrupt(me)
            assert ended[0]["outcome"] == "interrupted"

    run(test)


def test_two_clients_at_once_in_one_session(desk: Desk):
    async def test():
        session = desk.session()
        async with desk.guest("--session", session) as one, desk.guest("--session", session) as two:
            await one.id("mcp")
            second = await two.id("mcp-2")
            await one.call("send", to="mcp-2", message="hello")
            got = await two.call("wait", timeout=150)
            assert [(each["name"], each["message"]) for each in got["results"]] == [("mcp", "hello")]
            child = await two.call("fork", name="helper", prompt="work")
            assert "is not a descendant of mcp" in (await one.refused("kill", agent_id="helper"))["error"]
            assert (await two.call("kill", agent_id="helper"))["killed"] == [child]
        assert desk.mesh.one("select count(*) from agentmesh.agents where external and status <> 'idle'") == 0
        async with desk.guest("--session", session, "--name", "mcp-2") as again:
            assert await again.id("mcp-2") == second, "an idle agent of that name keeps its mailbox"
        assert violations(desk.mesh.conn) == []

    run(test)


def test_bad_arguments_are_told_in_words_that_a_model_can_act_on(desk: Desk):
    async def test():
        async with desk.guest() as guest:
            missing = await guest.refused("fork", name="x", promt="typo")
            assert "prompt: field required" in missing["error"]
            assert "did you mean 'prompt'?" in missing["hint"]
            assert "Close matches" in (await guest.refused("send", to="rooot", message="x"))["hint"]
            assert "the root has no parent" in (await guest.refused("send", to="parent", message="x"))["error"]
            assert "0 and 86400" in (await guest.refused("wait", timeout=-1))["error"]
            assert "the root cannot be killed" in (await guest.refused("kill", agent_id="root"))["error"]
            assert "The tools are fork, interrupt, kill" in (await guest.refused("bash", command="ls"))["hint"]
            assert (await guest.call("list_agents", all=True))["note"] == "ignored unknown arguments: 'all'."

    run(test)


def test_a_transcript_is_read_as_text_and_bounded(desk: Desk):
    async def test():
        async with desk.guest() as guest:
            await guest.call("fork", name="a", prompt="say much")
            a = await guest.id("a")
            desk.mesh.call(a, "bash", text="I look.")
            whole = await guest.call("read_transcript", agent_id="a")
            assert (whole["name"], whole["status"]) == ("a", "running")
            assert whole["text"] == "mail from root: say much\nagent: I look."
            desk.mesh.kill(a)
            end = await guest.call("read_transcript", agent_id=str(a), max_characters=100)
            assert end["status"] == "dead"
            assert len(end["text"]) <= 100
            assert end["text"].endswith("killed by the user")
            assert "left out" in end["note"] if len(whole["text"]) > 100 else True
            assert (
                "less than or equal"
                in (await guest.refused("read_transcript", agent_id="a", max_characters=10**9))["error"]
            )

    run(test)


def test_a_killed_client_learns_that_it_is_dead(desk: Desk):
    async def test():
        async with desk.guest("--session", desk.session()) as guest:
            me, ended = await guest.id("mcp"), []

            async def wait() -> None:
                ended.append(await guest.refused("wait", timeout=150))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await soon(lambda: desk.mesh.run(waits.registered, me), "the wait")
                desk.mesh.kill(me)
            assert "mcp" in ended[0]["error"]
            assert "is dead" in ended[0]["error"]
            assert "Restart the MCP server" in ended[0]["hint"]
            assert "is dead" in (await guest.refused("send", to="root", message="x"))["error"]

    run(test)


def test_a_server_under_which_the_schema_was_upgraded_refuses_each_call(desk: Desk):
    """Functions of another version may mean something else, and its own workers have ended."""

    async def test():
        async with desk.guest() as guest:
            me, ended = await guest.id(), []

            async def wait() -> None:
                ended.append(await guest.refused("wait", timeout=150))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await soon(lambda: desk.mesh.run(waits.registered, me), "the wait")
                desk.mesh.conn.execute("update agentmesh.alembic_version set version_num = '9999'")
            ended += [await guest.refused("list_agents"), await guest.refused("fork", name="a", prompt="work")]
            for refused in ended:
                assert "has been upgraded to schema 9999" in refused["error"]
                assert "Restart the MCP server" in refused["hint"]
        assert desk.mesh.one("select count(*) from agentmesh.agents where name = 'a'") == 0

    run(test)


def test_a_client_that_was_taken_for_dead_joins_again_by_itself(desk: Desk):
    async def test():
        async with desk.guest() as guest:
            mesh, me = desk.mesh, await guest.id()
            before = mesh.lease(me)
            mesh.conn.execute("select agentmesh.release_worker(%s)", [before.worker_id])
            child = await guest.call("fork", name="a", prompt="work")
            assert child["name"] == "a"
            assert mesh.lease(me).worker_id != before.worker_id
            assert mesh.status(me) is AgentStatus.RUNNING

    run(test)


def test_half_of_a_character_in_a_call_does_not_cost_the_call(desk: Desk):
    with desk.raw("--session", desk.session()) as server:
        server.call("send", {"to": "root", "message": "cut \ud83d"})
        server.call("list_agents", {})
        answers = [json.loads(server.stdout.readline())["result"]["content"][0]["text"] for _ in range(2)]
    assert any(json.loads(answer).get("status") == "sent" for answer in answers), answers
    assert desk.mesh.unread(desk.mesh.root) == ["cut \ufffd"]


CALL = '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"send","arguments":{"to":%s,"message":"x"}}}'
NESTED = "[" * 20_000 + "]" * 20_000
UNREADABLE = [
    (CALL % (1, NESTED[19_800:20_200]), 1, -32700, "recursion limit exceeded"),
    (CALL % (r'"a\"b"', NESTED), 'a"b', -32700, "recursion limit exceeded"),
    (CALL % (2, "9" * 5000), 2, -32700, "number out of range"),
    (f'{{"method":"ping","params":{{"id":1,"x":{NESTED}}},"jsonrpc":"2.0","id":3}}', 3, -32700, "recursion limit"),
    ('{"jsonrpc":"2.0","id":4,"method":"ping","params":[1]}', 4, -32600, "params: Input should be an object"),
    ('{"id":5,"method":"ping"}', 5, -32600, "jsonrpc: Field required"),
    ('{"jsonrpc":"2.0","id":6,"result":5}', None, -32600, "result: Input should be an object"),
    ('[{"jsonrpc":"2.0","id":7,"method":"ping"}]', None, -32600, "Input should be an object"),
    ('{"jsonrpc":"2.0","id":8,"method":"ping","params":{"a":"b', 8, -32700, "control character"),
    ("hello", None, -32700, "expected value"),
    *((f'{{"jsonrpc":"2.0","id":{id_},"method":"ping"}}', None, -32600, "id: it must be a string or a whole number")
      for id_ in ("1.5", "true", "{}", "1e3")),
    ('{"jsonrpc":"2.0","id":1.5,"method":"ping","params":[1]}', None, -32600, "id: int: Input should be"),
    ('{"jsonrpc":"2.0","id":true,"method":"ping","params":[1]}', None, -32600, "id: int: Input should be"),
    ('{"method":"ping","id":%s}' % ("9" * 5000), None, -32700, "number out of range"),
]  # fmt: skip


def test_a_request_that_cannot_be_read_is_answered_and_logged(desk: Desk):
    with desk.raw("--model", "demo") as server:
        for line, id_, code, words in UNREADABLE:
            server.stdin.write(line.encode() + b"\n")
            server.stdin.flush()
            answer = json.loads(server.stdout.readline())
            assert (answer["id"], answer["error"]["code"]) == (id_, code), line[:80]
            assert words in answer["error"]["message"]
        server.write({"id": 99, "method": "ping"})
        assert json.loads(server.stdout.readline())["id"] == 99
        server.stdin.close()
        said = server.stderr.read().decode()
        assert server.process.wait() == 0
    assert all(f"a request cannot be read: {words}" in said.replace("Invalid JSON: ", "") for *_, words in UNREADABLE)


def test_a_blank_line_and_a_notification_that_cannot_be_read_get_no_answer(desk: Desk):
    with desk.raw("--model", "demo") as server:
        server.stdin.write(b"\r\n\n")
        server.write({"method": "notifications/progress", "params": [1]})
        server.write({"method": "notifications/progress", "id": None})
        server.write({"id": 99, "method": "ping"})
        assert json.loads(server.stdout.readline())["id"] == 99
        server.stdin.close()
        said = server.stderr.read().decode().splitlines()
    assert [line.partition("read: ")[2] for line in said] == ["params: Input should be an object"]


def test_a_byte_order_mark_does_not_cost_the_first_request(desk: Desk):
    with desk.raw("--model", "demo", mark=b"\xef\xbb\xbf") as server:
        server.write({"id": 1, "method": "ping"})
        assert json.loads(server.stdout.readline())["id"] == 1


def test_killing_the_server_leaves_nothing_that_hangs(desk: Desk):
    mesh = desk.mesh
    with desk.raw("--session", desk.session()) as server:
        joined = "select id from agentmesh.agents where name = 'mcp' and status = 'running'"
        me = AgentId(until(lambda: mesh.one(joined), "joining", 100))
        server.call("wait", {"timeout": 150})
        until(lambda: mesh.run(waits.registered, me), "the wait", 100)
        mesh.wait(mesh.root, me)
        server.process.kill()
        server.process.wait()

    def swept() -> bool:
        mesh.conn.execute("select agentmesh.sweep(null)")
        return mesh.status(me) == AgentStatus.IDLE

    until(swept, "rest", 100)
    assert mesh.run(waits.registered, me) is None
    assert mesh.take(mesh.root) == {"outcome": "complete", "results": [entry(me, "mcp", "idle", output="")]}
    assert violations(mesh.conn) == []


@pytest.mark.parametrize("end", ["stdin", "SIGTERM"])
def test_the_end_is_clean_also_inside_a_wait(desk: Desk, end: str):
    mesh = desk.mesh
    with desk.raw("--model", "demo") as server:
        server.call("wait", {"timeout": 150})
        me = AgentId(until(lambda: mesh.one("select waiter from agentmesh.wait"), "the wait", 100))
        if end == "stdin":
            server.stdin.close()
        else:
            server.process.send_signal(signal.SIGTERM)
        assert server.process.wait() == 0
        for line in server.stdout.read().splitlines():
            assert json.loads(line)["jsonrpc"] == "2.0", "stdout carries the protocol only"
        assert server.stderr.read() == b""
    assert mesh.status(me) is AgentStatus.IDLE
    assert mesh.run(waits.registered, me) is None


def test_a_client_that_reads_no_more_ends_the_server(desk: Desk):
    with desk.raw("--model", "demo") as server:
        server.call("list_agents", {})
        server.stdout.readline()
        server.stdout.close()
        server.call("list_agents", {})
        assert (server.process.wait(), server.stderr.read()) == (0, b"")
    assert desk.mesh.one("select status from agentmesh.agents where external") == AgentStatus.IDLE


def test_a_fork_can_have_a_tree_of_its_own(desk: Desk):
    project(desk.am.folder)

    async def test():
        async with desk.guest() as guest:
            await guest.call("fork", name="a", prompt="work", workspace="own")
            child = await guest.id("a")
            assert desk.mesh.one("select workspace from agentmesh.v_agents where id = %s", child) == "own"

    run(test)


def test_a_fork_can_be_of_a_type_and_has_then_only_its_tools(desk: Desk):
    async def test():
        async with desk.guest() as guest:
            made = await guest.call("fork", name="looker", prompt="look", type="explore")
            assert made["cache"] == "its system prompt differs: nothing of the parent's prefix is cached"
            tools = desk.mesh.one(
                "select jsonb_path_query_array(s.tools, '$[*].function.name') from agentmesh.agents a"
                " join agentmesh.settings s on s.id = a.settings_id where a.id = %s",
                await guest.id("looker"),
            )
            assert tools == ["ask_user", "glob", "grep", "read"]
            assert "no type of sub-agent" in (await guest.refused("fork", name="a", prompt="x", type="nosuch"))["error"]

    run(test)


def test_a_fork_may_have_another_shape_than_its_parent(desk: Desk):
    async def test():
        async with desk.guest() as guest:
            made = await guest.call("fork", name="narrow", prompt="look", tools=["read"], context="none")
            assert made["cache"] == "its tools differ: nothing of the parent's prefix is cached"
            await guest.call("fork", name="recent", prompt="look", context="last 2")
            wide = await guest.refused("fork", name="wide", prompt="look", tools=["nosuch"])
            assert "its fork cannot: nosuch" in wide["error"]
            await guest.refused("fork", name="wide", prompt="look", model="nobody/x")
            await guest.refused("fork", name="wide", prompt="look", context="some")
            assert desk.mesh.one("select count(*) from agentmesh.agents where name = 'wide'") == 0

    run(test)


def test_a_tree_of_its_own_without_a_repository_is_refused_in_words(desk: Desk):
    async def test():
        async with desk.guest() as guest:
            refused = await guest.refused("fork", name="a", prompt="work", workspace="own")
            assert "Git repository" in refused["error"]

    run(test)
