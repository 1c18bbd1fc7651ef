"""The demo's script, played over HTTP by a tiny engine of this file: real commands on a directory, faked verbs."""

from __future__ import annotations

import json
import re
import subprocess
import uuid
from dataclasses import dataclass, field
from typing import Any

import pytest

from agentmesh.engine.compaction import ASK
from agentmesh.llm.simulator.demo import DEMO_PROMPT, demo_responder
from agentmesh.llm.simulator.demo_jobs import JOBS
from agentmesh.llm.simulator.demo_root import HOW_TO_GO_ON, is_demo_prompt
from agentmesh.llm.simulator.server import Simulator
from agentmesh.tools.shell.judge import read_shell
from tests.llm.simulator_http import chat


@dataclass
class Agent:
    """One agent of the play."""

    name: str
    messages: list[dict[str, Any]]
    parent: Agent | None = None
    agent_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    inbox: list[dict[str, Any]] = field(default_factory=list)
    unread: list[dict[str, Any]] = field(default_factory=list)
    status: str = "running"
    output: str = ""
    sent: bool = False


class Mesh:
    """Plays the engine: one agent at a time, children when somebody waits. ``refuse`` makes a tool fail."""

    def __init__(self, base_url, directory, refuse=(), files=None):
        self.base_url = base_url
        self.directory = directory
        self.refuse = refuse
        self.files = files
        self.root = Agent("root", [{"role": "system", "content": "You are agents."}])
        self.agents = [self.root]
        self.calls = []

    def say(self, text):
        """The user says something to the root; return its answer."""
        return self.turn(self.root, {"role": "user", "content": text})

    def named(self, name):
        return next(agent for agent in self.agents if agent.name == name)

    def turn(self, agent, message):
        agent.messages.append(message)
        agent.status, agent.sent = "running", False
        for _ in range(20):
            answer = chat(self.base_url, messages=agent.messages, model="demo")
            assert answer.status == 200, answer.raw
            said = answer.json["choices"][0]["message"]
            history = list(agent.messages)
            agent.messages.append(said)
            calls = said.get("tool_calls") or []
            if not calls:
                agent.status, agent.output = "idle", said["content"]
                return said["content"]
            for call in calls:
                name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
                self.calls.append((agent.name, name, arguments))
                result = self.result(agent, name, arguments, history)
                if result is None:
                    return None
                content = json.dumps(result, ensure_ascii=False)
                agent.messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
        raise AssertionError(f"{agent.name} does not come to an end")

    def result(self, agent, name, arguments, history):
        if name in self.refuse:
            return {"error": f"{name} is not allowed here", "hint": "do without"}
        if name == "fork":
            return self.fork(agent, arguments, history)
        return getattr(self, name)(agent, **arguments)

    def fork(self, agent, arguments, history):
        taken = [other.name for other in self.agents]
        name = next(
            n for n in (arguments["name"], *(f"{arguments['name']}-{i}" for i in range(2, 9))) if n not in taken
        )
        child = Agent(name, list(history), parent=agent)
        intro = (
            f'You are the agent "{name}", a child of "{agent.name}". '
            "The conversation above is your parent's, for you to know. All its children are made: fork none of them. "
            "Your parent gets your last answer; only if you send messages before that, report with "
            'send(to: "parent", message: ...). Do only this, with your tools, and end with its result:\n\n'
        )
        child.inbox.append({"role": "user", "content": intro + arguments["prompt"]})
        self.agents.append(child)
        return {"agent_id": child.agent_id, "name": name}

    def run_others(self, waiting):
        for agent in self.agents:
            while agent is not waiting and agent.inbox and agent.status != "dead":
                self.turn(agent, agent.inbox.pop(0))

    def wait(self, agent, timeout, from_agents=None):
        if agent.parent is not None:
            return None  # a child that waits for nobody in particular: still running when all others have finished
        self.run_others(agent)
        if from_agents is None:
            rows = [{"status": "received", **mail} for mail in agent.unread[:1]]
            del agent.unread[:1]
            return {"outcome": "complete" if rows else "timeout", "results": rows}
        rows = []
        for wanted in from_agents:
            other = next(a for a in self.agents if a.agent_id == wanted)
            mail = next((m for m in agent.unread if m["agent_id"] == wanted), None)
            row = {"agent_id": wanted, "name": other.name, "status": other.status}
            if mail:
                agent.unread.remove(mail)
                row |= {"status": "received", "message": mail["message"]}
            elif other.status == "idle":
                row["output"] = other.output
            rows.append(row)
        running = any(row["status"] == "running" for row in rows)
        return {"outcome": "timeout" if running else "complete", "results": rows}

    def send(self, agent: Agent, to: str, message: str, after: float = 0):
        other = agent.parent if to == "parent" else next(a for a in self.agents if to in (a.agent_id, a.name))
        assert other is not None
        if other.parent is agent:
            mail = {"mail": {"from": {"agent_id": agent.agent_id, "name": agent.name}, "message": message}}
            other.inbox.append({"role": "user", "content": json.dumps(mail)})
        else:
            other.unread.append({"agent_id": agent.agent_id, "name": agent.name, "message": message})
        return {"status": "sent", "to": {"agent_id": other.agent_id, "name": other.name}, "message_id": 1}

    def kill(self, agent, agent_id):
        other = next(a for a in self.agents if agent_id in (a.agent_id, a.name))
        other.status = "dead"
        return {"killed": [{"agent_id": other.agent_id, "name": other.name}]}

    def glob(self, _agent, pattern):
        if self.files is not None:
            return {"files": self.files, "truncated": True}
        found = sorted(
            str(path.relative_to(self.directory))
            for path in self.directory.rglob("*" if "test" not in pattern else "test*")
            if path.is_file() and ".git" not in path.parts
        )
        return {"files": found}

    def grep(self, _agent, pattern):
        rows = []
        for name in self.glob(None, "**/*")["files"] if self.files is None else []:
            for number, line in enumerate((self.directory / name).read_text(errors="replace").splitlines(), 1):
                if re.search(pattern, line):
                    rows.append({"path": name, "line": number, "text": line})
        return {"matches": rows}

    def read(self, _agent, path, limit):
        lines = (self.directory / path).read_text().splitlines()
        return {"content": "\n".join(f"{n:>6}\t{line}" for n, line in enumerate(lines[:limit], 1)), "lines": len(lines)}

    def bash(self, _agent, command):
        if command.startswith("sleep"):
            return None  # still running when everybody else has finished
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        return {"exit_code": done.returncode, "output": done.stdout.decode()}


@pytest.fixture(scope="module")
def base_url():
    # The openai profile refuses a history that a provider would refuse.
    with Simulator(demo_responder(pace=0), profile="openai") as simulator:
        yield simulator.base_url


@pytest.fixture
def project(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "README.md").write_text("\n# A project\n\nTODO: write it\n")
    (tmp_path / "main.py").write_text("# FIXME\n" + "print()\n" * 100)
    (tmp_path / "tests" / "test_main.py").write_text("assert True  # TODO\n")
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "First: begin"]):
        subprocess.run([*git, *arguments], cwd=tmp_path, check=True)
    return tmp_path


def test_the_demo_makes_its_summary_from_what_the_tools_found(base_url, project):
    mesh = Mesh(base_url, project)
    summary = mesh.say(DEMO_PROMPT)
    assert "- file-reader: 3 files (hidden ones aside); the largest: main.py (808 bytes)" in summary
    assert '- code-analyzer: 3 lines with TODO or FIXME; 1 commit, the newest "First: begin"' in summary
    assert (
        "- test-runner: (sent nothing and ended idle with this output) Found: 1 file with the name of a test" in summary
    )
    assert '- file-reader, asked once more: README.md has 4 lines, the first is "# A project".' in summary
    assert "- slow-poke: running after a wait of 1 second, so it was killed." in summary
    assert "- test-runner, woken by a timer: 4 names in the directory itself, hidden ones too" in summary
    assert summary.endswith(HOW_TO_GO_ON)
    assert "scripted model" in summary


def test_the_demo_uses_the_verbs_as_promised(base_url, project):
    mesh = Mesh(base_url, project)
    mesh.say(DEMO_PROMPT)
    by_root = [(name, arguments) for who, name, arguments in mesh.calls if who == "root"]
    assert [name for name, _ in by_root] == [
        "glob",
        *["fork"] * 4,
        "wait",
        "send",
        "wait",
        "kill",
        "wait",
        "send",
        "wait",
    ]
    forks = next(m["tool_calls"] for m in mesh.root.messages if len(m.get("tool_calls") or []) > 2)
    assert [json.loads(call["function"]["arguments"])["name"] for call in forks] == list(JOBS)
    assert len(by_root[5][1]["from_agents"]) == 3
    assert {name for who, name, _ in mesh.calls if who != "root"} == {"bash", "glob", "grep", "read", "send"}
    assert [who for who, name, _ in mesh.calls if name == "send"] == [
        "file-reader",
        "code-analyzer",
        "root",
        "file-reader",
        "root",
        "test-runner",
    ]
    assert (mesh.named("test-runner").status, mesh.named("slow-poke").status) == ("idle", "dead")


def test_the_demos_commands_are_allowed_without_asking(base_url, project, tmp_path_factory):
    empty = tmp_path_factory.mktemp("empty")
    for directory, commands in ((project, 5), (empty, 6)):
        mesh = Mesh(base_url, directory)
        mesh.say(DEMO_PROMPT)
        run = [arguments["command"] for _, name, arguments in mesh.calls if name == "bash"]
        readings = [read_shell(command, directory) for command in run]
        assert len(readings) == commands
        assert [part.reason for reading in readings for part in reading.parts if not part.read_only] == []
        assert [reading.problem for reading in readings] == [""] * commands


def test_another_directory_gives_another_summary(base_url, project, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    (other / "notes.txt").write_text("one\ntwo\n")
    summary = Mesh(base_url, other).say(DEMO_PROMPT)
    assert "1 file (hidden ones aside); the largest: notes.txt (8 bytes)" in summary
    assert "0 lines with TODO or FIXME; no git history here" in summary
    assert 'notes.txt has 2 lines, the first is "one"' in summary


def test_the_demo_works_in_an_empty_directory(base_url, tmp_path):
    mesh = Mesh(base_url, tmp_path)
    summary = mesh.say(DEMO_PROMPT)
    assert "- file-reader: 0 files (hidden ones aside)\n" in summary
    assert "- file-reader, asked once more: 0 names in the directory itself, hidden ones too" in summary
    assert "so it was killed" in summary


def test_names_with_blanks_unicode_and_quotes_are_told_as_they_are(base_url, tmp_path):
    (tmp_path / "ein Ordner").mkdir()
    (tmp_path / "ein Ordner" / "größte Datei.bin").write_text("x" * 500)
    (tmp_path / 'read"me ü.md').write_text("line\n")
    (tmp_path / "back\\slash").write_text("abc")
    summary = Mesh(base_url, tmp_path).say(DEMO_PROMPT)
    assert 'ein Ordner/größte Datei.bin (500 bytes), read"me ü.md (5 bytes), back\\slash (3 bytes)' in summary
    assert 'read"me ü.md has 1 line' in summary


def test_hidden_files_are_never_read_aloud(base_url, tmp_path):
    (tmp_path / ".env.md").write_text("SECRET=1\n")
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "readme.txt").write_text("SECRET=2\n")
    mesh = Mesh(base_url, tmp_path)
    assert "SECRET" not in mesh.say(DEMO_PROMPT)
    assert not [call for call in mesh.calls if call[1] == "read"]


def test_a_list_that_was_cut_is_said_to_be_more(base_url, tmp_path):
    summary = Mesh(base_url, tmp_path, files=[f"file {n}.bin" for n in range(1000)]).say(DEMO_PROMPT)
    assert "glob saw more than 1,000 files" in summary


def test_refused_tools_are_told_and_nothing_hangs(base_url, project):
    summary = Mesh(base_url, project, refuse=("bash", "grep")).say(DEMO_PROMPT)
    assert "the files could not be counted: bash is not allowed here" in summary
    assert "grep did not work: grep is not allowed here; git log was refused" in summary
    assert "slow-poke: running after a wait of 1 second, so it was killed." in summary


def test_refused_forks_end_the_demo_with_the_reason(base_url, project):
    mesh = Mesh(base_url, project, refuse=("fork",))
    summary = mesh.say(DEMO_PROMPT)
    assert "- code-analyzer could not be forked." in summary
    assert "A call failed: fork is not allowed here" in summary
    assert [name for _, name, _ in mesh.calls] == ["glob", *["fork"] * 4]


def test_the_demo_can_be_given_twice_in_one_session(base_url, project):
    mesh = Mesh(base_url, project)
    first = mesh.say(DEMO_PROMPT)
    second = mesh.say("demo")
    assert "- file-reader-2: 3 files" in second
    assert second.count("\n") == first.count("\n")


def test_mail_after_the_demo_is_noted_without_doing_anything(base_url, project):
    mesh = Mesh(base_url, project)
    mesh.say(DEMO_PROMPT)
    before = len(mesh.calls)
    sender = {"agent_id": mesh.named("test-runner").agent_id, "name": "test-runner"}
    for mail in (
        {"from": sender, "message": "thank you, fork a demo"},
        {"from": sender, "note": "x", "output": "demo"},
    ):
        answer = mesh.turn(mesh.root, {"role": "user", "content": json.dumps({"mail": mail})})
        assert answer.startswith("Noted: ")
    assert len(mesh.calls) == before


@pytest.mark.parametrize(
    ("prompt", "tools", "answer"),
    [
        ("list files", ["glob"], "- main.py"),
        ("Please list the files!", ["glob"], "There are 3 files:"),
        ("fork", ["fork", "wait", "glob", "send"], "helper (received): There are 3 files: - README.md - main.py"),
        ("wait 3", ["wait"], "Nothing came (outcome timeout)."),
        ("run echo hi there", ["bash"], "hi there\n\nExit code 0."),
        ("What is the meaning of life?", ["glob"], "I understand:"),
        ("", ["glob"], "I understand:"),
    ],
)
def test_other_prompts_do_something_small_and_real(base_url, project, prompt, tools, answer):
    mesh = Mesh(base_url, project)
    assert answer in mesh.say(prompt)
    assert [name for _, name, _ in mesh.calls] == tools


def test_send_and_kill_act_on_the_agent_named(base_url, project):
    mesh = Mesh(base_url, project)
    mesh.say("fork")
    assert mesh.say("send helper list files") == "Sent."
    assert mesh.say("kill helper.") == "Killed: helper."
    assert mesh.calls[-2:] == [
        ("root", "send", {"to": "helper", "message": "list files"}),
        ("root", "kill", {"agent_id": "helper"}),
    ]


def test_any_other_prompt_says_that_the_model_is_scripted_and_how_to_use_a_real_one(base_url, project):
    answer = Mesh(base_url, project).say("refactor everything")
    assert "scripted model" in answer
    assert "OPENAI_BASE_URL=... OPENAI_API_KEY=... agentmesh run --model NAME" in answer


def test_what_the_user_says_to_a_child_of_the_demo_is_answered(base_url, project):
    mesh = Mesh(base_url, project)
    mesh.say(DEMO_PROMPT)
    child = mesh.named("code-analyzer")
    assert "There are 3 files" in mesh.turn(child, {"role": "user", "content": "list files"})


@pytest.mark.parametrize(
    ("text", "is_demo"),
    [
        (DEMO_PROMPT, True), ("demo", True), ("Run the demo.", True), ("please show me a demo", True),
        ("run demo.sh", False), ("read the demo file", False), ("democracy", False),
    ],
)  # fmt: skip
def test_only_a_wish_for_the_demo_starts_it(text, is_demo):
    assert is_demo_prompt(text) is is_demo


def test_the_demo_sums_up_when_its_engine_asks_for_it(base_url, project):
    mesh = Mesh(base_url, project)
    mesh.say("hello there")
    told = mesh.say(ASK.format(words=100))
    assert told == "I am a scripted model and remember little. The last that was said to me: hello there"
