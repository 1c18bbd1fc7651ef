"""A screen that opens, or goes to an agent, in the middle of an answer shows all of it."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from agentmesh.llm.simulator.reply import Fault, FaultKind, ScriptedReply
from agentmesh.store import agents, sessions
from agentmesh.tui.session.feed import Feed
from agentmesh.tui.session.messages import RowsArrived, TextStreamed
from agentmesh.tui.session.schema_watch import SchemaWatch
from tests.fixtures.engine import Rig
from tests.tui.posted import Posted, mesh_of
from tests.tui.test_feed import is_shown, shown_of

WORDS = "".join(f"word {n:05} " for n in range(5_000))
HALF = ScriptedReply(WORDS, chunk_size=1_000, fault=Fault(FaultKind.HANG_STREAM, after=31))
"""Thirty thousand characters, and then nothing more comes."""


def screen(rig: Rig, folder: Path, stack: ExitStack) -> tuple[Feed, Posted]:
    posted = Posted()
    session = rig.db.run(sessions.get, rig.db.run(agents.get, rig.root).session_id)
    feed = Feed(mesh_of(rig.db, folder), session, posted, SchemaWatch(rig.db))
    stack.callback(feed.stop)
    feed.start()
    return feed, posted


def length(rig: Rig, folder: Path) -> int:
    """Wait until nothing more comes, and return how much a screen that was there from the beginning shows."""
    with ExitStack() as stack:
        feed, posted = screen(rig, folder, stack)
        feed.follow(rig.root)
        rig.prompt()
        shown, since = "", time.monotonic()
        while time.monotonic() - since < 1.0:
            time.sleep(0.05)
            if (now := text(posted)) != shown or not now:
                shown, since = now, time.monotonic()
        return len(shown)


def text(posted: Posted) -> str:
    posted.so_far(TextStreamed)
    return shown_of([one for one in posted.seen if isinstance(one, TextStreamed | RowsArrived)])


@pytest.mark.parametrize("where", ["worker", "process"])
def test_screens_that_come_late_show_it_from_the_first_word(rig: Rig, tmp_path: Path, where: str):
    rig.script("root", HALF)
    getattr(rig, where)(tick=3600.0)
    said = WORDS[: length(rig, tmp_path)]
    assert len(said) > 25_000
    with ExitStack() as stack:
        (first, one), (second, other) = screen(rig, tmp_path, stack), screen(rig, tmp_path, stack)
        first.follow(rig.root)
        second.follow(rig.root)
        is_shown(one, said)
        is_shown(other, said)
        second.unfollow(rig.root)
        second.follow(rig.root)  # as one who looks at others goes back
        other.next(RowsArrived)
        is_shown(other, said)
        assert text(one) == said
        assert "…" not in "".join(message.text for message in one.so_far(TextStreamed))
    rig.interrupt("root")
    rig.rest()


def test_nothing_comes_from_a_worker_that_died(rig: Rig, tmp_path: Path):
    rig.script("root", HALF)
    process = rig.process(tick=3600.0)
    length(rig, tmp_path)
    process.close()
    with ExitStack() as stack:
        feed, posted = screen(rig, tmp_path, stack)
        feed.follow(rig.root)
        posted.next(RowsArrived)
        time.sleep(0.5)
        assert text(posted) == ""
