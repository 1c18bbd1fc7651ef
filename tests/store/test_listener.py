from __future__ import annotations

import logging
import os
import queue
import resource
import threading
from typing import Any

import psycopg
import pytest

from agentmesh.domain.errors import DatabaseError, DatabaseUnreachable
from agentmesh.store.link import Pulse
from agentmesh.store.listener import Listener
from tests.fixtures.engine import until

SECONDS = 20
QUICK = Pulse(every=0.05, within=1.5)


class Ear:
    """A listener whose callbacks and signals end in one queue, in the order in which they came."""

    def __init__(self, url, **options):
        self.events: queue.Queue[Any] = queue.Queue()
        self.listener = Listener(
            url,
            on_notify=lambda channel, payload: self.events.put((channel, payload)),
            on_reconnect=lambda: self.events.put("reconnected"),
            **options,
        )
        self.listener.signals.lost = lambda: self.events.put("lost")

    def next(self):
        return self.events.get(timeout=SECONDS)

    def skip_to(self, event):
        while self.next() != event:
            pass


@pytest.fixture
def ear_on():
    """Make started ears; stop them at the end."""
    ears = []

    def make(url, **options):
        ears.append(Ear(url, **options))
        ears[-1].listener.start()
        return ears[-1]

    yield make
    for ear in ears:
        ear.listener.stop()


@pytest.fixture
def ear(ear_on, database_url):
    return ear_on(database_url)


def notify(connection, channel, payload=""):
    connection.execute("select pg_notify(%s, %s)", [channel, payload])


def sessions_of_listeners(connection):
    rows = connection.execute("""
        select pid from pg_stat_activity
         where datname = current_database() and application_name like 'agentmesh/listener/%'
    """)
    return [pid for (pid,) in rows.fetchall()]


def listeners_become(connection, count):
    """Wait until so many sessions are left: a server notices a moment later that its client has gone."""
    until(lambda: len(sessions_of_listeners(connection)) == count, f"{count} sessions of listeners")


def end_sessions(connection):
    for pid in sessions_of_listeners(connection):
        connection.execute("select pg_terminate_backend(%s, 5000)", [pid])


def test_what_is_sent_right_after_listen_returned_is_heard(ear, conn):
    for i in range(100):
        ear.listener.listen(f"channel {i}")
        notify(conn, f"channel {i}", "now")
        assert ear.next() == (f"channel {i}", "now")


@pytest.mark.parametrize(
    "channel",
    ["agent_event_3f2b8c1e-5d4a-4f6b-9c7d-0a1b2c3d4e5f", "Upper Case", 'a"; drop schema agentmesh; --', "ü" * 31, "%s"],
)
def test_any_name_of_a_channel_is_heard_and_none_is_sql(ear, conn, channel):
    ear.listener.listen(channel)
    notify(conn, channel)
    assert ear.next() == (channel, "")


def test_a_name_that_listen_would_cut_is_refused(ear):
    with pytest.raises(ValueError, match="63 bytes"):
        ear.listener.listen("ü" * 32)


def test_a_channel_is_heard_until_its_last_unlisten(ear, conn):
    ear.listener.listen("counted", "marker")
    ear.listener.listen("counted")
    ear.listener.unlisten("counted")
    notify(conn, "counted", "still")
    assert ear.next() == ("counted", "still")
    ear.listener.unlisten("counted")
    ear.listener.listen("later")  # commands are in order, so the unlisten is committed by now
    notify(conn, "counted", "not any more")
    notify(conn, "marker")
    assert ear.next() == ("marker", "")


def test_what_was_asked_for_before_the_start_is_heard(database_url, conn):
    ear = Ear(database_url)
    ear.listener.listen("early")
    with ear.listener:
        notify(conn, "early")
        assert ear.next() == ("early", "")


def test_many_threads_listen_at_once_over_one_session(ear, conn):
    def listen(thread):
        for i in range(20):
            ear.listener.listen(f"{thread}.{i}")

    threads = [threading.Thread(target=listen, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    conn.execute("select pg_notify(t || '.' || i, '') from generate_series(0, 19) as t, generate_series(0, 19) as i")
    assert {ear.next()[0] for _ in range(400)} == {f"{t}.{i}" for t in range(20) for i in range(20)}
    listeners_become(conn, 1)


def test_an_unreachable_server_fails_the_start():
    ear = Ear("postgresql://me:secret@127.0.0.1:1/mesh")
    with pytest.raises(DatabaseUnreachable, match=r"127\.0\.0\.1:1"):
        ear.listener.start()
    assert "listener" not in {thread.name for thread in threading.enumerate()}


def test_a_setup_that_raises_fails_the_start(database_url, conn):
    def setup(_):
        raise DatabaseError("The lock is taken.")

    ear = Ear(database_url, setup=setup)
    with pytest.raises(DatabaseError, match="The lock is taken"):
        ear.listener.start()
    listeners_become(conn, 0)


def test_after_a_loss_setup_comes_first_then_all_channels_then_the_call_to_look_again(ear_on, database_url, conn):
    set_up = []

    def setup(connection):
        set_up.append(connection.execute("select count(*) from pg_listening_channels()").fetchone())

    ear = ear_on(database_url, setup=setup)
    ear.listener.listen(*(f"channel {i}" for i in range(2500)))
    end_sessions(conn)
    assert ear.next() == "lost"
    assert ear.next() == "reconnected"
    conn.execute("select pg_notify('channel ' || i, '') from generate_series(0, 2499) as i")
    assert {ear.next()[0] for _ in range(2500)} == {f"channel {i}" for i in range(2500)}
    assert set_up == [(0,), (0,)]
    listeners_become(conn, 1)


def test_it_says_why_it_hears_nothing_while_it_is_disconnected(ear_on, proxy):
    ear = ear_on(proxy.url)
    reasons = [ear.listener.failed]
    proxy.refuse()
    assert ear.next() == "lost"
    reasons.append(ear.listener.failed)
    proxy.admit()
    ear.skip_to("reconnected")
    reasons.append(ear.listener.failed)
    assert [type(each) for each in reasons] == [type(None), DatabaseUnreachable, type(None)]


def test_an_outage_is_told_once_and_so_is_its_end(ear_on, proxy, caplog):
    ear = ear_on(proxy.url)
    proxy.refuse()
    assert [ear.next(), ear.next(), ear.next()] == ["lost"] * 3
    proxy.admit()
    ear.skip_to("reconnected")
    told = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert [words.split(":")[0].split(" database")[0] for words in told] == ["connecting again", "the"]


def test_a_start_that_fails_is_told_by_its_error_alone(database_url, caplog):
    with pytest.raises(DatabaseUnreachable):
        Ear("postgresql://x@127.0.0.1:1/x").listener.start()
    assert not caplog.records


def test_listen_waits_out_an_outage(ear_on, proxy, conn):
    ear = ear_on(proxy.url)
    proxy.refuse()
    assert ear.next() == "lost"
    waiting = threading.Thread(target=ear.listener.listen, args=("patient",))
    waiting.start()
    proxy.refused.wait(SECONDS)
    assert waiting.is_alive()
    proxy.admit()
    waiting.join()
    notify(conn, "patient")
    ear.skip_to(("patient", ""))


def test_listen_gives_up_after_its_timeout_and_leaves_nothing_behind(ear_on, proxy, conn):
    ear = ear_on(proxy.url)
    proxy.refuse()
    assert ear.next() == "lost"
    with pytest.raises(DatabaseUnreachable, match="did not take a LISTEN"):
        ear.listener.listen("given up", timeout=0.01)
    proxy.admit()
    ear.skip_to("reconnected")
    ear.listener.listen("marker")
    notify(conn, "given up")
    notify(conn, "marker")
    assert ear.next() == ("marker", "")


@pytest.mark.slow
def test_a_peer_that_falls_silent_without_closing_is_replaced(ear_on, proxy, conn):
    ear = ear_on(proxy.url, pulse=QUICK)
    ear.listener.listen("kept")
    proxy.fall_silent()
    assert ear.next() == "lost"
    assert "silent" in str(ear.listener.failed)
    proxy.speak()
    ear.skip_to("reconnected")
    notify(conn, "kept")
    ear.skip_to(("kept", ""))


@pytest.mark.slow
def test_a_connection_that_lost_its_listens_is_replaced(database_url, conn):
    connections: list[psycopg.Connection] = []
    events: queue.Queue[str] = queue.Queue()

    def on_notify(channel, _):
        events.put(channel)
        if channel == "sabotage":
            connections[-1].execute("unlisten *")

    listener = Listener(
        database_url,
        on_notify=on_notify,
        on_reconnect=lambda: events.put("reconnected"),
        setup=connections.append,
        pulse=QUICK,
    )
    listener.listen("sabotage", "kept")
    with listener:
        notify(conn, "sabotage")
        assert events.get(timeout=SECONDS) == "sabotage"
        assert events.get(timeout=SECONDS) == "reconnected"
        notify(conn, "kept")
        assert events.get(timeout=SECONDS) == "kept"


def test_what_came_during_a_command_before_the_first_select_is_heard(ear_on, database_url):
    def setup(connection):
        connection.execute("listen during_setup")
        connection.execute("notify during_setup, 'heard'")

    assert ear_on(database_url, setup=setup).next() == ("during_setup", "heard")


def test_a_callback_that_raises_is_logged_with_its_channel_and_the_next_is_called(database_url, conn, caplog):
    heard: queue.Queue[str] = queue.Queue()

    def on_notify(channel, _):
        heard.put(channel)
        raise ZeroDivisionError

    listener = Listener(database_url, on_notify=on_notify, on_reconnect=lambda: None)
    listener.listen("first", "second")
    with listener:
        notify(conn, "first")
        notify(conn, "second")
        assert [heard.get(timeout=SECONDS) for _ in range(2)] == ["first", "second"]
    assert "ZeroDivisionError" in caplog.text
    assert "first" in caplog.text


def test_an_unexpected_failure_in_its_thread_is_logged_and_it_listens_again(ear_on, database_url, conn, caplog):
    faults = [None, ZeroDivisionError, None]

    def setup(_):
        if fault := faults.pop(0):
            raise fault

    ear = ear_on(database_url, setup=setup)
    end_sessions(conn)
    assert [ear.next() for _ in range(3)] == ["lost", "lost", "reconnected"]
    assert "ZeroDivisionError" in caplog.text


def test_listen_in_a_callback_is_refused_instead_of_blocking_for_ever(database_url, conn):
    raised: queue.Queue[RuntimeError] = queue.Queue()

    def on_notify(*_):
        try:
            listener.listen("another")
        except RuntimeError as error:
            raised.put(error)

    listener = Listener(database_url, on_notify=on_notify, on_reconnect=lambda: None)
    listener.listen("first")
    with listener:
        notify(conn, "first")
        assert "its own thread" in str(raised.get(timeout=SECONDS))


def test_it_works_with_descriptors_beyond_what_select_can_take(ear_on, database_url, conn):
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 4096), most))
    taken = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        ear = ear_on(database_url)
        ear.listener.listen("far")
        notify(conn, "far")
        assert ear.next() == ("far", "")
        assert max(taken) > 1023
    finally:
        for each in taken:
            os.close(each)


def test_stopping_ends_the_thread_the_session_and_everybodys_waiting(proxy, conn):
    ear = Ear(proxy.url)
    ear.listener.start()
    proxy.refuse()
    assert ear.next() == "lost"
    refused: queue.Queue[DatabaseError] = queue.Queue()

    def listen():
        try:
            ear.listener.listen("waiting")
        except DatabaseError as error:
            refused.put(error)

    waiting = threading.Thread(target=listen)
    waiting.start()
    proxy.refused.wait(SECONDS)
    ear.listener.stop()
    ear.listener.stop()
    waiting.join()
    assert "stopped" in str(refused.get_nowait())
    assert "listener" not in {thread.name for thread in threading.enumerate()}
    listeners_become(conn, 0)
    with pytest.raises(DatabaseError, match="stopped"):
        ear.listener.listen("late")
