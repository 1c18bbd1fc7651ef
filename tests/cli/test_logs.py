"""What is recorded of a run, for people and for machines; and what never is."""

from __future__ import annotations

import json
import stat
from typing import Any

PROMPT = "Say s3cret-words, read notes.txt, list the files"


def lines(text: str) -> list[dict[str, Any]]:
    """Return the records among what was said."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def test_nothing_is_recorded_unless_it_is_asked_for(am):
    done = am("run", "--model", "demo", "list files")
    assert done.code == 0
    assert lines(done.err) == []
    assert "called glob" not in done.err


def test_verbose_says_what_goes_on_in_sentences(am):
    done = am("run", "--model", "demo", "--verbose", "list files")
    assert done.code == 0
    assert "called glob" in done.err
    assert "asked demo/demo" in done.err
    assert lines(done.err) == []


def test_a_log_file_has_a_line_for_each_thing_that_happened_with_all_ids(am, conn):
    file = am.folder.parent / "agentmesh.log"
    done = am("run", "--model", "demo", "--log-file", str(file), "fork")
    assert done.code == 0
    assert lines(done.err) == []
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    records = lines(file.read_text())
    assert len(records) == len(file.read_text().splitlines())
    agents = {name: str(id_) for name, id_ in conn.execute("select name, id from agentmesh.agents")}
    [(session,)] = conn.execute("select id::text from agentmesh.sessions")
    about = [record for record in records if "agent" in record]
    assert {record["name"]: record["agent"] for record in about} == agents
    assert {record["session"] for record in about} == {session}
    assert all({"time", "level", "event", "message", "pid", "worker", "turn"} <= record.keys() for record in about)
    assert {record["parent"] for record in about if record["name"] != "root"} == {agents["root"]}
    calls = {
        (record["agent"], record["step"], record["call"], record["tool"]) for record in records if "tool" in record
    }
    stored = "select agent_id::text, seq, ordinal, name from agentmesh.tool_calls"
    assert calls == set(conn.execute(stored).fetchall())
    asked = [record for record in records if record["event"] == "model.call"]
    sums = sum(record["input_tokens"] for record in asked), sum(record["output_tokens"] for record in asked)
    used = "select sum(input_tokens)::int, sum(output_tokens)::int from agentmesh.model_calls"
    assert conn.execute(used).fetchall() == [sums]


def test_no_word_of_anybody_and_no_password_is_recorded(am, database_url):
    am.folder.mkdir()
    (am.folder / "notes.txt").write_text("t0p-secret")
    done = am("run", "--model", "demo", "--log-file", "-", PROMPT, AGENTMESH_LOG_LEVEL="debug")
    assert done.code == 0
    everything = "\n".join(json.dumps(record) for record in lines(done.err))
    assert "model.call" in everything
    for words in ("s3cret", "t0p-secret", "notes.txt", str(am.folder)):
        assert words not in everything


def test_on_stderr_no_tree_is_drawn_between_the_records(am):
    done = am("run", "--model", "demo", "list files", AGENTMESH_LOG_FILE="-")
    assert done.code == 0
    assert "◐" not in done.err
    others = [line for line in done.err.splitlines() if not line.startswith("{")]
    assert [line.split()[0] for line in others] == ["completed"]


def test_the_level_leaves_out_what_is_below_it(am):
    done = am("run", "--model", "demo", "list files", AGENTMESH_LOG_FILE="-", AGENTMESH_LOG_LEVEL="warning")
    assert done.code == 0
    assert lines(done.err) == []


def test_a_worker_records_what_it_says(am):
    with am.start("worker", "--log-file", "-", "--linger", "0") as worker:
        _, said = worker.communicate(timeout=50)
    records = lines(said.decode())
    assert worker.returncode == 0
    assert {record["event"] for record in records} == {"worker"}
    assert " started" in records[0]["message"]
    assert len(records) == len(said.decode().splitlines()), "records are all that is on stderr"


def test_a_log_file_that_cannot_be_written_is_a_sentence(am):
    file = am.folder / "nowhere" / "agentmesh.log"
    done = am("worker", "--log-file", str(file))
    assert done.code == 2
    assert done.err == f"agentmesh: The log file {file} cannot be written: No such file or directory.\n"


def test_a_project_cannot_name_a_file_to_write_to(am):
    (am.folder / ".agentmesh").mkdir(parents=True)
    (am.folder / ".agentmesh" / "config.toml").write_text('[log]\nfile = "taken"\n')
    done = am("run", "--model", "demo", "list files")
    assert "log.file is ignored" in done.err
    assert not (am.folder / "taken").exists()
