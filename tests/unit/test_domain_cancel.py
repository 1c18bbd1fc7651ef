"""Cancel: set once, told to everybody once, and death overrides Esc."""

from __future__ import annotations

import threading

import pytest

from agentmesh.domain.cancel import Cancel, CancelReason


def test_callbacks_run_once_and_late_ones_at_once():
    cancel, heard = Cancel(), []
    cancel.on_set(lambda: heard.append("early"))
    cancel.set(CancelReason.INTERRUPT)
    cancel.set(CancelReason.INTERRUPT)
    cancel.on_set(lambda: heard.append("late"))
    assert heard == ["early", "late"]
    assert cancel.is_set()


def test_a_callback_that_was_taken_back_is_not_called():
    cancel, heard = Cancel(), []
    take_back = cancel.on_set(lambda: heard.append("x"))
    take_back()
    take_back()
    cancel.set(CancelReason.STOP)
    assert heard == []


@pytest.mark.parametrize(
    ("reasons", "stays"),
    [
        ([CancelReason.INTERRUPT, CancelReason.STOP], CancelReason.INTERRUPT),
        ([CancelReason.STOP, CancelReason.INTERRUPT], CancelReason.STOP),
        ([CancelReason.INTERRUPT, CancelReason.KILL], CancelReason.KILL),
        ([CancelReason.STOP, CancelReason.FENCED], CancelReason.FENCED),
        ([], None),
    ],
)
def test_the_first_reason_stays_but_death_and_a_lost_lease_override(reasons, stays):
    cancel = Cancel()
    for reason in reasons:
        cancel.set(reason)
    assert cancel.reason is stays
    assert cancel.is_set() is bool(reasons)


def test_a_sleeper_wakes_when_it_is_set():
    cancel = Cancel()
    asleep = threading.Thread(target=cancel.wait, args=(30,))
    asleep.start()
    cancel.set(CancelReason.KILL)
    asleep.join(10)
    assert not asleep.is_alive()
    assert cancel.wait(0) is True


def test_a_callback_may_use_the_cancel_itself():
    cancel, seen = Cancel(), []
    cancel.on_set(lambda: seen.append((cancel.is_set(), cancel.reason)))
    cancel.set(CancelReason.KILL)
    assert seen == [(True, CancelReason.KILL)]
