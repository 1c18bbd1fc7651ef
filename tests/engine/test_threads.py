from __future__ import annotations

import threading
from queue import SimpleQueue

from agentmesh.engine import threads as engine_threads
from agentmesh.engine.threads import Threads
from agentmesh.engine.watch import WaitWatch
from tests.fixtures.engine import Rig, call, do, say, until
from tests.fixtures.threads import NoThreads


def test_work_runs_side_by_side_up_to_the_limit_and_on_no_more_threads_than_needed():
    threads = Threads(3, "t")
    together, names = threading.Barrier(3), []

    def work():
        names.append(threading.current_thread().name)
        together.wait(10)

    for _ in range(6):
        threads.submit(work)
    until(lambda: len(names) == 6)
    assert set(names) == {"t-0", "t-1", "t-2"}
    assert threads.stop(10) == []


def test_an_idle_thread_is_used_again():
    threads = Threads(8, "t")
    for _ in range(5):
        done = threading.Event()
        threads.submit(done.set)
        assert done.wait(10)
        until(lambda: threads._idle == 1)
    assert [thread.name for thread in threads._threads] == ["t-0"]
    assert threads.stop(10) == []


def test_stop_forgets_what_is_queued_and_names_what_does_not_end():
    threads = Threads(1, "t")
    begun, hold, ran = threading.Event(), threading.Event(), []

    def stuck():
        begun.set()
        hold.wait(10)

    threads.submit(stuck)
    threads.submit(lambda: ran.append(1))
    assert begun.wait(10)
    assert threads.stop(0.01) == ["t-0"]
    hold.set()
    assert threads.stop(10) == []
    threads.submit(lambda: ran.append(2))
    assert ran == []


def test_a_place_that_is_lent_is_used_and_taken_back():
    threads = Threads(1, "t")
    begun, go_on, back, ran = threading.Event(), threading.Event(), threading.Event(), threading.Event()

    def waiting():
        begun.set()
        assert ran.wait(10), "the only thread waits for work that is queued"
        threads.take_back()
        back.set()
        assert go_on.wait(10)

    threads.submit(waiting)
    assert begun.wait(10)
    threads.submit(ran.set)
    threads.lend()
    assert back.wait(10)
    until(lambda: len(threads._threads) == 1)
    assert [thread.name for thread in threads._threads] == ["t-0"], "the other one has left"
    later = threading.Event()
    threads.submit(later.set)
    assert not later.is_set(), "there is one place, and it is taken"
    go_on.set()
    assert later.wait(10)
    assert threads.stop(10) == []


def test_looks_at_a_waiter_are_gathered_and_the_last_poke_is_never_missed():
    """The look after the last poke sees everything, however many pokes there were and whenever they came."""
    state, seen, looks = 0, 0, 0
    watch: WaitWatch[str]

    def look(agent, timed_out):
        nonlocal seen, looks
        seen, looks = state, looks + 1

    watch = WaitWatch(look, lambda _agents: None)
    watch.start()
    watch.park("a", float("inf"))
    for n in range(1, 1001):
        state = n
        watch.poke("a")
    until(lambda: seen == 1000)
    assert looks < 500
    assert watch.stop(10)


def test_a_wait_for_many_is_looked_at_when_as_much_has_happened_as_it_takes(monkeypatch):
    monkeypatch.setattr("agentmesh.engine.watch._PATIENCE", 3600.0)
    looks: SimpleQueue[int] = SimpleQueue()
    open_ones = [3, 2]
    watch: WaitWatch[str]

    def look(agent, timed_out):
        if open_ones:
            watch.expect(agent, open_ones.pop(0))
        looks.put(len(open_ones))

    watch = WaitWatch(look, lambda _agents: None)
    watch.start()
    watch.park("a", float("inf"))
    assert looks.get(timeout=10) == 1, "the look when it is parked"
    for _ in range(3):
        watch.poke("a")
    assert looks.get(timeout=10) == 0, "three had been open"
    watch.poke("a")
    watch.poke("a")
    assert looks.get(timeout=10) == 0, "two were still open, and both have changed"
    assert looks.empty()
    assert watch.stop(10)


def test_what_came_before_the_missing_were_counted_brings_no_look_forward(monkeypatch):
    """Else the look before the last message's is under way when that comes."""
    monkeypatch.setattr("agentmesh.engine.watch._PATIENCE", 3600.0)
    looks: SimpleQueue[int] = SimpleQueue()
    counts = iter(range(10))
    watch: WaitWatch[str]

    def look(agent, timed_out):
        number = next(counts)
        if number == 0:
            for _ in range(3):
                watch.poke(agent)  # messages that come while it looks
            watch.expect(agent, watch.pokes_since_look(agent) + 2)
        looks.put(number)

    watch = WaitWatch(look, lambda _agents: None)
    watch.start()
    watch.park("a", float("inf"))
    assert looks.get(timeout=10) == 0
    assert watch.pokes_since_look("a") == 3
    watch.poke("a")
    assert watch.pokes_since_look("a") == 4, "no look is due: one message is missing"
    assert watch._waiting["a"].due > 3000.0 + watch._waiting["a"].looked
    watch.poke("a")
    assert looks.get(timeout=10) == 1
    assert watch.pokes_since_look("a") == 0
    assert watch.pokes_since_look("nobody") == 0
    assert watch.stop(10)


def test_when_as_much_has_happened_as_was_missing_the_look_comes_at_once_but_not_twice_in_a_row(monkeypatch):
    """The last message of a fan-in often comes right after a look; one that talks on must not have a look for each."""
    monkeypatch.setattr("agentmesh.engine.watch._APART", 1e12)  # more than the machine has run for
    looks: SimpleQueue[int] = SimpleQueue()
    counts = iter(range(10))
    watch: WaitWatch[str]

    def look(agent, timed_out):
        watch.expect(agent, watch.pokes_since_look(agent) + 1)
        looks.put(next(counts))

    watch = WaitWatch(look, lambda _agents: None)
    watch.start()
    watch.park("a", float("inf"))
    assert looks.get(timeout=10) == 0
    watch.poke("a")
    assert looks.get(timeout=10) == 1
    watch.poke("a")
    assert watch._waiting["a"].due > 3000.0 + watch._waiting["a"].looked
    assert watch.stop(10)
    assert looks.empty()


def test_those_who_are_told_together_go_on_when_all_of_them_have_been_told(monkeypatch):
    """One that fails holds up nobody; and many do not wait for the last of them."""
    monkeypatch.setattr("agentmesh.engine.watch._TOGETHER", 3600.0)
    happened: SimpleQueue[str] = SimpleQueue()
    watch: WaitWatch[str]

    def look(agent, timed_out):
        watch.forget(agent)
        happened.put(agent)
        if agent == "b":
            raise ValueError("on purpose")

    def looked():
        happened.put("go on")

    watch = WaitWatch(look, lambda _agents: None, looked)
    for agent in "abc":
        watch.park(agent, float("inf"))
    watch.start()
    assert [happened.get(timeout=10) for _ in range(4)] == ["a", "b", "c", "go on"]
    assert watch.stop(10)

    monkeypatch.setattr("agentmesh.engine.watch._TOGETHER", -1.0)
    watch = WaitWatch(look, lambda _agents: None, looked)
    for agent in "ac":
        watch.park(agent, float("inf"))
    watch.start()
    assert [happened.get(timeout=10) for _ in range(5)] == ["go on", "a", "go on", "c", "go on"]
    assert watch.stop(10)


def test_deadlines_come_in_their_order_and_a_look_that_fails_is_repeated():
    import time

    from agentmesh.domain.errors import DatabaseUnreachable

    ended, failures = [], [DatabaseUnreachable("on purpose"), ValueError("on purpose")]
    watch: WaitWatch[str]

    def look(agent, timed_out):
        if not timed_out:
            return
        if agent == "b" and failures:
            raise failures.pop()
        watch.forget(agent)
        ended.append(agent)

    watch = WaitWatch(look, lambda _agents: None)
    watch.start()
    now = time.monotonic()
    for agent, seconds in (("c", 60), ("b", 0.02), ("a", 0.01)):
        watch.park(agent, now + seconds)
    until(lambda: ended == ["a", "b"])
    assert list(watch._waiting) == ["c"]
    assert watch.stop(10)


def test_waits_that_ended_early_leave_nothing_behind():
    watch: WaitWatch[int] = WaitWatch(lambda _agent, _timed_out: None, lambda _agents: None)
    for n in range(5000):
        watch.park(n, float("inf"))
        watch.forget(n)
    assert len(watch._queue) <= 1002


def test_an_agent_that_the_rows_give_to_a_worker_and_that_it_does_not_know_is_found_by_its_tick(rig):
    """Issue 17, point 1: whatever came between a claim and the first thread, nobody is left with a dead owner."""
    held, go_on = threading.Event(), threading.Event()

    def hold(when: str, name: str) -> None:
        if (when, name) == ("before", "claim") and rig.status() == "running" and not held.is_set():
            held.set()
            assert go_on.wait(20)

    parts = rig.worker(hook=hold, tick=0.1)
    rig.prompt()
    assert held.wait(20)
    rig.conn.execute("select agentmesh.claim(%s, 1)", [parts.worker.worker_id])
    go_on.set()
    rig.rest()
    assert rig.last()[0] == "done"


def test_a_thread_that_was_refused_is_asked_for_again(monkeypatch):
    system = NoThreads(monkeypatch, "t-", 2)
    threads, ran = Threads(2, "t"), threading.Event()
    threads.submit(ran.set)
    threads.start_missing()
    assert system.left == 0
    assert not ran.is_set()
    threads.start_missing()
    assert ran.wait(10)
    assert threads.stop(10) == []


def test_a_thread_that_was_refused_for_a_lent_place_is_asked_for_again(monkeypatch):
    threads = Threads(1, "t")
    refused, ran = threading.Event(), threading.Event()

    def wait_for_another():
        NoThreads(monkeypatch, "t-", 1)
        threads.submit(ran.set)
        threads.lend()
        refused.set()
        ran.wait(10)
        threads.take_back()

    threads.submit(wait_for_another)
    assert refused.wait(10)
    assert not ran.is_set()
    threads.start_missing()
    assert ran.wait(10)
    assert threads.stop(10) == []


def test_who_needs_queued_work_does_it_without_any_thread(monkeypatch):
    threads, ran = Threads(2, "t"), []
    NoThreads(monkeypatch, "t-", 2**30)
    threads.submit(lambda: ran.append(1))
    threads.submit(lambda: ran.append(2))
    threads.help()
    assert ran == [1, 2]
    assert threads.stop(10) == []


def test_reading_calls_need_no_thread_beside_their_own(rig: Rig, monkeypatch):
    NoThreads(monkeypatch, "read-", 2**30)
    (rig.workdir / "a").write_text("one")
    rig.script("root", do(call("read", path="a"), call("glob", pattern="*")), say("done"))
    rig.worker()
    assert rig.run() == "done"
    assert "one" in str(rig.results("read"))


def test_agents_run_although_the_system_gave_no_thread_at_first(rig: Rig, monkeypatch):
    system = NoThreads(monkeypatch, "agent-", 5)
    for name in ("a", "b", "c"):
        rig.fork(name)
        rig.prompt("go", name)
    rig.worker(concurrency=4, tick=0.05)
    rig.rest()
    assert system.left == 0
    assert [rig.status(name) for name in ("a", "b", "c")] == ["idle"] * 3


def test_a_worker_that_gets_no_thread_ends_and_frees_its_agents(rig: Rig, monkeypatch):
    monkeypatch.setattr(engine_threads, "_PATIENCE", 0.0)
    first = rig.worker(concurrency=2, tick=0.05).worker
    NoThreads(monkeypatch, "", 2**30)
    rig.prompt("go")
    rig.until(lambda: first.failed)
    rig.until(lambda: rig.one("select worker_id is null from agentmesh.agents"))
    monkeypatch.undo()
    rig.worker()
    rig.rest()
    assert rig.status() == "idle"


def test_a_process_without_a_thread_has_ended(rig: Rig, monkeypatch):
    NoThreads(monkeypatch, "process-", 1)
    rig.script("root", do(call("bash", command="sleep 60", background=True)), say("done"))
    rig.worker()
    assert rig.run() == "done"
    assert rig.one("select state from agentmesh.processes") == "exited"
    told = rig.one("select body from agentmesh.mail where about = 'process'")
    assert "can't start new thread" in told
