from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from bench.peers.process import Peer, PeerError

_MODULE = "tests.bench.peer_that_answers"


@pytest.fixture
def peer():
    with Peer(Path(sys.executable), _MODULE, variables={"GIVEN": "yes"}) as found:
        yield found


def test_answers_what_it_is_asked_whatever_it_prints(peer) -> None:
    assert peer.ask({"echo": [1, "ä"]}) == [1, "ä"]
    assert peer.ask({"print": "not JSON"}) == "printed"
    assert peer.ask({"echo": None}) is None


def test_an_exception_is_an_answer_and_not_the_end(peer) -> None:
    with pytest.raises(PeerError, match="peer_that_answers: KeyError: 'unknown'"):
        peer.ask({"fail": "unknown"})
    assert peer.ask({"echo": "still here"}) == "still here"


def test_its_last_words_say_why_it_ended(peer) -> None:
    with pytest.raises(PeerError, match="peer_that_answers has ended with 7: no licence"):
        peer.ask({"exit": "no licence"})
    with pytest.raises(PeerError, match="has ended with 7: no licence"):
        peer.ask({"echo": 1})


def test_no_answer_in_time_is_said(peer) -> None:
    with pytest.raises(PeerError, match="did not answer within 0 s"):
        peer.ask({"sleep": 600}, seconds=0.0)


def test_no_key_of_the_user_reaches_it(monkeypatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    with Peer(Path(sys.executable), _MODULE, variables={"GIVEN": "yes"}) as peer:
        found = peer.ask({"variables": None})
    assert "SOME_API_KEY" not in found
    assert found["GIVEN"] == "yes"
    assert found["PATH"] == os.environ["PATH"]


def test_it_ends_with_its_handle(peer) -> None:
    with Peer(Path(sys.executable), _MODULE) as other:
        pid = other.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
