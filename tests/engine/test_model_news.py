"""A process that serves two databases passes news of models on from each to the other, and never round and round."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from psycopg import Connection

from agentmesh.domain.rows import Capability, Pause
from agentmesh.engine.model_news import ModelNews
from agentmesh.llm.capabilities import Capabilities
from agentmesh.llm.pauses import Pauses
from agentmesh.llm.provider import Provider
from agentmesh.store import capabilities, pauses
from agentmesh.store.tx import Database
from tests.fixtures.engine import Rig

PAUSE = Pause("sim", "m", 600.0, "rate-limited")
SERVER = Provider("sim", "http://sim.example/v1")


class Process:
    """What a worker process knows of its models, in the databases that it serves."""

    def __init__(self, name: str, *databases: Database) -> None:
        self.pauses, self.capabilities = Pauses(), Capabilities()
        self.news = ModelNews(self.pauses, self.capabilities, name)
        self.read = [self.news.share(database) for database in databases]

    def hears(self) -> None:
        for read in self.read:
            read()
        for thread in threading.enumerate():
            if thread.name == "tell news":
                thread.join()

    @property
    def is_paused(self) -> bool:
        return self.pauses.gate("sim", "m").paused > 0

    @property
    def streams(self) -> bool | None:
        return self.capabilities.of(SERVER, "m").streams


@pytest.fixture
def databases(new_database: Any, template: str) -> Iterator[tuple[Database, Database]]:
    with (
        new_database(template) as one,
        new_database(template) as two,
        Database(one, role="test") as a,
        Database(two, role="test") as b,
    ):
        yield a, b


def tellers(told: list[str]) -> Callable[..., None]:
    """The statement that also records who made it."""
    statement = pauses.pause

    def pause(conn: Connection, pause: Pause, me: str) -> None:
        told.append(me)
        statement(conn, pause, me)

    return pause


def test_a_pause_goes_from_database_to_database_once(databases, monkeypatch):
    a, b = databases
    only_a, both, only_b = Process("only a", a), Process("both", a, b), Process("only b", b)
    told: list[str] = []
    monkeypatch.setattr("agentmesh.engine.model_news.pause_rows.pause", tellers(told), raising=True)
    only_a.pauses.on_pause(PAUSE)
    assert told == ["only a"]
    for process in (only_b, both, only_b, only_a, both, only_b):
        process.hears()
    assert only_b.is_paused
    assert both.is_paused
    assert told == ["only a", "both"], "who knows it already passes nothing on"


def test_a_pause_of_its_own_is_told_in_all_databases(databases):
    a, b = databases
    Process("both", a, b).pauses.on_pause(PAUSE)
    for database in databases:
        process = Process("other", database)
        process.hears()
        assert process.is_paused


def test_what_a_server_can_goes_from_database_to_database(databases):
    a, b = databases
    only_a, both, only_b = Process("only a", a), Process("both", a, b), Process("only b", b)
    only_a.capabilities.learn(SERVER, "m", streams=False)
    both.hears()
    only_b.hears()
    assert only_b.streams is False
    assert b.run(capabilities.current) == [Capability("sim", SERVER.address, "m", streams=False)]


def test_a_database_that_is_away_costs_the_others_nothing(databases, caplog):
    a, b = databases
    with Database("postgresql://u@127.0.0.1:1/none", role="test", patience=0.1) as dead:
        both = Process("both", a, dead, b)
        both.pauses.on_pause(PAUSE)
        for thread in threading.enumerate():
            if thread.name == "tell news":
                thread.join()
    other = Process("other", b)
    other.hears()
    assert other.is_paused
    assert "other workers were not told of a pause of sim/m" in caplog.text


def test_a_server_whose_address_is_longer_than_a_key_can_be_is_asked_as_any_other(rig: Rig):
    rig.worker(base_url=f"{rig.model.base_url}/{'a' * 9000}")
    rig.prompt("hello")
    rig.rest()
    assert rig.last() == ("", "sim has no model 'm'."), "the server was asked, and knows no such path"
