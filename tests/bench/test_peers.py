from __future__ import annotations

import re

import pytest
from psycopg.conninfo import conninfo_to_dict

from bench.peers.contestants import NOTIFIED, POLLING
from bench.peers.durable.roles import Given, rate
from bench.peers.environments import REQUIREMENTS

_FILES = sorted(REQUIREMENTS.glob("*.txt"))


@pytest.mark.parametrize("path", _FILES, ids=lambda path: path.stem)
def test_each_package_of_an_environment_is_pinned(path) -> None:
    lines = [line for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]
    assert lines
    assert [line for line in lines if not re.match(r"[A-Za-z0-9._-]+(\[[a-z,]+\])?==[^=\s]+", line)] == []


def test_each_contestant_has_an_environment_and_a_module() -> None:
    modules = {contestant.module for contestant in (*NOTIFIED, *POLLING)}
    assert modules <= {path.stem for path in _FILES}
    assert [name for name in modules if not (REQUIREMENTS.parent / "durable" / f"{name}.py").exists()] == []


def test_contestants_have_names_of_their_own() -> None:
    names = [contestant.name for contestant in (*NOTIFIED, *POLLING)]
    assert len(set(names)) == len(names)


def test_a_peer_is_given_its_database_as_a_url_that_libpq_reads() -> None:
    database = {"host": "/tmp/a folder/run", "port": "5432", "user": "post gres", "dbname": "bench_1"}
    assert conninfo_to_dict(Given(database, {}, "run-1").url) == database


def test_a_rate_counts_what_all_senders_sent_after_their_first() -> None:
    sent: list[list[str]] = [[], []]
    found = rate([sent[0].append, sent[1].append], 0.01)
    assert all(len(bodies) > 1 for bodies in sent)
    assert 0 < found <= sum(len(bodies) - 1 for bodies in sent) / 0.01


def test_a_sender_that_fails_is_not_a_slow_one() -> None:
    def refuse(body: str) -> None:
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        rate([refuse, lambda body: None], 0.01)
