"""answer, as a person gives it; and that no agent can."""

from __future__ import annotations

import json
import shlex
import sys
import uuid
from pathlib import Path

import pytest
from psycopg.types.json import Jsonb

from agentmesh.llm.simulator.reply import ScriptedCall, ScriptedReply
from agentmesh.llm.simulator.request import ChatRequestView
from agentmesh.llm.simulator.server import Simulator
from agentmesh.store import requests
from agentmesh.tools.environment import AGENT_VARIABLE
from tests.fixtures.commands import ROOT

RULES = [{"effect": "allow", "tool": "bash", "pattern": "git push *"}]


@pytest.fixture
def approval(mesh, here):
    """A request of the root's: may it push."""
    found = mesh.ask(here)
    values = [Jsonb({"command": "git push\x1b[2J origin", "timeout": 120.0}), "it may write", Jsonb(RULES), found]
    mesh.conn.execute("update agentmesh.requests set arguments = %s, reason = %s, rules = %s where id = %s", values)
    return found


@pytest.fixture
def question(mesh, here):
    """A question of a child of the root's."""
    found = mesh.ask(mesh.fork(here, "scout", "look"), "question")
    values = ["Which colour?", Jsonb(["red", "blue"]), found]
    mesh.conn.execute("update agentmesh.requests set question = %s, options = %s where id = %s", values)
    return found


@pytest.fixture
def fan_out(mesh, here):
    """A request of the root's: may it start twenty agents."""
    found = mesh.ask(here)
    reason = "starts 20 agents on demo/demo, reserves up to $3.10 of $10.00 ($10.00 left)"
    columns = "tool = 'task', reason = %s, agents = 20, covers = array[ordinal]"
    mesh.conn.execute(f"update agentmesh.requests set {columns} where id = %s", [reason, found])
    return found


def answered(mesh, request):
    row = mesh.conn.execute("select answer, answered_by from agentmesh.requests where id = %s", [request]).fetchone()
    assert row is not None
    return row


def test_what_waits_is_listed_with_asker_lineage_and_rules(am, mesh, here, approval, question):
    done = am("answer")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0].split() == ["REQUEST", "AGENT", "ASKED", "TOOL", "WHAT", "RULES", "OF", "always"]
    assert str(approval)[:8] in lines[1]
    assert "bash(git push *)" in lines[1]
    assert "git push\\u001b[2J origin" in lines[1], "nothing hides, and nothing acts on the terminal"
    assert "root/scout" in lines[2]
    assert "Which colour? [red | blue]" in lines[2]
    data = am("answer", "--json").data
    assert [(one["request_id"], one["name"], one["path"], one["kind"]) for one in data] == [
        (str(approval), "root", "root", "approval"),
        (str(question), "scout", "root/scout", "question"),
    ]
    assert data[0]["rules"] == RULES


def test_nothing_to_answer_is_no_error(am, here):
    done = am("answer")
    assert (done.code, done.out) == (0, "")
    assert "Nothing waits for a person." in done.err
    assert am("answer", "--json").data == []


def test_all_sessions_are_listed_on_demand(am, mesh, here, approval):
    other = mesh.ask(mesh.new_session())
    assert [one["request_id"] for one in am("answer", "--all", "--json").data] == [str(approval), str(other)]
    assert [one["request_id"] for one in am("answer", "--json").data] == [str(approval)]


def test_one_is_shown_in_full(am, approval, question):
    done = am("answer", str(approval)[:8])
    assert done.out.splitlines() == [
        f"approval {approval} of root, pending",
        "bash: it may write",
        "  command: git push\\u001b[2J origin",
        "  timeout: 120.0",
        "always allows: bash(git push *)",
    ]
    assert am("answer", str(question)[:8]).out.splitlines()[1:] == ["Which colour?", "  red", "  blue"]
    assert am("answer", str(question)[:8], "--json").data["options"] == ["red", "blue"]


@pytest.mark.parametrize(
    ("args", "answer", "told"),
    [
        (["once"], {"decision": "once"}, "Allowed bash for root, once."),
        (["always"], {"decision": "always"}, "Allowed from now on, in this session: bash(git push *)."),
        (["no"], {"decision": "no"}, "Refused bash for root."),
        (["no", "--reason", " tests first "], {"decision": "no", "reason": "tests first"}, "Refused"),
        (
            ["once", "--arguments", '{"command": "git push -n"}'],
            {"decision": "once", "arguments": {"command": "git push -n"}},
            "Allowed",
        ),
    ],
)
def test_an_approval_is_answered(am, mesh, approval, args, answer, told):
    done = am("answer", str(approval)[:8], *args)
    assert done.code == 0, done.err
    assert done.out.strip() == str(approval)
    assert told in done.err
    said, by = answered(mesh, approval)
    assert said == answer
    assert by.endswith("(agentmesh answer)")


def test_the_question_before_many_agents_start_is_listed_and_shown(am, fan_out):
    assert "starts 20 agents on demo/demo" in am("answer").out
    assert am("answer", "--json").data[0]["agents"] == 20
    lines = am("answer", str(fan_out)).out.splitlines()
    assert lines[1] == "task: starts 20 agents on demo/demo, reserves up to $3.10 of $10.00 ($10.00 left)"
    assert lines[-1] == "always allows: what it asks for, without this question, in this session"
    refused = am("answer", str(fan_out), "perhaps")
    assert "root asks whether it may start 20 agents, and 'perhaps' does not answer that" in refused.err


@pytest.mark.parametrize(
    ("decision", "told"),
    [
        ("once", "root starts 20 agents."),
        ("no", "Refused to let root start 20 agents."),
        ("always", "root starts 20 agents. Agents of this session start others without a question from now on."),
    ],
)
def test_the_question_before_many_agents_start_is_answered(am, mesh, here, fan_out, decision, told):
    done = am("answer", str(fan_out), decision)
    assert done.code == 0, done.err
    assert told in done.err
    session = mesh.one("select session_id from agentmesh.agents where id = %s", here)
    assert mesh.one("select ask_agents from agentmesh.sessions where id = %s", session) == (
        0 if decision == "always" else 20
    )


@pytest.mark.parametrize(
    ("args", "answer", "told"),
    [
        (["once"], {"decision": "once"}, ["Allowed bash for root, once.", "Allowed bash for other, once."]),
        (["no", "--reason", "later"], {"decision": "no", "reason": "later"}, ["Refused bash for root."]),
    ],
)
def test_several_are_answered_at_once(am, mesh, here, approval, args, answer, told):
    other = mesh.ask(mesh.fork(here, "other", "go"))
    done = am("answer", str(approval)[:8], str(other), *args)
    assert done.code == 0, done.err
    assert done.out.split() == [str(approval), str(other)]
    assert all(one in done.err for one in told)
    assert [answered(mesh, one)[0] for one in (approval, other)] == [answer, answer]


def test_of_several_the_rest_is_answered_if_one_is_over(am, mesh, here, approval):
    other, third = (mesh.ask(mesh.fork(here, name, "go")) for name in ("other", "third"))
    assert am("answer", str(other), "no").code == 0
    done = am("answer", str(approval), str(other), str(third), "once", "--json")
    assert done.code == 1
    assert "has answered this request of other" in done.err
    assert [answered(mesh, one)[0]["decision"] for one in (approval, other, third)] == ["once", "no", "once"]
    assert [one["request_id"] for one in done.data] == [str(approval), str(third)]


def test_several_are_answered_only_if_all_are_known_approvals(am, mesh, here, approval, question):
    for others, code in (([str(question)], 2), (["zzzz"], 1), ([str(approval)], 2)):
        assert am("answer", str(approval), *others, "once").code == code
    assert am("answer", str(approval), str(approval)[:8]).code == 2
    assert answered(mesh, approval)[0] is answered(mesh, question)[0] is None


def test_a_question_is_answered_in_words(am, mesh, here, question):
    done = am("answer", str(question)[:8], "the second one", "--json")
    assert done.code == 0, done.err
    assert done.data["answer"] == {"text": "the second one"}
    assert done.data["name"] == "scout"
    assert answered(mesh, question)[0] == {"text": "the second one"}
    again = am("answer", str(question), "-", stdin="blue\n")
    assert again.code == 1
    assert "has answered this request of scout" in again.err


@pytest.mark.parametrize(
    "args",
    [
        ["maybe"],
        ["once", "--reason", "x"],
        ["no", "--arguments", "{}"],
        ["once", "--arguments", "[1]"],
        ["once", "--arguments", "{"],
        ["--reason", "x"],
    ],
)
def test_what_is_no_answer_is_a_usage_error(am, mesh, approval, args):
    done = am("answer", str(approval), *args)
    assert done.code == 2, done.err
    assert done.err.startswith("agentmesh: ")
    assert answered(mesh, approval)[0] is None


def test_options_of_approvals_are_none_of_questions(am, mesh, question):
    assert am("answer", str(question), "x", "--reason", "y").code == 2
    assert answered(mesh, question)[0] is None


def test_an_unknown_request_is_told(am, mesh, here, approval):
    for who in ("zz", str(uuid.uuid4())):
        done = am("answer", who, "once")
        assert done.code == 1
        assert "there is no request" in done.err
    elsewhere = mesh.session_of(mesh.new_session())
    assert am("answer", str(approval), "once", "--session", str(elsewhere)).code == 1
    assert answered(mesh, approval)[0] is None


def test_a_run_says_that_nobody_is_here(am, mesh, here, approval):
    """What waits in a session that a headless run goes on with is refused, so that the run never hangs."""
    done = am("run", "--model", "demo", "list files")
    assert done.code == 0, done.err
    attended = "select attended from agentmesh.sessions where workdir = %s and title = %s"
    assert mesh.one(attended, str(am.folder), "list files") is False
    assert mesh.one(attended, str(am.folder), "here") is True


def test_a_run_names_what_nobody_was_asked_and_what_no_flag_allows(am, mesh):
    def reply(view: ChatRequestView) -> ScriptedReply:
        if view.steps_since(-1) > 0:
            return ScriptedReply("I assumed blue.")
        question = ScriptedCall("ask_user", {"question": "Which colour?"})
        return ScriptedReply(tool_calls=(question, ScriptedCall("bash", {"command": "touch made"})))

    config = Path(am.environ["XDG_CONFIG_HOME"]) / "agentmesh" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[permissions]\ndeny = ["bash(touch *)"]\n')
    with Simulator(reply) as model:
        done = am("run", "--model", "m", "go", OPENAI_BASE_URL=model.base_url, OPENAI_API_KEY="none")
    assert (done.code, done.out) == (0, "I assumed blue.\n"), done.err
    assert "Not permitted in any mode: bash." in done.err
    assert "Nobody was here to answer 1 question. In the terminal UI agents can ask: --resume " in done.err
    (asked,) = mesh.column(
        "select content -> 'result' ->> 'error' from agentmesh.transcript where content ->> 'name' = 'ask_user'"
    )
    assert asked == "nobody is here to answer"


# Only a person


@pytest.mark.parametrize("unset", ["", f"env -u {AGENT_VARIABLE} "])
@pytest.mark.parametrize("away", [False, True])
def test_a_real_agent_cannot_answer_also_when_it_hides(am, mesh, database_url, approval, unset, away):
    am.configure('[sandbox]\nbash = "off"\n')  # behind a wall the database is not there to begin with
    answer = shlex.join([sys.executable, "-m", "agentmesh", "answer", str(approval), "once"])
    command = f"{unset}env PYTHONPATH={ROOT} AGENTMESH_DATABASE_URL='{database_url}' {answer}"
    if away:  # an orphan: who started it is gone
        command = f"sh -c {shlex.quote(f'({command} > out 2>&1; echo $? > code) &')}"
        command += "; while [ ! -s code ]; do sleep 0.05; done; cat out; exit $(cat code)"
    done = am("run", "--model", "demo", "--permission-mode", "all", "--json", f"run {command}")
    assert done.code == 0, done.err
    (result,) = [event["result"] for event in done.events if event["type"] == "tool_result"]
    assert result["exit_code"] == 2, result
    assert "only a person may use `agentmesh answer`, and this runs below" in result["output"]
    assert ("below worker" in result["output"]) == bool(unset)
    assert "cannot allow itself" in result["output"]
    assert answered(mesh, approval)[0] is None
    assert mesh.run(requests.resolve, str(approval)).state == "pending"


def test_rules_in_json_are_what_always_adds(am, mesh, here, approval):
    assert am("answer", str(approval), "always").code == 0
    session = mesh.session_of(here)
    assert mesh.run(requests.rules, session) == json.loads(json.dumps(RULES))
