"""Servers of our own that misbehave, real processes and real HTTP, called as agents' threads call them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentmesh.config.mcp import Mcp, McpServer, McpServers, NamedServer
from agentmesh.domain.cancel import Cancel, CancelReason
from agentmesh.domain.images import Image
from agentmesh.engine.tool import Tool, ToolError
from agentmesh.tools.environment import AGENT_VARIABLE
from agentmesh.tools.mcp import connection
from agentmesh.tools.mcp import hub as hub_module
from agentmesh.tools.mcp.hub import Hub
from agentmesh.tools.mcp.tool import tool_of
from tests.fixtures.engine import until
from tests.fixtures.pictures import png
from tests.tools.calling import call, context, is_alive, wait_for_end
from tests.tools.mcp_web import TOKEN, McpWeb

SERVER = Path(__file__).with_name("mcp_server.py")


def by_pipes(how: str = "well", **more: Any) -> McpServer:
    return McpServer(command=sys.executable, args=(str(SERVER), how), **more)


class Rig:
    """A hub and the servers that it is to know, in a directory."""

    def __init__(self, workdir: Path) -> None:
        self.workdir = workdir
        self.servers: dict[str, McpServer] = {}
        self.source = "the file"
        self.settings = Mcp(start_timeout=50)
        self.environ = dict(os.environ)
        self.told: list[str] = []
        """What takes long."""
        self._hub: Hub | None = None

    @property
    def hub(self) -> Hub:
        if self._hub is None:
            self._hub = Hub(lambda _workdir: self.configured(), self.settings, self.environ, self.told.append)
        return self._hub

    def configured(self) -> McpServers:
        named = (NamedServer(name, each, self.source) for name, each in self.servers.items())
        return McpServers({each.slug: each for each in named})

    def tools(self) -> dict[str, Tool]:
        """Start all servers; return their tools."""
        found: dict[str, Tool] = {}
        for definition in self.hub.definitions(self.workdir):
            tool = tool_of(definition, self.hub)
            assert tool is not None
            found[tool.name] = tool
        return found

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool of the server ``t``, as an agent would to whom it was told."""
        tool = tool_of({"function": {"name": f"mcp__t__{name}", "parameters": {}}}, self.hub)
        assert tool is not None
        return call(tool, self.workdir, **arguments)

    def problems(self) -> list[str]:
        return [problem.words for problem in self.hub.problems(self.workdir)]

    def lines(self, file: str) -> list[str]:
        """Return what a server noted in a file."""
        path = self.workdir / file
        return path.read_text().split() if path.exists() else []

    def pid(self) -> int:
        """Return the pid of the server that was started last."""
        return int(self.lines("starts")[-1])

    def close(self) -> None:
        if self._hub is not None:
            self._hub.close()


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    made.servers["t"] = by_pipes()
    yield made
    made.close()


@pytest.fixture
def web() -> Iterator[McpWeb]:
    made = McpWeb()
    yield made
    made.close()


# What agents are told


def test_tools_are_named_by_server_and_tool_in_one_order(rig: Rig):
    rig.servers["my server.2"] = by_pipes(tools=("echo", "files*"))
    names = list(rig.tools())
    assert names == sorted(names)
    assert [name for name in names if "my" in name] == ["mcp__my_server_2__echo", "mcp__my_server_2__files_read_it"]
    assert "mcp__t__echo" in names


def test_the_same_server_gives_the_same_bytes(rig: Rig):
    first = rig.hub.definitions(rig.workdir)
    assert rig.hub.definitions(rig.workdir) == first
    assert first[2]["function"] == {
        "name": "mcp__t__die",
        "description": "Does die.",
        "parameters": {"type": "object", "properties": {}, "required": []},
    }


def test_a_schema_is_sent_without_references_and_a_bad_one_costs_its_tool(rig: Rig):
    rig.servers["t"] = by_pipes("odd-schema")
    refers = next(each for each in rig.hub.definitions(rig.workdir) if each["function"]["name"] == "mcp__t__refers")
    again = {"type": "object", "properties": {"again": {}}}
    assert refers["function"]["parameters"]["properties"] == {"a": again}
    assert "$defs" not in refers["function"]["parameters"]
    told = rig.problems()
    assert len(told) == 2
    assert "has a tool echo that is left out: echo has the same name here" in told[0]
    assert "has a tool odd that is left out: it has an invalid schema" in told[1]


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ({"name": "bad", "inputSchema": {"type": "string"}}, "bad that is left out: it has no schema of an object"),
        ({"name": "bad", "inputSchema": {"type": ["object", "null"]}}, "bad that is left out: it has no schema of an"),
        ({"name": "bad", "inputSchema": []}, "bad that is left out: it has no schema of an object"),
        ({"name": "bad", "inputSchema": {"properties": []}}, "bad that is left out: it has a schema whose properties"),
        ({"name": "bad", "inputSchema": {"properties": {"a": 5}}}, "bad that is left out: it has an invalid schema"),
        ({"name": "bad", "inputSchema": {"required": [5]}}, "bad that is left out: it has an invalid schema"),
        ({"name": "bad", "inputSchema": {"$schema": [5]}}, "bad that is left out: it has an invalid schema"),
        ({"name": 5, "inputSchema": {"type": "object"}}, "number 17 that is left out: it has no name"),
        ("bad", "number 17 that is left out: it has no name"),
    ],
)
def test_a_malformed_tool_is_named_and_costs_no_other(rig: Rig, tool: Any, words: str):
    (rig.workdir / "tools").write_text(json.dumps([tool]))
    assert "mcp__t__echo" in rig.tools()
    (told,) = rig.problems()
    assert told.startswith(f"the MCP server t has a tool {words}")


@pytest.mark.parametrize(
    "tool",
    [
        {"inputSchema": {}},
        {"inputSchema": None},
        {},
        {"inputSchema": {}, "title": 5, "description": ["none"], "annotations": 5, "outputSchema": 5, "icons": 5},
    ],
)
def test_a_tool_without_a_schema_has_no_arguments_and_other_mistakes_do_not_matter(rig: Rig, tool: dict[str, Any]):
    (rig.workdir / "tools").write_text(json.dumps([{"name": "plain", **tool}]))
    assert rig.tools()["mcp__t__plain"].args.model_json_schema() == {"type": "object", "properties": {}, "required": []}
    assert rig.call("plain") == {"output": "called plain"}
    assert not rig.problems()


# Calls


def test_a_call_reaches_the_server_and_its_text_comes_back(rig: Rig):
    rig.tools()
    assert rig.call("echo", text="hello") == {"output": "hello"}
    assert rig.call("files_read_it") == {"output": "called files/read it"}
    assert len(rig.lines("starts")) == 1


def test_arguments_are_read_without_loss_and_a_missing_one_is_named(rig: Rig):
    tools = rig.tools()
    assert call(tools["mcp__t__add"], rig.workdir, number="3", items="[1, 2]", more=None)["output"] == (
        '{"items": [1, 2], "more": null, "number": 3}'
    )
    with pytest.raises(ValueError, match="text is missing"):
        tools["mcp__t__echo"].args.model_validate({})


def test_what_is_no_text_is_said_and_not_shown(rig: Rig):
    output = rig.call("picture")["output"]
    assert output.splitlines() == [
        "see red",
        "[image image/png, 3 bytes: not shown, because your model cannot see images]",
        "[resource file:///a.bin: application/zip, 6 bytes: not shown]",
    ]


@pytest.mark.parametrize(
    ("block", "shown"),
    [
        ({"type": "hologram", "x": 1}, "[hologram: not shown]"),
        ({"type": "text", "text": None}, "[text: not shown, because it is malformed]"),
        ({"type": "image", "mimeType": "image/png"}, "[image: not shown, because it is malformed]"),
        ({"type": "resource", "resource": "a"}, "[resource: not shown, because it is malformed]"),
        ({"type": ["text"], "text": "a"}, "[a part of no type: not shown]"),
        ("text", "[a part of no type: not shown]"),
        ({"type": "text", "text": "well", "annotations": 5, "_meta": 5}, "well"),
    ],
)
def test_a_malformed_part_of_a_result_costs_no_other(rig: Rig, block: Any, shown: str):
    result = {"content": [{"type": "text", "text": "ok"}, block, {"type": "text", "text": "done"}], "isError": None}
    line = json.dumps({"jsonrpc": "2.0", "id": "ID", "result": result}).replace('"ID"', "ID")
    assert rig.call("echo", text="hello", line=line)["output"].splitlines() == ["ok", shown, "done"]


def seen(rig: Rig, kept: list[Image], **given: Any) -> dict[str, Any]:
    tool = rig.tools()["mcp__t__gallery"]
    return call(tool, context(rig.workdir, sees=lambda: True, keep_image=kept.append), **given)


def test_a_model_that_sees_gets_images_and_the_rest_in_words(rig: Rig):
    (rig.workdir / "shot").write_bytes(png(640, 480))
    kept: list[Image] = []
    result = seen(rig, kept)
    assert [(one.name, one.data) for one in kept] == [("t-1", png(640, 480)), ("t-2", png(640, 480))]
    assert result["images"] == [one.reference() for one in kept]
    assert result["output"].splitlines() == [
        "[image image/png: t-1, which follows the results of this step]",
        "[resource file:///b.png: image/png: t-2, which follows the results of this step]",
        "[resource https://x/y: the report; not read]",
        "[audio audio/wav, 3 bytes: not shown]",
        "[image image/png: not shown, because its base64 is damaged]",
    ]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (png()[:-4], "t-1 is damaged or cut off."),
        (b"GIF89a\0" + b"\0" * 9, "t-1 is a GIF."),
        (png(9000, 2), "t-1 has 9,000×2 pixels, the limit is 8,000 a side."),
        (png() + b"\0" * (6 << 20), "t-1 has 6.0 MiB, the limit is 5 MiB."),
        (b"<svg/>", "t-1 is not a PNG, JPEG or WebP image."),
        (b"", "t-1 is empty."),
    ],
    ids=["cut", "gif", "wide", "heavy", "svg", "empty"],
)
def test_an_image_that_cannot_be_shown_is_said_with_the_reason(rig: Rig, data: bytes, why: str):
    (rig.workdir / "shot").write_bytes(data)
    kept: list[Image] = []
    result = seen(rig, kept)
    assert (kept, "images" in result) == ([], False)
    assert result["output"].splitlines()[0].endswith(f"not shown. {why}]")


def test_a_result_shows_no_more_images_than_a_message_may_have(rig: Rig):
    (rig.workdir / "shot").write_bytes(png())
    kept: list[Image] = []
    result = seen(rig, kept, number=25)
    assert len(kept) == len(result["images"]) == 20
    assert result["output"].count("21 images are too many for one message.") == 7


def test_images_of_a_failure_are_not_kept(rig: Rig):
    (rig.workdir / "shot").write_bytes(png())
    kept: list[Image] = []
    with pytest.raises(ToolError, match="not shown"):
        seen(rig, kept, items=[])
    assert kept == []


def test_long_output_is_cut_in_the_middle(rig: Rig):
    tool = rig.tools()["mcp__t__large"]
    result = call(tool, context(rig.workdir, output_limit=2000), number=3_000_000)
    assert result["truncated"] is True
    assert len(result["output"]) <= 2000
    assert "bytes cut" in result["output"]


def test_what_the_server_calls_an_error_is_one(rig: Rig):
    with pytest.raises(ToolError, match="there is no such thing"):
        rig.call("wrong")


def test_a_tool_that_is_gone_is_refused_with_those_that_are_there(rig: Rig):
    with pytest.raises(ToolError, match=r"no longer has this tool; it has mcp__t__add"):
        rig.call("gone")


# Servers that fail


def test_a_server_that_fails_costs_a_sentence_and_only_its_own_tools(rig: Rig):
    rig.servers |= {
        "ends": by_pipes("ends"),
        "missing": McpServer(command="/no/such/program"),
        "unset": by_pipes(env={"A": "${NOBODY_HAS_SET_THIS}"}),
        "no-list": by_pipes("no-list"),
        "old": by_pipes("old"),
        "nobody": McpServer(url="http://127.0.0.1:9/mcp"),
    }
    names = list(rig.tools())
    assert names
    assert all(name.startswith("mcp__t__") for name in names)
    assert rig.problems() == [
        "the MCP server ends ended with exit code 4 (its last words: no licence)",
        "the MCP server missing cannot be started: [Errno 2] No such file or directory: '/no/such/program'",
        "the MCP server unset needs the variable NOBODY_HAS_SET_THIS, which is not set",
        "the MCP server no-list answered with an invalid message (tools: Input should be a valid list)",
        "the MCP server old cannot be used: Unsupported protocol version from the server: 1999-01-01",
        "the MCP server nobody cannot be reached: All connection attempts failed",
    ]


def test_a_server_that_says_nothing_is_given_up_and_ended(rig: Rig, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hub_module, "_LATE", 0.1)
    rig.servers["t"] = by_pipes("silent")
    rig.settings = Mcp(start_timeout=2)
    assert not rig.tools()
    assert not rig.tools()
    assert rig.told == ["Waiting for MCP servers to start: t"] * 2
    (told,) = rig.problems()
    assert told.startswith("the MCP server t did not start within 2 s")
    assert not [pid for pid in rig.lines("starts") if is_alive(int(pid))]


def test_what_a_server_prints_besides_messages_does_no_harm(rig: Rig):
    rig.servers["t"] = by_pipes("chatty")
    rig.tools()
    assert rig.call("echo", text="hello") == {"output": "hello"}


def test_a_server_that_dies_in_a_call_is_told_and_started_again_at_the_next(rig: Rig):
    with pytest.raises(ToolError) as died:
        rig.call("die")
    assert str(died.value) == (
        "the MCP server t ended with exit code 3 (its last words: I am tired); the call may have taken effect."
    )
    assert rig.lines("calls") == ["die"]
    assert rig.call("echo", text="hello") == {"output": "hello"}
    assert len(rig.lines("starts")) == 2
    assert not rig.problems()


def test_a_server_that_dies_between_calls_is_started_again_at_the_next(rig: Rig):
    rig.tools()
    os.kill(rig.pid(), signal.SIGKILL)
    until(rig.problems)
    assert rig.call("echo", text="hello") == {"output": "hello"}


def test_one_that_fails_again_and_again_is_left_alone_for_longer_and_longer(rig: Rig):
    rig.servers["t"] = by_pipes("ends")
    starts = 0
    while True:
        with pytest.raises(ToolError, match="exit code 4") as failed:
            rig.call("echo", text="hello")
        if "it can be started again in" in str(failed.value):
            break
        starts += 1
    assert len(rig.lines("starts")) == starts
    assert starts >= 3


@pytest.mark.parametrize("words", ["no licence for it", "Connection closed"])
def test_an_error_under_the_code_of_a_lost_connection_is_an_answer(rig: Rig, words: str):
    with pytest.raises(ToolError, match=rf"refused it: {words}\.$"):
        rig.call("refused", text=words)
    assert rig.call("echo", text="still here")
    assert len(rig.lines("starts")) == 1


def test_rubbish_as_a_result_is_an_error_and_the_server_goes_on(rig: Rig):
    with pytest.raises(ToolError, match=r"answered with an invalid message .*; the call may have taken effect\.$"):
        rig.call("rubbish")
    assert rig.call("echo", text="hello") == {"output": "hello"}
    assert len(rig.lines("starts")) == 1


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"jsonrpc": "2.0", "id": ID, "result": "done"}', "result: Input should be a valid dictionary"),
        ('{"jsonrpc": "2.0", "id": ID, "result": null}', "result: Input should be a valid dictionary"),
        ('{"id": ID, "result": {"content": []}}', "jsonrpc: Field required"),
        ('{"jsonrpc": "2.0", "id": ID, "error": "no licence"}', "error: Input should be a valid dictionary"),
        ('{"jsonrpc": "2.0", "id": ID, "error": {"message": "no licence"}}', "error.code: Field required"),
        ('{"jsonrpc": "2.0", "id": ID, "result": {"content": [', "Expecting value"),
        ('{"jsonrpc": "2.0", "id": ID, "result": {}}', "content: Field required"),
        ('{"jsonrpc": "2.0", "id": ID}', "it has neither result nor error"),
        (
            '{"jsonrpc": "2.0", "id": ID, "result": {"content": ' + "[" * 300 + "]" * 300 + "}}",
            "more than 200 lists or objects within each other",
        ),
        (
            '{"result": {"content": ' + "[" * 300 + "]" * 300 + '}, "id": ID, "jsonrpc": "2.0"}',
            "more than 200 lists or objects within each other",
        ),
        (
            '{"jsonrpc": "2.0", "id": ID, "result": {"content": ' + "[" * 100_000 + "]" * 100_000 + "}}",
            "more than 200 lists or objects within each other",
        ),
    ],
)
def test_an_answer_that_cannot_be_read_ends_its_call_at_once(rig: Rig, line: str, words: str):
    with pytest.raises(ToolError, match="answered with an invalid message") as failed:
        rig.call("echo", text="hello", line=line)
    assert words in str(failed.value)
    assert str(failed.value).endswith("; the call may have taken effect.")
    assert rig.call("echo", text="hello") == {"output": "hello"}
    assert len(rig.lines("starts")) == 1


@pytest.mark.parametrize(
    "line",
    [
        '{"jsonrpc": "2.0", "id": 999999, "result": "of another call"}',
        '{"jsonrpc": "2.0", "id": {"a": ID}, "result": {}}',
        '{"jsonrpc": "2.0", "id": ID, "method": "ping", "params": 5}',
        '{"level": "info", "message": "id ID was heard"}',
        '{"level": "info", "id": ID, "message": "begun"}',
        '{"level": "error", "id": ID, "error": "slow"}',
        '{"id": ID}',
        'begun {"name": "echo", "id": ID}',
        '{"text": "cut, "id": ID}',
        '[{"jsonrpc": "2.0", "id": ID, "result": {"content": []}}]',
    ],
)
def test_a_line_that_answers_no_call_ends_none(rig: Rig, line: str):
    rig.servers["t"] = by_pipes(timeout=0.5)
    rig.tools()
    with pytest.raises(ToolError, match=r"did not answer within 0\.5 s"):
        rig.call("echo", text="hello", line=line)


@pytest.mark.parametrize(("name", "shown"), [("half", "cut in an emoji: \ufffd"), ("latin", "caf\ufffd")])
def test_a_text_with_half_of_a_character_is_shown_without_it(rig: Rig, name: str, shown: str):
    assert rig.call(name) == {"output": shown}
    assert len(rig.lines("starts")) == 1


def test_half_of_a_character_in_a_description_costs_no_tool(rig: Rig):
    rig.servers["t"] = by_pipes("half")
    assert "mcp__t__echo" in rig.tools()


def test_a_call_that_takes_too_long_is_given_up_and_a_server_that_hangs_is_ended(rig: Rig):
    rig.servers["t"] = by_pipes(timeout=0.5)
    rig.tools()
    hanging = rig.pid()
    with pytest.raises(ToolError, match=r"did not answer within 0\.5 s; the call may have taken effect"):
        rig.call("hang")
    until(lambda: not is_alive(hanging))


# Ends


def interrupted(rig: Rig, name: str) -> dict[str, Any]:
    """Call a tool that does not return, and interrupt it when the server has it."""
    cancel = Cancel()
    tool = rig.tools()[f"mcp__t__{name}"]
    results: list[dict[str, Any]] = []
    thread = threading.Thread(target=lambda: results.append(call(tool, context(rig.workdir, cancel=cancel))))
    thread.start()
    until(lambda: rig.lines("calls"))
    cancel.set(CancelReason.INTERRUPT)
    thread.join(20)
    (result,) = results
    return result


def test_an_interrupt_ends_the_call_and_the_server_is_told(rig: Rig, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connection, "_SIGN_OF_LIFE", 50.0)  # it does answer, if late
    result = interrupted(rig, "late")
    assert result["interrupted"] is True
    until(lambda: rig.lines("heard") == ["cancelled"])
    assert rig.call("echo", text="hello") == {"output": "hello"}
    assert len(rig.lines("starts")) == 1


def test_a_server_that_hangs_after_an_interrupt_is_ended(rig: Rig):
    assert interrupted(rig, "hang")["interrupted"] is True
    hanging = rig.pid()
    until(lambda: not is_alive(hanging))


def test_a_server_that_only_listed_its_tools_is_ended_and_started_again_by_a_call(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(connection, "_UNUSED", 0.1)
    rig.tools()
    until(lambda: not is_alive(rig.pid()))
    assert not rig.problems()
    assert rig.call("echo", text="hello") == {"output": "hello"}
    assert len(rig.lines("starts")) == 2


def test_a_server_that_reads_no_more_is_given_up_with_what_was_to_be_written(rig: Rig):
    rig.servers["t"] = by_pipes(timeout=2)
    rig.tools()
    hanging = rig.pid()
    errors: list[str] = []

    def try_to_call(name: str, text: str) -> None:
        with pytest.raises(ToolError) as failed:
            rig.call(name, text=text)
        errors.append(str(failed.value))

    first = threading.Thread(target=try_to_call, args=["hang", ""])
    first.start()
    until(lambda: rig.lines("calls"))
    try_to_call("echo", "x" * 3_000_000)
    first.join(20)
    assert all("did not answer" in error for error in errors)
    assert len(errors) == 2
    until(lambda: not is_alive(hanging))


def test_nothing_of_a_server_outlives_the_hub(rig: Rig):
    rig.servers["t"] = by_pipes("clings")
    rig.tools()
    pids = [int(rig.call("brood")["output"]), rig.pid()]
    pidfds = [os.pidfd_open(pid) for pid in pids]
    rig.close()
    ended = wait_for_end(pidfds, 10)
    for pidfd in pidfds:
        os.close(pidfd)
    assert ended
    assert not [thread for thread in threading.enumerate() if thread.name == "mcp"]


@pytest.mark.timeout(180)
def test_nothing_of_a_server_outlives_a_killed_program(tmp_path: Path):
    os.mkfifo(tmp_path / "ready")
    program = (
        "import os, sys, pathlib, tests.tools.test_mcp as t; r = t.Rig(pathlib.Path(sys.argv[1]));"
        "r.servers['t'] = t.by_pipes('clings'); r.tools(); pid = r.call('brood')['output'];"
        "(r.workdir / 'ready').write_text(f'{pid} {r.pid()}'); r.call('hang')"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], cwd=SERVER.parents[2]) as worker:
        pidfds = [os.pidfd_open(int(pid)) for pid in (tmp_path / "ready").read_text().split()]
        worker.kill()
    ended = wait_for_end(pidfds, 10)
    for pidfd in pidfds:
        os.close(pidfd)
    assert ended
    assert len(pidfds) == 2


def test_a_server_whose_trust_is_taken_back_is_not_called(rig: Rig):
    tool = rig.tools()["mcp__t__echo"]
    rig.servers.clear()
    with pytest.raises(ToolError, match="not configured any more, or not trusted"):
        call(tool, rig.workdir, text="hello")


# Secrets


def test_a_server_gets_what_its_settings_name_and_nothing_else_of_ours(rig: Rig):
    rig.environ |= {"MY_TOKEN": "t0ps3cret", "OTHER_KEY": "0ther", "HOME": "/home/me"}
    rig.servers["t"] = by_pipes(env={"GIVEN": "${MY_TOKEN}", "PLAIN": "${PLACE:-here} and ${HOME}"})
    assert rig.call("env", text="PLAIN")["output"] == "here and /home/me"
    assert rig.call("env", text="OTHER_KEY")["output"] == "(not set)"
    assert rig.call("env", text="MY_TOKEN")["output"] == "(not set)"
    assert rig.call("env", text=AGENT_VARIABLE)["output"] == "mcp t"
    # It has the value; what it says of it goes no further.
    assert rig.call("env", text="GIVEN")["output"] == "[MY_TOKEN]"
    assert rig.tools()["mcp__t__echo"].description == "Does echo.[MY_TOKEN]"


@pytest.mark.parametrize("of_the_project", [False, True])
def test_16_only_a_projects_own_server_in_python_imports_from_the_directory(rig: Rig, of_the_project: bool):
    marker = rig.workdir / "imported"
    (rig.workdir / "wave.py").write_text(f"open({str(marker)!r}, 'w').close()")
    code = (
        f"import runpy, sys, wave; sys.argv = ['server', 'well']; runpy.run_path({str(SERVER)!r}, run_name='__main__')"
    )
    rig.servers["t"] = McpServer(command=sys.executable, args=("-c", code))
    rig.source = str(rig.workdir / ".mcp.json") if of_the_project else str(Path.home() / "config.toml")
    assert rig.call("echo", text="hello")["output"] == "hello"
    assert marker.exists() is of_the_project


# HTTP


def test_a_server_over_http_is_called_with_its_headers_and_tells_no_secret(rig: Rig, web: McpWeb):
    rig.environ["WEB_TOKEN"] = TOKEN
    rig.servers["t"] = McpServer(url=web.url, headers={"Authorization": "Bearer ${WEB_TOKEN}"})
    assert list(rig.tools()) == ["mcp__t__leak", "mcp__t__who"]
    assert rig.call("who") == {"output": "it is me"}
    assert rig.call("leak") == {"output": "the token is [WEB_TOKEN]"}


def test_a_server_that_refuses_the_headers_is_told(rig: Rig, web: McpWeb):
    rig.servers["t"] = McpServer(url=web.url)
    assert not rig.tools()
    assert rig.problems() == ["the MCP server t answered HTTP 401: its configuration needs headers that it accepts"]


def authorized(web: McpWeb) -> McpServer:
    return McpServer(url=web.url, headers={"Authorization": f"Bearer {TOKEN}"})


EVENTS, JSON = "text/event-stream", "application/json"
REFUSAL = b'{"jsonrpc": "2.0", "id": ID, "error": {"code": -32000, "message": "no licence"}}'


@pytest.mark.parametrize(
    ("lost", "words"),
    [
        ((200, EVENTS, b"event: message\n\n"), "gave no answer that can be read: SSE stream ended without a response"),
        (
            (200, EVENTS, b"event: message\ndata: {}\n\n"),
            "gave no answer that can be read: Failed to parse SSE message",
        ),
        ((200, JSON, b""), "gave no answer that can be read: Failed to parse JSON response"),
        ((200, "text/plain", b"done"), "gave no answer that can be read: Unexpected content type: text/plain"),
        ((202, JSON, b""), "gave no answer that can be read: server answered a request with 202 Accepted"),
        ((500, JSON, b""), "answered HTTP 500"),
        ((500, JSON, REFUSAL), "answered HTTP 500"),
        ((504, "text/html", b"<html>"), "answered HTTP 504"),
        ((408, JSON, b""), "answered HTTP 408"),
        ((200, JSON, b'{"jsonrpc": "2.0", "id": ID, "result": {}}'), "answered with an invalid message (content"),
    ],
)
def test_a_call_whose_answer_is_lost_may_have_taken_effect(
    rig: Rig, web: McpWeb, lost: tuple[int, str, bytes], words: str
):
    rig.servers["t"] = authorized(web)
    web.lost = lost
    with pytest.raises(ToolError) as failed:
        rig.call("who")
    assert str(failed.value).startswith(f"the MCP server t {words}")
    assert str(failed.value).endswith("; the call may have taken effect.")
    assert web.calls == 1


def test_a_call_whose_connection_ends_may_have_taken_effect(rig: Rig, web: McpWeb):
    rig.servers["t"] = authorized(web)
    web.cut = True
    with pytest.raises(ToolError) as failed:
        rig.call("who")
    assert str(failed.value).startswith("the MCP server t cannot be reached: ")
    assert str(failed.value).endswith("; the call may have taken effect.")
    assert web.calls == 1


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (b"", "gave no answer that can be read: SSE stream ended without a response; the call may have taken effect"),
        (b"data: " + REFUSAL + b"\n\n", "refused it: no licence"),
    ],
    ids=["cut", "an error"],
)
@pytest.mark.parametrize("status", [401, 404, 500])
def test_what_the_reply_to_a_ping_gets_is_not_the_answer_to_the_call(
    rig: Rig, web: McpWeb, status: int, end: bytes, words: str
):
    rig.servers["t"] = authorized(web)
    web.asks = status, end
    with pytest.raises(ToolError) as failed:
        rig.call("who")
    assert str(failed.value) == f"the MCP server t {words}."
    assert (web.attempts, web.calls) == (1, 1)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 413, 429])
def test_a_call_that_is_refused_by_its_status_has_no_effect(rig: Rig, web: McpWeb, status: int):
    rig.servers["t"] = authorized(web)
    web.refusal = status
    with pytest.raises(ToolError, match=f"the MCP server t answered HTTP {status}") as failed:
        rig.call("who")
    assert "effect" not in str(failed.value)


@pytest.mark.parametrize(("kind", "body"), [(JSON, REFUSAL), (EVENTS, b"data: " + REFUSAL + b"\n\n")])
def test_an_error_of_the_server_itself_is_a_refusal(rig: Rig, web: McpWeb, kind: str, body: bytes):
    rig.servers["t"] = authorized(web)
    web.lost = 200, kind, body
    with pytest.raises(ToolError) as failed:
        rig.call("who")
    assert str(failed.value) == "the MCP server t refused it: no licence."


@pytest.mark.parametrize("body", [b"", REFUSAL], ids=["bare", "with an error"])
def test_a_session_that_the_server_forgot_is_begun_anew_and_the_call_made_again(rig: Rig, web: McpWeb, body: bytes):
    rig.servers["t"] = authorized(web)
    rig.tools()
    web.sessions = {"forgotten"}
    web.forgotten = body
    assert rig.call("who") == {"output": "it is me"}
    assert web.calls == 1
    assert not rig.problems()


def test_a_call_is_made_again_only_once(rig: Rig, web: McpWeb):
    rig.servers["t"] = authorized(web)
    web.refusal = 404
    with pytest.raises(ToolError, match=r"answered HTTP 404\."):
        rig.call("who")
    assert (web.attempts, web.calls) == (2, 0)
    web.refusal = 0
    assert rig.call("who") == {"output": "it is me"}


def test_a_404_without_a_session_is_not_asked_again(rig: Rig, web: McpWeb):
    rig.servers["t"] = authorized(web)
    web.has_sessions = False
    web.refusal = 404
    with pytest.raises(ToolError, match=r"answered HTTP 404\."):
        rig.call("who")
    assert (web.attempts, web.calls) == (1, 0)


def test_a_server_that_went_away_is_told_and_found_again(rig: Rig, web: McpWeb):
    rig.servers["t"] = McpServer(url=web.url, headers={"Authorization": f"Bearer {TOKEN}"})
    rig.tools()
    web.close()
    with pytest.raises(ToolError) as failed:
        rig.call("who")
    assert str(failed.value) == "the MCP server t cannot be reached: All connection attempts failed."


# Without the SDK


def test_without_the_library_one_sentence_and_no_failure(rig: Rig, monkeypatch: pytest.MonkeyPatch):
    missing: Callable[[], bool] = lambda: False  # noqa: E731
    monkeypatch.setattr(hub_module, "has_library", missing)
    assert not rig.tools()
    words = "the package mcp is not installed: pip install '.[mcp]' in a checkout of agentmesh"
    assert rig.problems() == [f"its MCP servers (t) are not used: {words}"]
    with pytest.raises(ToolError, match="the package mcp is not installed"):
        rig.call("echo", text="hello")
