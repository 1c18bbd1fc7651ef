from __future__ import annotations

import json
import sys
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from bench.metronome import Metronome, told
from bench.model_server import NOTE, START, STEPS, TASKS, Counts, ModelServer, program_work, task_calls, work
from bench.peers.process import Peer

_TOOL = {"type": "function", "function": {"name": "read", "description": "Reads.", "parameters": {"type": "object"}}}


@pytest.fixture
def sdk():
    with Peer(Path(sys.executable), "bench.peers.frameworks.bare_sdk") as found:
        yield found


@pytest.mark.timeout(180)
def test_the_bare_sdk_does_the_whole_work_and_the_server_counts_it(sdk, tmp_path) -> None:
    (tmp_path / NOTE).write_text("one line\n")
    with ModelServer() as models:
        told = {"base_url": models.base_url, "workdir": str(tmp_path), "system": "Be brief.", "tools": [_TOOL]}
        sdk.ask(told)
        before = models.counts()
        done = sdk.ask({"prompt": f"{START} 2"})
        after = models.counts()
    assert before == Counts()
    assert after.minus(before) == work(2, tools=1, system=len("Be brief."))
    assert done["events"] == 50 * 3


def test_work_left_out_shows_in_the_counts() -> None:
    with ModelServer() as models:
        _ask(models.base_url, f"{START} 2", stream=False)
        assert models.counts() == Counts(model_calls=1, tool_calls=2)
        assert models.counts() != work(2, tools=0, system=0)


def test_an_agent_that_only_makes_steps_ends_after_so_many() -> None:
    with ModelServer() as models:
        call = json.loads(_ask(models.base_url, f"{STEPS} 2", stream=False))["choices"][0]["message"]["tool_calls"][0]
        last = json.loads(_ask(models.base_url, f"{STEPS} 1", stream=False))["choices"][0]["message"]
    assert json.loads(call["function"]["arguments"]) == {"path": NOTE, "offset": 1, "limit": 1}
    assert (last["content"], last.get("tool_calls")) == ("done", None)


def test_the_metronomes_tokens_say_when_they_left() -> None:
    with Metronome() as models:
        events = [line[6:] for line in _ask(models.base_url, told(20, 500)).splitlines() if line.startswith("data: {")]
        choices = [choice for event in events for choice in json.loads(event)["choices"]]
        tokens = [choice["delta"]["content"] for choice in choices if "content" in choice["delta"]]
        left = [at for token in tokens if (at := models.left(token))]
        assert len(left) == len(tokens) == len(models.late()) == 20
        assert left == sorted(left)


def test_the_metronome_has_nothing_to_say_of_itself() -> None:
    with Metronome() as models:
        connection = HTTPConnection(urlsplit(models.base_url).netloc, timeout=60)
        for _ in range(2):  # on one connection, as a client asks
            connection.request("GET", "/props")
            assert connection.getresponse().read() == b""
        connection.close()
        assert models.late() == []


def test_a_token_cut_in_front_is_not_taken_for_a_time() -> None:
    with Metronome() as models:
        whole = models.left("001000 ")
        assert models.left("345 001000 ") == whole
        assert models.left("345 ") is None
        assert models.left("") is None


def _ask(base_url: str, prompt: str, *, stream: bool = True) -> str:
    """Ask a model server once; return what it says."""
    url = urlsplit(base_url)
    connection = HTTPConnection(url.hostname or "", url.port)
    try:
        body = {"model": "model", "messages": [{"role": "user", "content": prompt}], "stream": stream}
        connection.request("POST", f"{url.path}/chat/completions", json.dumps(body))
        return connection.getresponse().read().decode()
    finally:
        connection.close()


@pytest.mark.timeout(180)
def test_the_bare_sdk_gives_tasks_to_sub_agents_with_their_own_prompt_and_tools(sdk, tmp_path) -> None:
    (tmp_path / NOTE).write_text("one line\n")
    with ModelServer() as models:
        told = {"base_url": models.base_url, "workdir": str(tmp_path), "system": "Be brief.", "tools": [_TOOL]}
        sdk.ask({**told, "sub_agent": {"system": "Be.", "tools": []}})
        done = sdk.ask({"prompt": f"{TASKS} 2"})
        did = models.counts()
    expected = program_work(task_calls(2), 2, waits=False)
    assert (did.model_calls, did.streamed, did.tool_calls, did.results, did.answered) == expected
    assert (did.tools, did.system) == (2, 2 * len("Be brief.") + 8 * len("Be."))
    assert done["events"] == 50 * 3
