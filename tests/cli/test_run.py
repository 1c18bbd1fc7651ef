"""run and demo, with the scripted model behind a real server."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Any

import pytest

from tests.fixtures.commands import ROOT

DEMO = ("--model", "demo")


def test_run_prints_the_roots_last_words_and_a_line_per_change_of_state(am):
    (am.folder).mkdir()
    (am.folder / "found.txt").write_text("x")
    done = am("run", *DEMO, "list files")
    assert done.code == 0, done.err
    assert done.out == "There is 1 file:\n- found.txt\n"
    assert "\x1b" not in done.err
    assert [line.split("  ")[:2] for line in done.err.splitlines()[:2]] == [["root", "◐ running"], ["root", "● done"]]
    assert "completed in" in done.err


def test_the_prompt_comes_through_a_pipe_and_a_session_goes_on(am, mesh):
    first = am("run", *DEMO, "--json", stdin="list files")
    session = first.events[-1]["session_id"]
    assert am("run", "-c", "list files").code == 0
    again = am("run", "--resume", session[:8], "--json", "list files")
    assert again.events[-1]["session_id"] == session
    said = [event["text"] for event in again.events if event["type"] == "mail"]
    assert said == ["list files"], "events of earlier runs are not told again"
    assert mesh.one("select count(*) from agentmesh.sessions where workdir = %s", str(am.folder)) == 1


def test_json_tells_everything_in_order_and_ends_with_the_result(am):
    done = am("run", *DEMO, "--json", "fork")
    assert done.code == 0, done.err
    events = done.events
    assert all({"type", "agent_id", "name", "parent_id"} <= event.keys() for event in events)
    root = events[0]["agent_id"]
    (forked,) = [event for event in events if event["type"] == "forked"]
    assert forked["parent_id"] == root
    child = [event["type"] for event in events if event["agent_id"] == forked["agent_id"]]
    assert child[:2] == ["forked", "mail"] or child[:3] == ["forked", "status", "mail"]
    seqs = [event["seq"] for event in events if event["agent_id"] == root and "seq" in event]
    assert seqs == sorted(seqs)
    assert set(seqs) == set(range(1, max(seqs) + 1)), "no row is left out"
    calls = {event["call_id"] for event in events if event["type"] == "tool_call"}
    assert calls == {event["call_id"] for event in events if event["type"] == "tool_result"}
    last = events[-1]
    assert (last["type"], last["status"], last["agents"]) == ("result", "completed", 2)
    assert last["tokens"] > 0
    assert last["result"]


def test_what_was_not_permitted_is_named_with_the_flag_that_allows_it(am):
    done = am("run", *DEMO, "--json", "run touch made")
    assert done.events[-1]["refused"] == [
        {"allow_with": "--permission-mode all", "allow_rules": ["bash(touch made)"], "tools": ["bash"]}
    ]
    assert "Not permitted: bash. This allows it: --allow 'bash(touch made)', or --permission-mode all" in done.err
    assert not (am.folder / "made").exists()
    assert am("run", "-c", "--permission-mode", "all", "run touch made").code == 0
    assert (am.folder / "made").exists()


def test_ctrl_c_interrupts_all_agents_and_exits_130(am, mesh):
    with am.start("run", *DEMO, "--json", "--permission-mode", "all", "run sleep 300") as run:
        run.stdin.close()
        for line in run.stdout:
            if json.loads(line)["type"] == "tool_call":
                break
        run.send_signal(signal.SIGINT)
        rest = [json.loads(line) for line in run.stdout.read().splitlines()]
        assert run.wait(30) == 130
    assert (rest[-1]["type"], rest[-1]["status"]) == ("result", "interrupted")
    assert mesh.column("select distinct status from agentmesh.agents where model = 'demo/demo'") == ["idle"]


def test_the_second_request_to_stop_leaves_at_once():
    code = (
        "import os, signal\n"
        "from agentmesh.cli.stopping import stoppable\n"
        "with stoppable(lambda: print('stopping', flush=True), 'Left at once.') as stop:\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    assert stop.asked\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    print('still here')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "stopping\n", "\nLeft at once.\n")


def test_a_time_limit_interrupts_and_exits_3(am, mesh):
    done = am("run", *DEMO, "--permission-mode", "all", "--timeout", "0.5", "run sleep 300")
    assert (done.code, done.out) == (3, "")
    assert "agentmesh: the time limit passed before all agents were done" in done.err
    assert mesh.column("select distinct status from agentmesh.agents") == ["idle"]


def test_a_spent_budget_exits_3_with_advice(am):
    done = am("run", *DEMO, "list files", AGENTMESH_MAX_TOKENS="0")
    assert (done.code, done.out) == (3, "")
    assert "budget" in done.err


def test_17_5_a_run_whose_children_hit_their_budgets_is_not_completed(am, mesh, here):
    for name in ("one", "two"):
        child = mesh.fork(here, name, "list files")
        mesh.conn.execute("update agentmesh.agents set max_tokens = 1 where id = %s", [child])
    mesh.kill(mesh.fork(here, "gone", "list files"))
    done = am("run", "-c", "list files")
    assert done.code == 3
    assert done.out.strip(), "the root's last words are there all the same"
    assert "limit in " in done.err
    assert "completed" not in done.err
    assert "root/one ended with an error: the next model call of one" in done.err
    assert "agentmesh: the root is done, but 2 agents stopped at a limit (one, two)" in done.err
    assert "agentmesh budget one AMOUNT" in done.err
    again = am("run", "-c", "--json", "list files")
    assert again.code == 0, "this run had no such end"
    child = mesh.fork(here, "three", "list files")
    mesh.conn.execute("update agentmesh.agents set max_tokens = 1 where id = %s", [child])
    last = am("run", "-c", "--json", "list files").events[-1]
    assert (last["status"], bool(last["result"])) == ("limit", True)
    assert "1 agent stopped at a limit (three)" in last["error"]
    assert [*last["failed"]] == ["root/three"]


def test_17_5_a_child_that_failed_is_named_though_the_root_is_done(am, mesh, here):
    child = mesh.fork(here, "unlucky", "hello")
    mesh.conn.execute("update agentmesh.agents set model = 'openai/gpt' where id = %s", [child])
    environ = {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_API_KEY": "k", "AGENTMESH_MODEL_RETRIES": "0"}
    done = am("run", "-c", "list files", **environ)
    assert done.code == 0, done.err
    assert "completed in " in done.err
    assert "root/unlucky ended with an error: openai (model gpt) at http://127.0.0.1:1/v1 cannot be reached" in done.err


def test_a_model_server_that_is_not_there_exits_1_with_its_sentence(am):
    environ = {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_API_KEY": "k", "AGENTMESH_MODEL_RETRIES": "0"}
    done = am("run", "--model", "gpt", "hello", "--json", **environ)
    assert done.code == 1
    assert "agentmesh: openai (model gpt) at http://127.0.0.1:1/v1 cannot be reached" in done.err
    error, result = done.events[-3], done.events[-1]
    assert error["type"] == "error"
    assert result["status"] == "failed"
    assert result["error"] == error["error"]


def test_a_model_server_that_is_away_is_told_at_once_on_stderr_and_waited_for(am):
    environ = {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_API_KEY": "k", "AGENTMESH_MODEL_LONGEST_PAUSE": "4"}
    done = am("run", "--model", "gpt", "hello", **environ)
    assert done.code == 1
    (told,) = [line for line in done.err.splitlines() if "paused" in line]
    assert "(gives up in " in told
    assert told.endswith("openai (model gpt) at http://127.0.0.1:1/v1 cannot be reached: Connection refused")
    assert "Pauses of 4 s in total did not help" in done.err


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ({"text": "So", "finish_reason": "length"}, "is cut off at the model's limit of output"),
        ({"text": ""}, "is empty"),
        ({"text": "Done."}, None),
    ],
)
def test_a_last_answer_that_is_not_whole_is_remarked_on(am, tmp_path, reply, words):
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"rules": [{"reply": reply}]}))
    with am.start("simulate", "--script", str(script)) as simulator:
        url = simulator.stdout.readline().decode().strip()
        done = am("run", "--model", "any", "hello", OPENAI_BASE_URL=url)
    assert (done.code, done.out) == (0, f"{reply['text']}\n")
    assert ("The root's last answer" in done.err) == (words is not None)
    assert words is None or f"The root's last answer {words}." in done.err


_CALL = '{"name": "write", "arguments": {"path": "a", "content": "b"'


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (_CALL, 1, "agentmesh: the model wrote a tool call that could not be read, twice in a row"),
        (f"Like this:\n```json\n{_CALL}}}}}\n```", 0, "doubtful: the answer shows a tool call that was not made."),
        ("I have forked three children.", 0, "doubtful: the answer tells of tool calls that were not made."),
    ],
    ids=["unread", "shown", "told"],
)
def test_a_run_that_ends_with_a_call_that_was_not_made_says_so(am, tmp_path, text, code, words):
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"rules": [{"reply": {"text": text}}]}))
    with am.start("simulate", "--script", str(script)) as simulator:
        url = simulator.stdout.readline().decode().strip()
        done = am("run", "--model", "any", "hello", OPENAI_BASE_URL=url)
        logged = am("log", "root")
    assert done.code == code
    assert words in done.err
    assert "agentmesh ▸ Your last answer" in " ".join(logged.out.split())
    assert not (am.folder / "a").exists()


_FORK = {"name": "fork", "arguments": {"name": "helper", "prompt": "work"}}
_TASK = {"name": "task", "arguments": {"description": "help", "prompt": "work"}}
_REFUSED = {"tool_calls": [{"name": "bash", "arguments": {"command": "touch made"}}]}


@pytest.mark.parametrize(
    ("made", "replies", "words"),
    [
        (_TASK, [{"text": _CALL}], "ended with an error: the model wrote a tool call that could not be read"),
        (_TASK, [{"text": _CALL, "finish_reason": "length"}], "help is cut off at the model's limit of output."),
        (_TASK, [_REFUSED, {"text": "Not allowed."}], "Not permitted: bash. This allows it:"),
        (_FORK, [{"text": ""}], "helper is empty."),
        (
            _FORK,
            [{"text": "So", "finish_reason": "content_filter"}],
            "helper is cut off by the provider's content filter",
        ),
    ],
    ids=["unread", "cut", "refused", "empty", "filtered"],
)
def test_a_run_says_what_became_of_the_work_of_others(am, tmp_path, made, replies, words):
    script = tmp_path / "script.json"
    rules: list[dict[str, Any]] = [
        {"when": {"step": 0, "input_contains": "begin"}, "reply": {"tool_calls": [made]}},
        *({"when": {"step": n, "input_contains": "work"}, "reply": reply} for n, reply in enumerate(replies)),
        {"when": {"input_contains": "work"}, "reply": replies[-1]},
        {"when": {"input_contains": "could not be read"}, "reply": replies[-1]},  # the correction, asked once
        {"reply": {"text": "All is well."}},
    ]
    script.write_text(json.dumps({"rules": rules}))
    with am.start("simulate", "--script", str(script)) as simulator:
        url = simulator.stdout.readline().decode().strip()
        done = am("run", "--model", "any", "begin", OPENAI_BASE_URL=url)
    assert (done.code, done.out) == (0, "All is well.\n"), done.err
    assert words in done.err
    assert not (am.folder / "made").exists()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["x"], "no model is configured"),
        (["--model", "gpt", "x"], "has no key"),
        (["-c", "x"], "there is no session in"),
        (["-c", "--model", "demo", "x"], "--model cannot be changed"),
        (["--resume", "1234", "-c", "x"], "each name the session"),
    ],
)
def test_a_run_that_cannot_begin_says_why(am, args, words):
    done = am("run", *args)
    assert done.code in (1, 2)
    assert words in done.err
    assert "\n  " in done.err or "--resume" in args


def test_a_session_whose_model_cannot_be_used_here_is_refused_at_once(am, mesh, here):
    mesh.conn.execute("update agentmesh.agents set model = 'openai/gpt' where id = %s", [here])
    done = am("run", "-c", "hello")
    assert done.code == 2
    assert "Set OPENAI_API_KEY." in done.err
    sent = am("send", "root", "hello")
    assert sent.code == 0
    assert "agentmesh: No worker serves this session" in sent.err


def test_a_reader_that_leaves_ends_the_run_and_interrupts_its_agents(am, mesh):
    with am.start("run", *DEMO, "--json", "--permission-mode", "all", "fork") as run:
        run.stdin.close()
        run.stdout.readline()
        run.stdout.close()
        said = run.stderr.read().decode()
        assert run.wait(30) == 130
    assert "Traceback" not in said
    assert "The reader of the events has left." in said
    assert "running" not in mesh.column("select status from agentmesh.agents")


def test_in_a_terminal_the_tree_is_drawn_live(am):
    am.folder.mkdir()
    terminal, inside = pty.openpty()
    command = [sys.executable, "-m", "agentmesh", "run", *DEMO, "fork"]
    with subprocess.Popen(command, cwd=am.folder, env=am.environ, stdin=inside, stdout=inside, stderr=inside) as run:
        os.close(inside)
        shown = b""
        with suppress(OSError):  # Linux: the other side has closed
            while piece := os.read(terminal, 65_536):
                shown += piece
        os.close(terminal)
    assert run.returncode == 0
    text = shown.decode()
    assert "\x1b[1A" in text
    assert "└─ " in text
    assert "◐ running" in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1, "the cursor is shown again"


def test_demo_does_what_it_promises_on_this_directory(am):
    am.folder.mkdir()
    (am.folder / "notes.txt").write_text("one\n")
    done = am("demo", "--json")
    assert done.code == 0, done.err
    assert "script" in done.err
    assert "agentmesh run --model NAME" in done.err
    assert " s: 6 agents" in done.err
    tools = {event["tool"] for event in done.events if event["type"] == "tool_result"}
    assert {"fork", "task", "send", "wait", "kill", "glob", "read", "grep", "bash"} <= tools
    assert "notes.txt" in done.events[-1]["result"]
    ended = {event["name"]: event["status"] for event in done.events if event["type"] == "status"}
    assert sorted(ended.values()) == ["dead", *["idle"] * 5]


@pytest.mark.parametrize("home", ["home", os.devnull], ids=["home", "no home to write a log to"])
def test_sending_starts_a_worker_when_none_serves_the_session(am, mesh, here, home):
    mesh.conn.execute("update agentmesh.workers set ended_at = now()")
    sent = am("send", "root", "list files", XDG_STATE_HOME=str(am.folder / home))
    assert sent.code == 0, sent.err
    assert "one was started in the background" in sent.err
    try:
        waited = am("wait", "root", "--timeout", "40", "--json")
        assert waited.data["results"][0]["status"] == "idle"
    finally:
        for pid in mesh.column("select pid from agentmesh.workers where ended_at is null"):
            os.kill(pid, signal.SIGTERM)


@pytest.mark.parametrize("option", ["--timeout", "--max-cost"])
@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
def test_a_number_that_is_none_is_refused_by_its_option(am, option, number):
    done = am("run", *DEMO, option, number, "hello")
    assert (done.code, option in done.err, "max-cost-usd" in done.err) == (2, True, False), done.err


def test_a_cap_of_nothing_is_not_passed_over_in_an_existing_session(am):
    assert am("run", *DEMO, "hello").code == 0
    done = am("run", "-c", "--max-cost", "0", "hello")
    assert (done.code, done.out) == (2, "")
    assert "--max-cost cannot be changed in an existing session" in done.err


def in_shell(am: Any, command: str) -> subprocess.CompletedProcess[str]:
    """Run ``agentmesh`` by a shell, which may redirect or close its streams."""
    line = f"exec {sys.executable} -m agentmesh {command}"
    return subprocess.run(
        ["sh", "-c", line], cwd=am.folder, env=am.environ, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("how", "code", "says"),
    [
        (">/dev/full", 1, "cannot be written: No space left on device"),
        ("--json >/dev/full", 1, "cannot be written: No space left on device"),
        (">&-", 0, ""),
        ("2>&-", 0, ""),
        (">&- 2>&- <&-", 0, ""),
        ("2>/dev/full", 0, ""),
    ],
)
def test_an_output_that_takes_nothing_costs_a_sentence_at_most(am, here, how, code, says):
    am.folder.mkdir(exist_ok=True)
    done = in_shell(am, f"ps --all {how}")
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize(("how", "code"), [(">/dev/full", 1), (">&-", 0), ("2>&-", 0)])
def test_a_run_whose_output_takes_nothing_ends_in_words(am, how, code):
    am.folder.mkdir(exist_ok=True)
    done = in_shell(am, f"run --model demo 'list files' </dev/null {how}")
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert ("There are" in done.stdout) == (how == "2>&-")
