from __future__ import annotations

import pytest

from agentmesh.domain.errors import DatabaseError
from agentmesh.store.listener import Listener
from agentmesh.store.pool import connect
from agentmesh.store.tx import Database
from tests.fixtures.pooler import PROGRAM, pooled

__all__ = ["pooled"]
pytestmark = pytest.mark.skipif(not PROGRAM, reason="no pgbouncer here")


def listener_on(url):
    return Listener(url, on_notify=lambda *_: None, on_reconnect=lambda: None)


def test_a_pooler_that_loses_listen_is_refused_by_name_of_the_setting_that_helps(pooled):
    with pytest.raises(DatabaseError, match="transaction mode") as caught:
        listener_on(pooled("transaction")).start()
    assert "AGENTMESH_DIRECT_DATABASE_URL" in caught.value.hint


def test_a_pooler_in_session_mode_will_do(pooled):
    with listener_on(pooled("session")) as listener:
        listener.listen("anything")


def test_statements_run_through_a_pooler_unprepared_and_leave_its_sessions_as_they_were(pooled):
    url = pooled("transaction")
    with Database(url, role="test") as db:
        counts = [
            db.run(lambda c: c.execute("select count(*) from pg_prepared_statements").fetchone()) for _ in range(9)
        ]
    assert counts == [(0,)] * 9
    with connect(url, role="test") as connection:
        assert connection.execute("select current_setting('lock_timeout')").fetchone() == ("0",)
