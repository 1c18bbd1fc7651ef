"""The feed against a real database: what others do arrives as messages, in order, also after the database was away."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import Any

import pytest

from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import AgentStatus, PermissionMode
from agentmesh.store import agents, person, sessions, status, steps, transcript
from agentmesh.store.listener import Listener
from agentmesh.store.tx import Database
from agentmesh.tui.session import feed as feed_module
from agentmesh.tui.session.feed import Feed
from agentmesh.tui.session.messages import (
    BoardChanged,
    LinkChanged,
    Noticed,
    OlderRows,
    OutputShown,
    RowsArrived,
    TextStreamed,
)
from agentmesh.tui.session.rows import ends_message
from agentmesh.tui.session.schema_watch import SchemaWatch
from agentmesh.tui.session.state import Mark
from tests.fixtures.mesh import Mesh
from tests.tui.posted import Posted, mesh_of


@pytest.fixture
def posted():
    return Posted()


@pytest.fixture
def start(mesh: Mesh, db: Database, tmp_path, posted):
    """Start a feed of the mesh's session."""
    started = []

    def begin(database: Database = db) -> Feed:
        session = database.run(sessions.get, mesh.session)
        feed = Feed(mesh_of(database, tmp_path), session, posted, SchemaWatch(database))
        started.append(feed)
        feed.start()
        posted.next(BoardChanged)
        posted.next(BoardChanged)  # by now it listens
        return feed

    yield begin
    for feed in started:
        feed.stop()


class Telling(Database):
    """A database that tells of each read, between what is posted of them."""

    def __init__(self, url: str, posted: Posted) -> None:
        super().__init__(url, role="test")
        self._posted = posted

    def run(self, function: Any, /, *args: Any, **options: Any) -> Any:
        self._posted(function)
        return super().run(function, *args, **options)


def test_what_a_call_writes_is_posted_of_followed_agents_and_reads_nothing(mesh: Mesh, start, posted):
    other = mesh.fork(mesh.root, "other")
    feed = start()
    feed.follow(mesh.root)
    posted.next(RowsArrived)
    said = json.dumps({str(mesh.root): [3, 1, "line 1"], str(other): [1, 0, "x"]})
    mesh.run(status.publish, [(status.session_channel(mesh.session), f"{status.OUTPUT}{said}")])
    shown = posted.next(OutputShown)
    assert (shown.agent_id, shown.key, shown.text) == (mesh.root, "3.1", "line 1")
    assert len(posted.so_far(OutputShown)) <= 1


def texts(message: RowsArrived) -> list[str]:
    return [str(row.content.get("text") or row.content.get("command")) for row in message.rows]


def test_the_session_and_the_conversation_in_view_are_shown_before_anybody_listens(
    mesh: Mesh, db, tmp_path, posted, monkeypatch
):
    core, shown = mesh_of(db, tmp_path), threading.Event()
    listener = core.listener

    def wait_and_listen(*args: Any) -> Listener:
        assert shown.wait(60)
        return listener(*args)

    monkeypatch.setattr(core, "listener", wait_and_listen)
    feed = Feed(core, db.run(sessions.get, mesh.session), posted, SchemaWatch(db))
    feed.follow(mesh.root)
    feed.start()
    try:
        assert mesh.root in posted.next(BoardChanged).board.faces
        assert posted.next(RowsArrived).first
    finally:
        shown.set()
        feed.stop()


def test_forks_changes_of_state_and_mail_change_the_board(mesh: Mesh, start, posted):
    start()
    child = mesh.fork(mesh.root, "tester", "work")
    board = posted.next(BoardChanged, lambda m: child in m.board.faces).board
    assert board.faces[child].parent == mesh.root
    assert board.faces[child].is_running
    mesh.answer(child, "done")
    board = posted.next(BoardChanged, lambda m: m.board.faces[child].status is AgentStatus.IDLE).board
    assert board.faces[child].ended_with == "assistant"


def test_rows_come_with_the_board_that_has_whom_they_speak_of(mesh: Mesh, database_url: str, start, posted):
    with Telling(database_url, posted) as database:
        feed = start(database)
        feed.follow(mesh.root)
        posted.next(RowsArrived)
        with mesh.conn.transaction():
            child = mesh.fork(mesh.root, "child")
            mesh.run(person.note, mesh.root, {"command": "made a child"})
        posted.next(RowsArrived, lambda m: "made a child" in texts(m))
        board = posted.next(object)
        assert isinstance(board, BoardChanged), "whoever reads the row may press a key: nothing is read between the two"
        assert child in board.board.faces
        feed.stop()


def test_the_mark_of_an_awaited_agent_is_received_as_soon_as_its_mail_lies_there(mesh: Mesh, start, posted):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    start()
    mesh.wait(mesh.root, a, b)
    posted.next(BoardChanged, lambda m: [mark for _, mark in m.board.awaited(mesh.root)] == [Mark.RUNNING] * 2)
    mesh.send(a, mesh.root, "report")
    board = posted.next(BoardChanged, lambda m: m.board.awaited(mesh.root)[0][1] is Mark.RECEIVED).board
    assert board.awaited(mesh.root)[1][1] is Mark.RUNNING
    mesh.kill(b)
    posted.next(BoardChanged, lambda m: m.board.faces[b].is_dead)


def test_title_mode_capture_and_reaping_are_heard(mesh: Mesh, start, posted):
    child = mesh.fork(mesh.root, "a")
    start()
    mesh.run(person.rename_session, mesh.session, "new title")
    posted.next(BoardChanged, lambda m: m.board.session.title == "new title")
    mesh.run(sessions.set_mode, mesh.session, PermissionMode.PLAN)
    posted.next(BoardChanged, lambda m: m.board.session.permission_mode is PermissionMode.PLAN)
    mesh.run(person.begin_capture, child)
    posted.next(BoardChanged, lambda m: m.board.faces[child].capturing)
    mesh.kill(child)
    mesh.run(sessions.reap, mesh.session)
    posted.next(BoardChanged, lambda m: child not in m.board.faces)


def test_what_the_user_wrote_is_pending_until_it_is_read(mesh: Mesh, start, posted):
    lease = mesh.begin(mesh.root)
    start()
    mesh.send(None, mesh.root, "steer")
    board = posted.next(BoardChanged, lambda m: m.board.faces[mesh.root].pending).board
    assert [one.text for one in board.faces[mesh.root].pending] == ["steer"]
    assert mesh.begin(mesh.root) == lease
    posted.next(BoardChanged, lambda m: not m.board.faces[mesh.root].pending)


def test_a_followed_agents_rows_come_as_a_window_and_then_as_they_are_written(mesh: Mesh, start, posted):
    for n in range(3):
        mesh.run(person.note, mesh.root, {"command": f"old {n}"})
    feed = start()
    feed.follow(mesh.root)
    first = posted.next(RowsArrived)
    assert (first.first, first.more, first.inherited, texts(first)) == (True, False, None, ["old 0", "old 1", "old 2"])
    mesh.send(None, mesh.root, "prompt")
    mesh.begin(mesh.root)
    appended = posted.next(RowsArrived)
    assert (appended.first, texts(appended)) == (False, ["prompt"])
    mesh.answer(mesh.root, "answer")
    assert texts(posted.next(RowsArrived)) == ["answer"]


def test_a_long_transcript_comes_by_windows(mesh: Mesh, start, posted):
    mesh.conn.execute(
        "insert into agentmesh.transcript (agent_id, seq, kind, content)"
        " select %s, n, 'command', jsonb_build_object('command', n::text) from generate_series(1, 700) n",
        [mesh.root],
    )
    feed = start()
    feed.follow(mesh.root)
    first = posted.next(RowsArrived)
    assert (first.rows[0].seq, first.rows[-1].seq, first.more) == (401, 700, True)
    feed.older(mesh.root, 401)
    older = posted.next(OlderRows)
    assert (older.rows[0].seq, older.rows[-1].seq, older.more) == (101, 400, True)
    feed.older(mesh.root, 101)
    oldest = posted.next(OlderRows)
    assert (oldest.rows[0].seq, oldest.rows[-1].seq, oldest.more) == (1, 100, False)


def test_a_child_brings_what_it_inherited(mesh: Mesh, start, posted):
    mesh.run(person.note, mesh.root, {"command": "before"})
    child = mesh.fork(mesh.root, "child", "its prompt")
    mesh.run(person.note, mesh.root, {"command": "after"})
    feed = start()
    feed.follow(child)
    first = posted.next(RowsArrived)
    assert [row.content["command"] for row in first.inherited] == ["before"]
    assert first.inherited_count == 1
    assert first.rows == []


def streamed(mesh: Mesh, *pieces: tuple[int, int, str], agent: AgentId | None = None) -> None:
    """Say, as a worker does, pieces of an answer: after which row, after how many characters, and what."""
    for piece in pieces:
        live = f"live {json.dumps({str(agent or mesh.root): piece})}"
        mesh.run(status.publish, [(status.session_channel(mesh.session), live)])


def shown_of(messages: list[TextStreamed | RowsArrived]) -> str:
    """Return what a screen shows of a message in progress after these."""
    text = ""
    for message in messages:
        if isinstance(message, TextStreamed):
            text = message.text if message.anew else text + message.text
        elif any(ends_message(row) for row in message.rows):
            text = ""
    return text


def is_shown(posted: Posted, wanted: str) -> None:
    """Wait until a screen shows this of the message in progress."""
    while True:
        text = shown_of([message for message in posted.seen if isinstance(message, TextStreamed | RowsArrived)])
        if text == wanted:
            return
        posted.next(object)


def test_live_text_of_followed_agents_only(mesh: Mesh, start, posted):
    child = mesh.fork(mesh.root, "child", "work")
    feed = start()
    feed.follow(mesh.root)
    posted.next(RowsArrived)
    streamed(mesh, (0, 0, "not followed"), agent=child)
    streamed(mesh, (0, 0, "Hel"), (0, 3, "lo"))
    is_shown(posted, "Hello")
    assert {message.agent_id for message in posted.so_far(TextStreamed)} == {mesh.root}


def test_streamed_text_puts_off_no_tick(mesh: Mesh, db: Database, start, posted, monkeypatch):
    monkeypatch.setattr(feed_module, "_TICK", 0.4)
    monkeypatch.setattr(feed_module, "_BUSY_TICK", 0.4)
    feed = start()
    feed.follow(mesh.root)
    posted.next(RowsArrived)
    child = mesh.fork(mesh.root, "child")
    posted.next(BoardChanged, lambda message: message.board.get(child) is not None)
    mesh.conn.execute("update agentmesh.agents set name = 'renamed' where id = %s", [child])  # nobody notifies of it
    ended = threading.Event()

    def stream() -> None:
        live = f"live {json.dumps({str(mesh.root): (1, 0, 'word ')})}"
        while not ended.wait(0.02):
            db.run(status.publish, [(status.session_channel(mesh.session), live)])

    streaming = threading.Thread(target=stream)
    streaming.start()
    try:
        posted.next(BoardChanged, lambda message: message.board.named("renamed") is not None)
    finally:
        ended.set()
        streaming.join()


def test_live_text_that_comes_after_its_row_is_dropped(mesh: Mesh, start, posted):
    """Workers send text in batches, so any part of an answer may be heard after its row."""
    feed = start()
    feed.follow(mesh.root)
    posted.next(RowsArrived)
    mesh.answer(mesh.root, "The whole answer.")
    posted.next(RowsArrived, lambda m: "The whole answer." in texts(m))
    row = mesh.run(transcript.last_seq, mesh.root)
    streamed(mesh, (row - 1, 0, "The whole"), (row - 1, 9, " answer."), (row, 0, "Something new"))
    is_shown(posted, "Something new")
    assert not [message for message in posted.so_far(TextStreamed) if "whole" in message.text]


def test_a_message_that_begins_again_replaces_what_was_streamed(mesh: Mesh, start, posted):
    """A worker died, or the model's server failed in the middle: the call is made again."""
    feed = start()
    feed.follow(mesh.root)
    posted.next(RowsArrived)
    streamed(mesh, (0, 0, "It is"), (0, 5, " so"))
    is_shown(posted, "It is so")
    streamed(mesh, (0, 0, ""))
    is_shown(posted, "")
    streamed(mesh, (0, 0, "No"), (0, 2, ", not"))
    is_shown(posted, "No, not")


def test_a_message_that_failed_is_tried_again_after_the_same_row(mesh: Mesh, start, posted):
    mesh.send(None, mesh.root, "go")
    lease = mesh.begin(mesh.root)
    feed = start()
    feed.follow(mesh.root)
    posted.next(RowsArrived)
    streamed(mesh, (1, 0, "half"))
    is_shown(posted, "half")
    mesh.run(steps.fail_turn, lease, {"error": "cut", "partial": "half an"}, None)
    posted.next(RowsArrived)
    streamed(mesh, (1, 4, " an"))
    mesh.run(status.publish, [(status.session_channel(mesh.session), f"turn {mesh.root}")])  # as a retry does
    streamed(mesh, (1, 0, "whole"), (1, 5, " answer"))
    is_shown(posted, "whole answer")
    assert not [message for message in posted.so_far(TextStreamed) if message.text == " an"]


def test_a_short_answer_that_broke_leaves_no_ghost_below_its_error(mesh: Mesh, start, posted):
    mesh.send(None, mesh.root, "go")
    lease = mesh.begin(mesh.root)
    feed = start()
    feed.follow(mesh.root)
    posted.next(RowsArrived)
    mesh.run(steps.fail_turn, lease, {"error": "cut", "partial": "half an"}, None)
    posted.next(RowsArrived)
    streamed(mesh, (1, 0, "half an"))  # its worker says ten times a second what was streamed
    posted.next(BoardChanged)
    mesh.run(person.note, mesh.root, {"text": "a note"})
    posted.next(RowsArrived, lambda message: texts(message) == ["a note"])
    assert shown_of([one for one in posted.seen if isinstance(one, TextStreamed | RowsArrived)]) == ""


def test_what_was_not_heard_of_a_message_is_seen_to_be_missing(mesh: Mesh, start, posted):
    feed = start()
    feed.follow(mesh.root)
    posted.next(RowsArrived)
    streamed(mesh, (0, 40, "the end"), (0, 47, " of it"), (0, 60, "."))
    is_shown(posted, "…the end of it….")


def test_after_unfollow_nothing_more_comes(mesh: Mesh, start, posted):
    feed = start()
    feed.follow(mesh.root)
    posted.next(RowsArrived)
    feed.unfollow(mesh.root)
    mesh.run(person.note, mesh.root, {"command": "unseen"})
    child = mesh.fork(mesh.root, "later")
    posted.next(BoardChanged, lambda m: child in m.board.faces)
    assert len(posted.so_far(RowsArrived)) == 1


def test_notices_tell_who_finished_and_who_died(mesh: Mesh, start, posted):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    below = mesh.fork(b, "below", "work")
    feed = start()
    feed.follow(mesh.root)
    mesh.answer(a, "done")
    notice = posted.next(Noticed, lambda told: told.agent_id is not None)  # one of the session is about its cost
    assert (notice.agent_id, notice.text, notice.severity) == (a, "a finished", "information")
    mesh.kill(b)
    notice = posted.next(Noticed, lambda told: told.agent_id is not None)
    assert (notice.agent_id, notice.text, notice.severity) == (b, "b was killed with 1 below it", "warning")
    assert below not in {one.agent_id for one in posted.so_far(Noticed)}, "it is told with the one above it"


def test_while_the_database_is_away_it_says_so_and_then_reads_everything(mesh: Mesh, proxy, start, posted):
    with Database(proxy.url, role="test") as database:
        feed = start(database)
        feed.follow(mesh.root)
        posted.next(RowsArrived)
        streamed(mesh, (0, 0, "before the outage"))
        is_shown(posted, "before the outage")
        proxy.refuse()
        away = posted.next(LinkChanged)
        assert away.sentence is not None
        child = mesh.fork(mesh.root, "unheard")
        mesh.run(person.note, mesh.root, {"command": "unheard"})
        assert proxy.refused.wait(20)
        proxy.admit()
        assert texts(posted.next(RowsArrived)) == ["unheard"]
        posted.next(BoardChanged, lambda m: child in m.board.faces)
        posted.next(LinkChanged, lambda m: m.sentence is None)
        is_shown(posted, "")
        feed.stop()


def test_a_worker_that_is_gone_is_said_and_one_that_serves_is_not(mesh: Mesh, start, posted):
    start()
    mesh.conn.execute("update agentmesh.workers set ended_at = now()")
    mesh.conn.execute("update agentmesh.agents set model = 'nowhere/x'")
    mesh.send(None, mesh.root, "work")
    gone = posted.next(LinkChanged)
    assert gone.sentence == "no worker runs root, and its model provider nowhere cannot be used here"
    mesh.join(providers=("nowhere",))
    posted.next(LinkChanged, lambda m: m.sentence is None)


def test_stop_is_idempotent_and_ends_its_threads(mesh: Mesh, start):
    feed = start()
    feed.stop()
    feed.stop()
    assert not feed._thread.is_alive()


def test_the_view_of_an_agent_is_what_the_store_says(mesh: Mesh, start, posted):
    mesh.fork(mesh.root, "a", "work")
    start()
    board = posted.so_far(BoardChanged)[-1].board
    root, child = mesh.run(agents.view, mesh.session)
    shown = [replace(root, path=""), replace(child, path="", tree_tokens=None, tree_cost_usd=None)]
    assert [face.view for face in board.faces.values()] == shown, "paths nobody asks for, sums only of the root"
