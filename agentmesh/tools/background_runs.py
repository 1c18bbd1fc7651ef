"""The processes in the background that this worker runs: one thread for each, and a row that says how it goes.

A process ends with its worker (``spawner.py``). Its row says *lost* then: this worker writes that if it can, otherwise
the next tick of another one does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from agentmesh.domain.cancel import Cancel, CancelReason
from agentmesh.domain.errors import AgentmeshError, DatabaseError
from agentmesh.domain.log import logger
from agentmesh.engine.tool import ToolContext
from agentmesh.store import processes
from agentmesh.store.processes import ProcessKey
from agentmesh.store.tx import Database
from agentmesh.tools.guarded_run import FinishedProcess, Spawner
from agentmesh.tools.matched_lines import MatchedLines
from agentmesh.tools.wall.kinds import Walled
from agentmesh.tools.watched import LineMatcher, WatchedCapture

LOG = logger(__name__)

OUTPUT_LIMIT: Final = 32 * 1024
"""Bytes of output that are kept: its beginning and its end."""
LONGEST: Final = 24 * 3600.0
"""Seconds after which a process is ended."""
_RETRY: Final = 1.0
_CLOSE: Final = 8.0
"""Seconds that ``end`` and ``close`` wait for the ends of all processes together."""


_End = tuple[str, int | None, str]
"""How a process has ended: its state, its exit code and a note."""


@dataclass(eq=False, slots=True)
class _Running:
    """One process that runs here."""

    key: ProcessKey
    capture: WatchedCapture
    matcher: LineMatcher | None
    cancel: Cancel = field(default_factory=Cancel)
    thread: threading.Thread | None = None


class Processes:
    """Starts processes in the background and looks after them."""

    def __init__(self, database: Database, spawner: Spawner) -> None:
        self.end_at_rest = False
        """Whether this program calls ``end`` once no agent works. Agents that start a process are told so."""
        self._database = database
        self._spawner = spawner
        self._lock = threading.Lock()
        self._running: set[_Running] = set()
        self._closing = threading.Event()

    @property
    def any_running(self) -> bool:
        """Whether a process runs here."""
        return bool(self._running)

    def start(self, command: str, watch: str | None, walled: Walled, until_end: ExitStack, context: ToolContext) -> int:
        """Start a command; return its number. ``until_end`` is closed when it has ended, also if it cannot start.

        Raise ToolError for a bad pattern, TooManyProcesses if the agent has 8 or the session 32.
        """
        matcher = None
        lease = context.own_lease
        try:
            matcher = LineMatcher(watch) if watch else None
            number = self._database.run(processes.start, lease, command, watch, idempotent=True)
        except BaseException:
            if matcher:
                matcher.close()
            until_end.close()
            raise
        key = ProcessKey(context.session_id, number, lease.worker_id)
        one = _Running(key, WatchedCapture(OUTPUT_LIMIT, matcher), matcher)
        one.thread = threading.Thread(
            target=self._run, args=(one, walled, context.workdir, until_end), name=f"process-{number}", daemon=True
        )
        # Critical section: close() either sees it, or it is told below.
        with self._lock:
            self._running.add(one)
        try:
            one.thread.start()
        except RuntimeError as error:  # the system gives no thread
            one.thread = None
            self._run_nothing(one, until_end, error)
        if self._closing.is_set():
            one.cancel.set(CancelReason.STOP)
        return number

    def tend(self) -> None:
        """End processes that were stopped or declared lost, or whose agent died; each tick of the worker calls it."""
        with self._lock:
            running = list(self._running)
        for worker in {one.key.worker for one in running}:
            mine = [one for one in running if one.key.worker == worker]
            over = self._database.run(processes.to_end, worker, [one.key for one in mine], idempotent=True)
            for one in mine:
                if (one.key.session, one.key.process) in over:
                    one.cancel.set(CancelReason.KILL)

    def end(self) -> set[ProcessKey]:
        """End all processes because the work that they are part of is over; return those that were ended.

        An idle owner is not woken: it reads of the end in its next turn.
        """
        return {one.key for one in self._end_all(CancelReason.OVER) if one.cancel.reason is CancelReason.OVER}

    def close(self) -> None:
        """End all processes, and store that they are lost; idempotent."""
        self._closing.set()
        self._end_all(CancelReason.STOP)
        self._spawner.close()

    def _end_all(self, why: CancelReason) -> Sequence[_Running]:
        with self._lock:
            running = list(self._running)
        for one in running:
            one.cancel.set(why)
        deadline = time.monotonic() + _CLOSE
        for one in running:
            if one.thread is not None:
                one.thread.join(max(deadline - time.monotonic(), 0.0))
        return running

    # The thread of one process.

    def _run(self, one: _Running, walled: Walled, cwd: Path, until_end: ExitStack) -> None:
        matched = None
        try:
            with until_end:
                try:
                    matched = self._watched(one)
                except RuntimeError as error:  # the system gives no thread
                    state, code, note = _not_started(error)
                else:
                    state, code, note = self._followed(one, walled, cwd)
            if one.matcher:
                one.matcher.close()
            if matched:
                matched.close()  # first: nothing is told of a process that has ended
            self._finish(one, state, code, note)
        except Exception:
            LOG.exception("process %s of session %s: its end could not be stored", one.key.process, one.key.session)
        finally:
            with self._lock:
                self._running.discard(one)

    def _watched(self, one: _Running) -> MatchedLines | None:
        """Begin to watch for lines; None if nobody asked for that."""
        if one.matcher is None:
            return None
        matched = self._matched(one)
        one.matcher.follow(matched.add, matched.give_up, f"process-{one.key.process}")
        one.cancel.on_set(one.matcher.kill)
        return matched

    def _run_nothing(self, one: _Running, until_end: ExitStack, why: RuntimeError) -> None:
        """End what has no thread."""
        with self._lock:
            self._running.discard(one)
        if one.matcher:
            one.matcher.close()
        until_end.close()
        self._finish(one, *_not_started(why))

    def _followed(self, one: _Running, walled: Walled, cwd: Path) -> _End:
        try:
            finished = self._spawner.run(
                walled,
                cwd=cwd,
                timeout=LONGEST,
                cancel=one.cancel,
                output_limit=OUTPUT_LIMIT,
                show=lambda _newest: self._keep(one),
                capture=one.capture,
            )
        except OSError as error:
            return _not_started(error)
        return self._ended(one, finished, walled)

    def _ended(self, one: _Running, finished: FinishedProcess, walled: Walled) -> _End:
        if finished.timed_out:
            return "killed", None, f"It ran for {LONGEST / 3600:g} h"
        if finished.stopped and one.cancel.reason is CancelReason.OVER:
            return "killed", None, "It ended with the run, because no agent worked any more"
        if finished.stopped and one.cancel.is_set():
            return "lost" if one.cancel.reason is CancelReason.STOP else "killed", None, ""
        if finished.stopped or finished.exit_code is None:
            return "lost", None, "It and the process that watched it were ended from outside"
        return "exited", finished.exit_code, walled.note if finished.exit_code else ""

    def _keep(self, one: _Running) -> None:
        try:
            goes_on = self._database.run(
                processes.keep_output, one.key, one.capture.text(), one.capture.written, idempotent=True
            )
        except AgentmeshError as error:
            LOG.debug("output of process %s is not stored yet: %s", one.key.process, error)
        else:
            if not goes_on:
                one.cancel.set(CancelReason.KILL)

    def _matched(self, one: _Running) -> MatchedLines:
        run, key = self._database.run, one.key
        return MatchedLines(
            lambda line, so_far: run(processes.match, key, line, so_far, idempotent=True),
            lambda: run(processes.unwatch, key, idempotent=True),
            self._closing,
            f"process {key.process}",
        )

    def _finish(self, one: _Running, state: str, code: int | None, note: str) -> None:
        """Store the end. Only this process knows it, so it tries until it stops itself."""
        what = (one.key, state, code, one.capture.text(), one.capture.written, note)
        quiet = state == "killed" and one.cancel.reason is CancelReason.OVER
        while True:
            try:
                self._database.run(processes.finish, *what, quiet=quiet, idempotent=True)
            except DatabaseError as error:
                LOG.warning("the end of process %s cannot be stored yet: %s", one.key.process, error)
            else:
                return
            if self._closing.wait(_RETRY):
                return


def _not_started(why: Exception) -> _End:
    return "exited", 127, f"It could not be started: {why}"
