"""``agentmesh send --after``, ``--at``, ``--every`` and ``agentmesh timers``."""

from __future__ import annotations

import pytest

from tests.fixtures.pictures import png


def test_a_message_for_later_is_listed_until_it_is_cancelled(am, mesh, here):
    sent = am("send", "root", "look again", "--after", "10m")
    assert sent.code == 0
    assert sent.err.startswith("root (")
    timer = sent.out.strip()
    assert mesh.unread(here) == []
    assert am("timers").out.startswith(f"{timer}  ")
    (shown,) = am("timers", "--json").data
    assert (shown["body"], shown["every_seconds"], shown["state"]) == ("look again", None, "pending")
    assert am("timers", "--cancel", timer).err == f"Timer {timer} is cancelled.\n"
    assert am("timers", "--cancel", timer).err == f"Timer {timer} has ended already.\n"
    assert am("timers").err == "No message is due later.\n"


def test_a_repeated_message_says_how_often(am, mesh, here):
    sent = am("send", "root", "again", "--every", "1h", "--json").data
    assert (sent["status"], sent["to"]["name"]) == ("scheduled", "root")
    assert "every 3600 s" in am("timers").out


def test_a_message_that_is_due_becomes_mail(am, mesh, here):
    timer = am("send", "root", "now", "--after", "0s").out.strip()
    mesh.conn.execute("select agentmesh.ring_timers()")
    assert mesh.conn.execute(
        "select body from agentmesh.mail where id = (select mail_id from agentmesh.timers where id = %s)", [timer]
    ).fetchone() == ("now",)


def test_a_cron_expression_repeats_it_and_is_said_in_words(am, mesh, here):
    sent = am("send", "root", "stand up", "--cron", "0 9 * * 1-5", TZ="Asia/Tokyo")
    assert sent.err.endswith(", and then at 09:00 on Monday through Friday, Asia/Tokyo, if a worker runs then.\n")
    assert "  at 09:00 on Monday through Friday, Asia/Tokyo  user to root: stand up" in am("timers").out
    assert am("timers", "--json").data[0]["cron"] == "0 9 * * 1-5 Asia/Tokyo"
    sent = am("send", "root", "stand up", "--cron", "*/15 8-17 * * * Europe/Berlin", "--json").data
    assert (sent["status"], sent["cron"]) == ("scheduled", "*/15 8-17 * * * Europe/Berlin")
    assert "cron" not in am("send", "root", "once", "--after", "1h", "--json").data


def test_a_later_message_with_a_key_is_sent_once(am, mesh, here):
    timer = am("send", "root", "look", "--after", "10m", "--key", "k").out
    assert am("send", "root", "look", "--after", "10m", "--key", "k").out == timer
    refused = am("send", "root", "look elsewhere", "--after", "10m", "--key", "k")
    assert (refused.code, refused.out) == (1, "")
    assert "the key 'k' was already used for another message" in refused.err


def test_a_later_message_brings_images(am, mesh, here, tmp_path):
    picture = tmp_path / "shot.png"
    picture.write_bytes(png())
    sent = am("send", "root", "what is this?", "--after", "0s", "--image", str(picture))
    assert (sent.code, "Attached: " in sent.err) == (0, True)
    mesh.conn.execute("select agentmesh.ring_timers()")
    assert mesh.one("select images -> 0 ->> 'name' from agentmesh.mail where recipient = %s", here) == "shot.png"


def test_a_later_message_is_not_urgent(am, mesh, here):
    refused = am("send", "root", "look", "--after", "10m", "--urgent")
    assert (refused.code, mesh.one("select count(*) from agentmesh.timers")) == (2, 0)
    assert refused.err.startswith("agentmesh: A later message answers none and is not urgent.")


@pytest.mark.parametrize(
    "times",
    [
        ("--cron", "* * * *"),
        ("--cron", "0 0 9 * * *"),
        ("--cron", "61 9 * * *"),
        ("--cron", "0 9 30 2 *"),
        ("--cron", "0 0 */29 2 1#5 UTC"),
        ("--cron", "0 0 * 2 MON#5 UTC"),
        ("--cron", "0 9 * * *", "--every", "1h"),
        ("--cron", "0 9 * * *", "--at", "2026-12-01T10:00:00+00:00"),
        ("--after", "-1s"),
        ("--after", "soon"),
        ("--every", "1s"),
        ("--at", "2020-01-01T00:00:00+00:00"),
        ("--at", "2026-12-01T10:00:00"),
        ("--at", "9999-01-01T00:00:00+00:00"),
        ("--at", "tomorrow"),
        ("--after", "1m", "--at", "2026-12-01T10:00:00+00:00"),
    ],
)
def test_a_time_without_sense_is_one_sentence_and_nothing_is_sent(am, mesh, here, times):
    refused = am("send", "root", "hello", *times)
    assert (refused.code, refused.out) == (2, "")
    assert "Traceback" not in refused.err
    assert mesh.one("select count(*) from agentmesh.timers") == 0
    assert mesh.unread(here) == []


def test_a_timer_that_is_not_there_is_named(am, mesh, here):
    refused = am("timers", "--cancel", "77")
    assert (refused.code, refused.out) == (1, "")
    assert "there is no timer 77" in refused.err
