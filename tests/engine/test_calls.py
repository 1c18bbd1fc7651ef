from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from agentmesh.domain.permissions import Decision, Permissions, Rule
from agentmesh.domain.states import PermissionMode
from agentmesh.llm.simulator.reply import Fault, FaultKind, ScriptedCall, ScriptedReply
from agentmesh.llm.simulator.request import said
from agentmesh.store import requests
from agentmesh.tools.gate import ToolGate
from tests.fixtures.engine import Rig, call, do, say


def test_a_prompt_becomes_tool_calls_and_an_answer(rig: Rig):
    (rig.workdir / "notes.txt").write_text("forty-two\n")
    rig.script("root", do(call("read", path="notes.txt"), text="I look."), say("It says forty-two."))
    rig.worker()
    assert rig.run("What do the notes say?") == "It says forty-two."
    assert rig.kinds() == ["user", "assistant", "tool_result", "assistant"]
    (result,) = rig.results("read")
    assert "forty-two" in json.dumps(result)
    asked, shown = (request.body["messages"] for request in rig.requests())
    assert [message["role"] for message in asked] == ["system", "user"]
    assert said(asked[1]) == "What do the notes say?"
    assert shown[: len(asked)] == asked
    assert shown[3]["tool_call_id"] == shown[2]["tool_calls"][0]["id"]
    tools = [tool["function"]["name"] for tool in rig.requests()[0].body["tools"]]
    assert tools == sorted(tools)


def test_every_parallel_call_gets_the_result_that_is_its_own(rig: Rig):
    for n in range(6):
        (rig.workdir / f"{n}.txt").write_text(f"text {n}\n")
    rig.script("root", do(*(call("read", path=f"{n}.txt") for n in range(6))))
    rig.worker()
    rig.run()
    shown = rig.requests()[1].body["messages"]
    results = {message["tool_call_id"]: message["content"] for message in shown if message["role"] == "tool"}
    for n, asked in enumerate(shown[2]["tool_calls"]):
        assert f"text {n}" in results[asked["id"]]


def test_calls_take_effect_in_the_order_given(rig: Rig):
    steps = [
        call("bash", command="echo one >> log"),
        call("read", path="log"),
        call("bash", command="echo two >> log"),
        call("bash", command="echo three >> log"),
        call("read", path="log"),
    ]
    rig.script("root", do(*steps))
    rig.worker()
    rig.run()
    shown = rig.requests()[1].body["messages"]
    results = {message["tool_call_id"]: message["content"] for message in shown if message["role"] == "tool"}
    first, second = (results[shown[2]["tool_calls"][n]["id"]] for n in (1, 4))
    assert "one" in first
    assert "two" not in first
    assert "three" in second


def test_reading_calls_of_one_step_run_side_by_side(rig: Rig):
    parts = rig.worker()
    together = threading.Barrier(3)
    glob = parts.tools["glob"]
    real = glob.run

    def run(args, context):
        together.wait(10)
        return real(args, context)

    glob.run = run  # type: ignore[method-assign]
    rig.script("root", do(*(call("glob", pattern="*") for _ in range(3))))
    rig.run()
    assert ["error" in result for result in rig.results("glob")] == [False] * 3


def test_a_wait_comes_after_all_calls_before_it(rig: Rig):
    rig.script("root", do(call("bash", command="echo done > file"), call("wait", timeout=0), call("read", path="file")))
    rig.worker()
    rig.run()
    wait, read = rig.results()[1:]
    assert wait == {"outcome": "timeout", "results": []}
    assert "error" not in read


@pytest.mark.parametrize(
    ("asked", "error", "hint"),
    [
        (ScriptedCall("frok", {}), "there is no tool 'frok'", "Your tools are: ask_user, bash, edit, fork"),
        (ScriptedCall("read", '{"path": '), "not valid JSON", "Call read again with one JSON object"),
        (ScriptedCall("read", "[1, 2]"), "must be a JSON object", "read takes: path"),
        (ScriptedCall("read", "[" * 100_000), "not valid JSON", "Call read again"),
        (ScriptedCall("read", '{"path":' + "[" * 700 + "]" * 700 + "}"), "more than 200 lists", "Call read again"),
        (ScriptedCall("read", {}), "path: field required", "read takes: path"),
        (ScriptedCall("wait", {"timeout": True}), "timeout:", "wait takes: timeout"),
        (ScriptedCall("wait", {"timeout": "soon"}), "timeout:", "wait takes: timeout"),
        (ScriptedCall("wait", {"timeout": -1}), "not between 0 and 86400", "Give seconds"),
        (ScriptedCall("wait", {"timeout": 1, "from_agents": []}), "from_agents is empty", "List agents"),
        (ScriptedCall("send", {"to": "nobody", "message": "x"}), "there is no agent 'nobody'", "only agent"),
        (ScriptedCall("send", {"to": "parent", "message": "x"}), "the root has no parent", "answer"),
        (ScriptedCall("send", {"to": "root", "message": "x"}), "cannot send to itself", ""),
        (ScriptedCall("kill", {"agent_id": "root"}), "the root cannot be killed", ""),
        (ScriptedCall("fork", {"name": "user", "prompt": "x"}), "reserved", "another name"),
        (ScriptedCall("fork", {"name": "x" * 10_000, "prompt": "x"}), "is no name for an agent", "1 to 32"),
        (ScriptedCall("bash", {"command": ""}), "command:", "bash takes: command"),
    ],
)
def test_a_call_that_cannot_be_made_says_what_to_do_and_the_turn_goes_on(rig: Rig, asked, error, hint):
    rig.script("root", do(asked), say("I see."))
    rig.worker()
    assert rig.run() == "I see."
    (result,) = rig.results()
    assert error in result["error"]
    assert hint in result.get("hint", "")
    json.loads(rig.requests()[1].body["messages"][2]["tool_calls"][0]["function"]["arguments"])


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("bash<|channel|>json", "bash__channel__json"),
        ("functions.read", "functions_read"),
        ("x" * 70, "x" * 64),
        ("é", "_"),
    ],
)
def test_a_name_that_is_no_tools_is_sent_back_as_servers_take_it(rig: Rig, name, shown):
    """OpenAI refuses a request with another name, and every later one of its conversation, which has it too."""
    rig.script("root", do(ScriptedCall(name, {})), say("I see."))
    rig.worker()
    assert rig.run() == "I see."
    assert f"there is no tool '{name}'" in rig.results()[0]["error"]
    assert rig.requests()[1].body["messages"][2]["tool_calls"][0]["function"]["name"] == shown


def test_malformed_arguments_cut_by_the_server_are_answered_too(rig: Rig):
    broken = ScriptedReply(tool_calls=(call("read", path="x"),), fault=Fault(FaultKind.BAD_ARGUMENTS))
    rig.script("root", broken, say("I see."))
    rig.worker()
    assert rig.run() == "I see."
    assert "not valid JSON" in rig.results()[0]["error"]


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        ('{"pattern": "\\ud83d"}', {"pattern": "\ufffd"}),
        ('{"pattern": "a", "n": [NaN, 1e999]}', {"pattern": "a", "n": ["NaN", "Infinity"]}),
    ],
)
def test_arguments_that_strict_servers_cannot_read_are_sent_back_as_they_can(rig: Rig, arguments, sent):
    # Such a server refuses each later request with them: the agent would never go on.
    rig.script("root", do(ScriptedCall("glob", arguments)), say("well"))
    rig.worker()
    assert rig.run() == "well"
    (asked,) = rig.requests()[-1].body["messages"][-2]["tool_calls"]
    assert json.loads(asked["function"]["arguments"], parse_constant=pytest.fail) == sent
    assert rig.rows()[1][1]["calls"][0]["arguments"] == arguments


def test_what_can_be_read_without_loss_is_read(rig: Rig):
    rig.fork("child")
    asked = [
        ScriptedCall("wait", {"timeout": "0", "from_agents": '["child"]'}),
        ScriptedCall("wait", {"timeout": 0, "from_agents": "child"}),
    ]
    rig.script("root", do(*asked))
    rig.worker()
    rig.run()
    for result in rig.results():
        assert [entry["name"] for entry in result["results"]] == ["child"]


@pytest.mark.parametrize("tool", ["read", "bash", "list_agents", "wait", "fork"])
def test_unknown_arguments_are_ignored_and_named_whatever_the_tool(rig: Rig, tool):
    (rig.workdir / "f").write_text("x\n")
    good: dict[str, dict[str, object]] = {
        "read": {"path": "f"},
        "bash": {"command": "true"},
        "list_agents": {},
        "wait": {"timeout": 0},
        "fork": {"name": "a", "prompt": "x"},
    }
    rig.script("root", do(ScriptedCall(tool, {**good[tool], "colour": "red"})))
    rig.worker()
    rig.run()
    (result,) = rig.results(tool)
    assert "error" not in result
    assert "'colour'" in result["note"]


def test_a_note_of_the_tool_and_one_on_its_arguments_are_both_shown(rig: Rig):
    rig.script("root", do(ScriptedCall("bash", {"command": "sleep 60", "timeout": 0.2, "colour": "red"})))
    rig.worker()
    rig.run()
    note = rig.results("bash")[0]["note"]
    assert "'colour'" in note
    assert "ended after 0.2 s" in note


MODES = {
    PermissionMode.ASK: (False, False),
    PermissionMode.EDITS: (True, False),
    PermissionMode.ALL: (True, True),
    PermissionMode.PLAN: (False, False),
}


@pytest.mark.parametrize("mode", MODES)
def test_what_nobody_can_be_asked_about_is_refused_with_what_would_allow_it(rig: Rig, mode):
    rig.root = rig.session(mode=mode)
    rig.db.run(requests.set_attended, rig.one("select session_id from agentmesh.agents where id = %s", rig.root), False)
    calls = [call("write", path="new.txt", content="x"), call("bash", command="touch made"), call("bash", command="ls")]
    rig.script("root", do(*calls), say("ok"))
    rig.worker()
    rig.run()
    write, touch, ls = rig.results()
    assert ("error" not in write, "error" not in touch) == MODES[mode]
    assert ((rig.workdir / "new.txt").exists(), (rig.workdir / "made").exists()) == MODES[mode]
    assert "error" not in ls, "a command that only reads needs no leave"
    for result in (write, touch):
        if "error" in result:
            assert result["refused"] is True


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths and commands of the calls that the gate was asked about, as often as it was."""
    asked: list[str] = []
    judge = ToolGate.judge

    def count(gate: ToolGate, tool: str, given: Any, *others: Any) -> Any:
        asked.append(given.get("path") or given.get("command") or tool)
        return judge(gate, tool, given, *others)

    monkeypatch.setattr(ToolGate, "judge", count)
    return asked


def test_calls_that_only_read_are_judged_once(rig: Rig, judged: list[str]):
    alone, together = [call("read", path="a")], [call("read", path=name) for name in "bc"]
    rig.script("root", do(*alone), do(*together), do(call("bash", command="true")))
    rig.worker()
    rig.run()
    assert judged == ["a", "b", "c", "true"]


@pytest.mark.parametrize("changing", [call("bash", command="ln -s / a"), call("fork", name="child", prompt="x")])
def test_a_call_after_one_with_effects_is_judged_again(rig: Rig, judged: list[str], changing: ScriptedCall):
    rig.root = rig.session(mode=PermissionMode.ASK)
    rules = Permissions.of([Rule(Decision.ALLOW, "bash")]).to_json()
    rig.conn.execute("update agentmesh.agents set permissions = %s where id = %s", [Jsonb(rules), rig.root])
    words = str(changing.arguments.get("command", "fork"))  # type: ignore[union-attr]
    rig.script("root", do(call("read", path="b"), changing, call("read", path="a/etc/passwd")))
    rig.worker()
    rig.run()
    assert judged == ["b", words, "a/etc/passwd", "a/etc/passwd"]
    refused = [result.get("refused", False) for result in rig.results("read")]
    assert refused == [False, words != "fork"], "a link that the call before has made leads out"


@pytest.mark.parametrize("tool", ["read", "grep", "write", "edit"])
@pytest.mark.parametrize("beside", [0, 1])
def test_a_link_that_changes_after_its_call_was_judged_leads_nowhere(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, tool: str, beside: int
):
    rules = Permissions.of([Rule(Decision.DENY, name, "secret.env") for name in ("read", "write")]).to_json()
    rig.conn.execute("update agentmesh.agents set permissions = %s where id = %s", [Jsonb(rules), rig.root])
    (rig.workdir / "secret.env").write_text("SECRET here\n")
    (rig.workdir / "open").write_text("here\n")
    (rig.workdir / "x").symlink_to("open")
    judge = ToolGate.judge

    def then_swap(gate: ToolGate, judged: str, given: Any, *others: Any) -> Any:
        verdict = judge(gate, judged, given, *others)
        if judged == tool:  # as a command in the background would do
            (rig.workdir / "y").symlink_to("secret.env")
            (rig.workdir / "y").replace(rig.workdir / "x")
        return verdict

    monkeypatch.setattr(ToolGate, "judge", then_swap)
    given = {"grep": {"pattern": "here"}, "write": {"content": "new"}, "edit": {"old": "here", "new": "there"}}
    rig.script("root", do(call(tool, path="x", **given.get(tool, {})), *[call("glob", pattern="*")] * beside))
    rig.worker()
    rig.run()
    result, *_ = rig.results(tool)
    assert result == {"error": "x changed while it was opened.", "hint": "Look at it again, then repeat the call."}
    assert (rig.workdir / "secret.env").read_text() == "SECRET here\n"


@pytest.mark.parametrize(("waited_for", "first"), [("finish_calls", "nonsense"), ("ask", "bash")])
def test_a_call_after_a_wait_for_the_database_is_judged_again(rig: Rig, waited_for: str, first: str):
    rig.root = rig.session(mode=PermissionMode.ASK)
    link = rig.workdir / "a"

    def change(when: str, name: str) -> None:
        if (when, name) == ("before", waited_for) and not link.is_symlink():
            link.symlink_to("/")

    read, other = call("read", path="a/etc/passwd"), call(first, command="touch x")
    rig.script("root", do(read, other) if first == "bash" else do(other, read))
    rig.worker(hook=change)
    rig.prompt()
    (result,) = rig.until(lambda: rig.results("read"))
    assert result["refused"] is True
    rig.interrupt("root")
    rig.rest()


def test_three_identical_refusals_end_a_turn(rig: Rig):
    rig.script("root", *[do(call("nonsense"))] * 10)
    rig.worker()
    rig.prompt()
    rig.rest()
    text, error = rig.last()
    assert text == ""
    assert error is not None
    assert "3 identical refusals: nonsense: there is no tool 'nonsense'" in error
    assert len(rig.requests()) == 3


def test_a_wait_between_does_not_hide_that_a_refusal_repeats(rig: Rig):
    rig.fork("child")
    again = do(call("fork", name="all", prompt="x"), call("wait", timeout=0.01))
    rig.script("root", *[again] * 10)
    rig.worker()
    rig.prompt()
    rig.rest()
    assert "reserved" in str(rig.last()[1])
    assert len(rig.requests()) == 3


def test_different_refusals_end_no_turn(rig: Rig):
    rig.script("root", *(do(call(f"nonsense{n % 2}")) for n in range(8)), say("enough"))
    rig.worker()
    assert rig.run() == "enough"


def test_output_is_clipped_in_the_middle_and_says_so(rig: Rig):
    rig.script("root", do(call("bash", command="echo first; head -c 100000 /dev/zero | tr '\\0' x; echo; echo last")))
    rig.worker(output_limit=4096)
    rig.run()
    output = rig.results("bash")[0]["output"]
    assert len(output.encode()) <= 4096
    assert output.startswith("first")
    assert output.endswith("last\n")
    assert "bytes cut" in output


def test_a_tool_that_breaks_is_a_result_without_a_traceback(rig: Rig):
    parts = rig.worker()

    def run(_args, _context):
        raise KeyError("a defect")

    parts.tools["glob"].run = run  # type: ignore[method-assign]
    rig.script("root", do(call("glob", pattern="*")), say("I see."))
    assert rig.run() == "I see."
    (result,) = rig.results("glob")
    assert "defect" in result["error"]
    assert "Traceback" not in json.dumps(rig.rows())


def test_a_name_that_is_unknown_in_a_wait_fails_nobody_else(rig: Rig):
    rig.fork("child")
    rig.script("root", do(call("wait", timeout=5, from_agents=["parent", "nobody", "child"])))
    rig.worker()
    rig.run()
    (result,) = rig.results("wait")
    assert result["outcome"] == "complete"
    assert [entry["agent_id"] for entry in result["results"][:2]] == ["parent", "nobody"]
    assert result["results"][2]["status"] == "idle"
