"""Messages that agents send for later, in real turns."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from unittest.mock import ANY

from agentmesh.domain.timers import When
from agentmesh.store import timers
from tests.fixtures.engine import Rig, call, do, say


def test_an_agent_names_the_time_at_which_a_message_is_due(rig: Rig):
    at = (datetime.now(UTC) + timedelta(hours=2)).replace(microsecond=0)
    rig.fork("helper")
    sends = [
        call("send", to="helper", message="look", at=at.isoformat()),
        call("send", to="helper", message="look", at="14:30"),
        call("send", to="helper", message="look", at="2026-11-22T14:30"),
        call("send", to="helper", message="look", at=at.isoformat(), after=5),
        call("send", to="helper", message="look", at="2020-01-01T00:00Z"),
        call("send", to="helper", message="look", at=at.isoformat(), urgent=True),
    ]
    rig.script("root", do(*sends), say("ok"))
    rig.worker()
    rig.run()
    scheduled, no_time, no_zone, twice, over, urgent = rig.results("send")
    assert datetime.fromisoformat(scheduled["due_at"]) == at
    assert no_time["error"] == "'14:30' is not a time with its time zone."
    assert "is not a time with its time zone" in no_zone["error"]
    for one in (twice, over):
        assert one["error"] == "a later message is due at one time, from now to 366 days from now"
    assert urgent["error"] == "a later message cannot be urgent"
    assert rig.one("select count(*) from agentmesh.timers") == 1


def test_an_agent_sets_an_alarm_and_waits_for_it(rig: Rig):
    alarm = call("send", to="root", message="look at the build", after=0.1)
    at_once = call("send", to="root", message="hello")
    rig.script("root", do(at_once), do(alarm), do(call("wait", timeout=60)), say("looked"))
    rig.worker()
    rig.run()
    refused, scheduled = rig.results("send")
    assert refused["error"] == "an agent cannot send to itself at once"
    assert "that is an alarm" in refused["hint"]
    assert (scheduled["status"], scheduled["to"]["name"]) == ("scheduled", "root")
    (waited,) = rig.results("wait")
    assert waited["results"] == [
        {"agent_id": str(rig.root), "name": "root", "status": "received", "message": "look at the build"}
        | {"message_id": ANY}
    ]


def test_an_alarm_wakes_an_idle_agent_which_reads_whose_it_is(rig: Rig):
    rig.script("root", do(call("send", to="root", message="look", after=0.1)), say("later"), say("looked"))
    rig.worker()
    rig.run()
    rig.until(lambda: rig.last()[0] == "looked")
    assert "you sent this to yourself, to be read now" in str(rig.requests("root")[-1])


def test_an_agent_repeats_a_message_by_a_cron_expression(rig: Rig):
    rig.fork("helper")
    sends = [
        call("send", to="helper", message="look", cron="0 9 * * 1-5 Europe/Berlin"),
        call("send", to="helper", message="look", cron="0 0 9 * * *"),
        call("send", to="helper", message="look", cron="0 9 * * 1-5", every=60),
        call("send", to=["helper"], message="look", cron="0 9 * * 1-5"),
    ]
    rig.script("root", do(*sends), say("ok"))
    rig.worker()
    rig.run()
    scheduled, six, two, several = rig.results("send")
    assert scheduled["cron"] == "0 9 * * 1-5 Europe/Berlin"
    assert six["error"] == "'0 0 9 * * *' is no cron expression: the sixth field is not a time zone."
    assert "without after and every" in two["error"]
    assert several["error"] == "a later message goes to one agent"


def test_a_worker_delivers_what_a_cron_expression_says(rig: Rig):
    helper = rig.fork("helper")
    rig.script("helper", say("looked"))
    timer = rig.db.run(timers.send_later, None, helper, "look", When(cron="* * * * * UTC"))
    rig.conn.execute("update agentmesh.timers set due_at = now() where id = %s", [timer])
    rig.worker()
    rig.until(lambda: rig.last("helper")[0] == "looked")
    assert rig.one("select rung from agentmesh.timers") == 1
