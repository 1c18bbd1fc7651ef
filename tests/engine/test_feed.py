from __future__ import annotations

import json
import math
import uuid
from contextlib import closing

import psycopg
import pytest

from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import PermissionMode
from agentmesh.engine import call_progress
from agentmesh.engine.feed import CallOutput, Feed, _Repeat
from agentmesh.engine.observer import Observer
from agentmesh.llm.port import CallFailed
from agentmesh.store import agents
from agentmesh.store.status import is_screen_channel, screen_channel, session_channel
from agentmesh.store.tx import Database
from tests.fixtures.engine import Rig, call, do, say, until
from tests.fixtures.mesh import Mesh


@pytest.fixture
def feed(database_url):
    with Database(database_url, role="test") as database:
        made = Feed(database)
        made.start()
        yield made
        made.stop()


def heard(conn: psycopg.Connection, n: int) -> list[str]:
    found = [each.payload for each in conn.notifies(timeout=10, stop_after=n)]
    assert len(found) >= n
    return found


def test_live_text_arrives_as_it_was_said(mesh: Mesh, feed: Feed):
    mesh.conn.execute(f'listen "{session_channel(mesh.session)}"')
    said = 'a "quoted" line\nand an emoji 🙂 \0 \ud800 '
    message = feed.message(mesh.session, mesh.root, after=7)
    message.text(said)
    (payload,) = heard(mesh.conn, 1)
    assert json.loads(payload.removeprefix("live ")) == {str(mesh.root): [7, 0, said]}
    message.text("more")
    (payload,) = heard(mesh.conn, 1)
    assert json.loads(payload.removeprefix("live ")) == {str(mesh.root): [7, len(said), "more"]}


def test_an_answer_that_begins_again_says_so_even_before_it_has_text(mesh: Mesh, feed: Feed):
    mesh.conn.execute(f'listen "{session_channel(mesh.session)}"')
    message = feed.message(mesh.session, mesh.root, after=7)
    message.text("half an ans")
    heard(mesh.conn, 1)
    message.void()
    (payload,) = heard(mesh.conn, 1)
    assert json.loads(payload.removeprefix("live ")) == {str(mesh.root): [7, 0, ""]}


@pytest.mark.parametrize("agents", [1, 30, 64, 500])
@pytest.mark.parametrize("text", ["x" * 20_000, "🙂" * 5_000, "", '"\n' * 3_000])
def test_what_many_agents_say_at_once_fits_into_one_notification(mesh: Mesh, feed: Feed, agents, text):
    mesh.conn.execute(f'listen "{session_channel(mesh.session)}"')
    messages = [feed.message(mesh.session, AgentId(uuid.uuid4()), 12_345) for _ in range(agents)]
    with feed._lock:  # all of it before the next flush
        for message in messages:
            message.add(text)
            feed._messages[message.agent] = message
    feed._dirty.set()
    (payload,) = heard(mesh.conn, 1)
    live = json.loads(payload.removeprefix("live "))
    assert len(live) >= min(agents, 100)
    assert all(text[place:] == shown and (shown or not text) for _, place, shown in live.values())
    if agents == 1 and len(text) > 10_000:
        assert len(payload) > 4_000, "what there is room for is used"


def test_of_many_steps_screens_are_told_together(mesh: Mesh, feed: Feed):
    mesh.conn.execute(f'listen "{session_channel(mesh.session)}"')
    agents = {AgentId(uuid.uuid4()) for _ in range(300)}
    with feed._lock:
        feed._stepped[mesh.session] |= agents
    feed._dirty.set()
    hints = heard(mesh.conn, 2)
    assert [hint.split(" ")[0] for hint in hints] == ["steps", "steps"]
    assert {agent for hint in hints for agent in hint.split(" ")[1:]} == {str(agent) for agent in agents}


def test_what_was_said_is_told_before_the_step_that_stores_it(mesh: Mesh, feed: Feed):
    mesh.conn.execute(f'listen "{session_channel(mesh.session)}"')
    message = feed.message(mesh.session, mesh.root, after=7)
    with feed._lock:
        feed._stepped[mesh.session].add(mesh.root)
        message.add("the end")
        feed._messages[mesh.root] = message
    feed._dirty.set()
    live, step = heard(mesh.conn, 2)
    assert live.startswith("live ")
    assert step == f"steps {mesh.root}"


def test_an_activity_is_stored_and_that_of_an_agent_that_is_gone_harms_no_other(mesh: Mesh, feed: Feed):
    feed.activity(AgentId(uuid.uuid4()), "thinking")
    feed.activity(mesh.root, "tool: bash")
    feed.stop()
    assert mesh.one("select activity from agentmesh.activity where agent_id = %s", mesh.root) == "tool: bash"


def test_what_cannot_be_told_does_not_silence_what_comes_after(mesh: Mesh, feed: Feed):
    mesh.conn.execute(f'listen "{session_channel(mesh.session)}"')
    feed.activity(mesh.root, 5)  # type: ignore[arg-type]
    until(lambda: not feed._activities)
    feed.message(mesh.session, mesh.root, after=7).text("more")
    heard(mesh.conn, 1)


# What is told again


def asked(mesh: Mesh) -> str:
    """Return a channel on which a screen asks and listens."""
    channel = screen_channel()
    mesh.conn.execute(f'listen "{channel}"')
    return channel


def repeated(mesh: Mesh, channel: str, length: int) -> str:
    """Return the text that comes on a channel, so long; each piece goes on where the last one ended."""
    text: str = ""
    for heard_one in mesh.conn.notifies(timeout=20):
        assert heard_one.channel == channel
        assert len(heard_one.payload.encode()) < 8000
        ((after, place, piece),) = json.loads(heard_one.payload.removeprefix("live ")).values()
        assert (after, place) == (7, len(text))
        text += str(piece)
        if len(text) >= length:
            return text
    raise AssertionError(f"only {len(text)} characters came")


@pytest.mark.slow
@pytest.mark.parametrize("said", ["short", "x" * 100_000, "🙂\n" * 9_000])
def test_a_screen_that_comes_late_is_told_all_of_it_on_its_own_channel(mesh: Mesh, feed: Feed, said: str):
    message = feed.message(mesh.session, mesh.root, after=7)
    for start in range(0, len(said), 5_000):
        message.text(said[start : start + 5_000])
    until(lambda: not feed._messages)
    one, other = asked(mesh), screen_channel()
    feed.repeat(mesh.root, one)
    assert repeated(mesh, one, len(said)) == said
    feed.repeat(mesh.root, other)
    until(lambda: not feed._repeats)
    assert list(mesh.conn.notifies(timeout=0)) == []


def test_an_answer_that_ended_or_begins_again_is_not_repeated(mesh: Mesh, feed: Feed):
    message = feed.message(mesh.session, mesh.root, after=7)
    message.text("half")
    until(lambda: not feed._messages)
    with feed._lock:
        feed._repeats[mesh.root, "x"] = _Repeat(message)
    message.void()
    assert not feed._repeats
    message.text("whole")
    until(lambda: not feed._messages)
    channel = asked(mesh)
    feed.repeat(mesh.root, channel)
    assert repeated(mesh, channel, 5) == "whole"
    message.end(failed=False)
    message.text("after its end")
    feed.repeat(mesh.root, channel)
    assert not feed._repeats
    assert not feed._streaming


def test_text_that_nobody_took_yet_comes_once_and_live(mesh: Mesh, feed: Feed):
    mesh.conn.execute(f'listen "{session_channel(mesh.session)}"')
    message = feed.message(mesh.session, mesh.root, after=7)
    channel = asked(mesh)
    with feed._lock:  # before the next flush
        message.add("all of it")
        feed._messages[mesh.root] = feed._streaming[mesh.root] = message
    feed.repeat(mesh.root, channel)
    found = list(mesh.conn.notifies(timeout=10, stop_after=2))
    assert [json.loads(one.payload[5:])[str(mesh.root)][1:] for one in found] == [[0, "all of it"]] * 2
    assert [one.channel for one in found] == [session_channel(mesh.session), channel]


@pytest.mark.parametrize("channel", ["agentmesh_work", "screen_", "session_event_0", "screen_" + "g" * 32])
def test_a_worker_answers_on_no_other_channel(channel: str):
    assert is_screen_channel(screen_channel())
    assert not is_screen_channel(channel)


def test_of_a_call_that_failed_nothing_is_told_after_its_error(mesh: Mesh, feed: Feed):
    agent = mesh.run(agents.get, mesh.root)
    feed.stop()  # no flush comes between

    def call(error: Exception | None) -> None:
        times = call_progress.TokenTimes()
        may = (lambda _last, _all: True, lambda: math.inf)
        with call_progress.watched(feed, Observer(), agent, 7, times, *may) as watch:
            watch.text("half an")
            assert mesh.root in feed._messages
            if error:
                raise error

    with pytest.raises(CallFailed):
        call(CallFailed("the server broke", kind="server"))
    assert not feed._messages
    call(None)
    assert mesh.root in feed._messages, "the last words of an answer are told, though its row comes soon"


def outputs_in(payload: str) -> dict[str, list[object]]:
    assert payload.startswith("output ")
    assert len(payload.encode()) <= 7_999
    found: dict[str, list[object]] = json.loads(payload.removeprefix("output "))
    return found


def test_what_a_call_has_written_last_is_told_once(mesh: Mesh, feed: Feed):
    mesh.conn.execute(f'listen "{session_channel(mesh.session)}"')
    with feed._lock:
        feed._outputs = {mesh.root: CallOutput(mesh.session, mesh.root, 7, 1, "old")}
    feed.output(CallOutput(mesh.session, mesh.root, 7, 1, "line 1\nline 2"))
    feed._dirty.set()
    (payload,) = heard(mesh.conn, 1)
    assert outputs_in(payload) == {str(mesh.root): [7, 1, "line 1\nline 2"]}
    assert list(mesh.conn.notifies(timeout=1)) == []


@pytest.mark.parametrize("agents", [1, 30, 500])
def test_what_many_calls_write_fits_into_one_notification(mesh: Mesh, feed: Feed, agents: int):
    mesh.conn.execute(f'listen "{session_channel(mesh.session)}"')
    ids = [AgentId(uuid.uuid4()) for _ in range(agents)]
    with feed._lock:
        feed._outputs = {one: CallOutput(mesh.session, one, 1, 0, "🙂" * 900 + "end") for one in ids}
    feed._dirty.set()
    (payload,) = heard(mesh.conn, 1)
    assert all(str(text).endswith("end") for _, _, text in outputs_in(payload).values())


@pytest.mark.slow
def test_a_command_that_runs_tells_which_call_writes_what(rig: Rig):
    rig.root = rig.session(mode=PermissionMode.ALL)
    session = rig.one("select session_id from agentmesh.agents where id = %s", rig.root)
    rig.conn.execute(f'listen "{session_channel(session)}"')
    step = do(call("bash", command="echo first"), call("bash", command="echo second; sleep 1.5; echo third"))
    rig.script("root", step, say("done"))
    rig.worker()
    rig.prompt()
    with closing(rig.conn.notifies(timeout=20)) as notified:
        payload = next(each.payload for each in notified if each.payload.startswith("output "))
    seq = rig.one("select distinct seq from agentmesh.tool_calls")
    assert outputs_in(payload) == {str(rig.root): [seq, 1, "second"]}
    rig.rest()
    assert "third" in rig.results()[1]["output"]
