"""A connection to the right server, on which a statement is answered in time or given up.

A server can fall silent while its kernel still answers for it, for example if it is stopped, or if it is a frozen
primary that was replaced. Then no keepalive notices anything, and a statement in flight waits for ever. So each
statement has a deadline on this side, longer than any lock or statement may take on the server. A statement that may
take any time is given up once the server lets nobody else in.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, Final, Self, TypeVar

import psycopg
from psycopg.pq.abc import PGconn
from psycopg.rows import RowFactory, TupleRow, tuple_row
from psycopg.types.json import set_json_loads
from psycopg.waiting import Ready

from agentmesh.domain.errors import ServerReplaced
from agentmesh.domain.jsontext import parse_stored
from agentmesh.domain.log import logger
from agentmesh.store import lineage

LOG = logger(__name__)

Result = TypeVar("Result")

ANSWER_SECONDS: Final = 20.0
"""A statement is given up after this many seconds without a word from the server, whose own limit is 15 s."""
_SLOW_SECONDS: Final = 5.0
"""After this many seconds, a thread finds out why a statement takes so long."""
_HASTE_SECONDS: Final = 5.0
"""Seconds left to statements in flight after the server was replaced: as long as locks are waited for."""
_LOOK_SECONDS: Final = 15.0
"""A server is silent for everybody if a look from another connection takes longer."""
_LOOK_CONNECT_SECONDS: Final = 20
"""Longer than ``_LOOK_SECONDS``: within them a look ends only by an answer, be it a refusal."""
_LOOK_EVERY: Final = 10.0
"""Seconds between two looks during a statement that may take any time."""
_FIRST_SECONDS: Final = 5.0
"""A new connection is given up if its first statement takes longer."""
_TOLD_EVERY: Final = 30.0

_STANDBY: Final = (
    "select current_setting('synchronous_standby_names') from pg_stat_activity"
    " where pid = %s and wait_event = 'SyncRep'"
)


class _Look:
    """A look at the server from another connection, on a thread of its own."""

    def __init__(self, look: Callable[[], None]) -> None:
        self._begun = time.monotonic()
        self._thread = threading.Thread(target=look, name="slow statement", daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Whether the server has answered."""
        return not self._thread.is_alive()

    @property
    def age(self) -> float:
        """How many seconds ago it began."""
        return time.monotonic() - self._begun


class BoundedConnection(psycopg.Connection[TupleRow]):
    """A connection on which no statement waits for ever; used by one thread, except for ``hurry``."""

    def __init__(self, pgconn: PGconn, row_factory: RowFactory[TupleRow] = tuple_row) -> None:
        super().__init__(pgconn, row_factory)
        set_json_loads(parse_stored, self)
        self.made_at: Final = time.monotonic()
        self.admitted_at = self.made_at
        """When (monotonic) its server was last found to be the database."""
        self.answer_seconds: float | None = ANSWER_SECONDS
        """How long the server may be silent; None: as long as it answers other connections."""
        self._answer_by: float | None = None
        """The deadline for an answer, set by ``hurry``."""
        self._served = lineage.Served()
        """The remembered state of the place that it leads to."""
        self._lineage: lineage.Lineage | None = None
        """The server's; None if it does not say."""
        self._standby = ""
        """The synchronous standbys that a commit waits for, as far as a look has found any."""

    @classmethod
    def connect(cls, conninfo: str = "", **kwargs: Any) -> Self:
        """Connect to the first server of the URL that is the database; raise ServerReplaced if one only was."""
        served = lineage.served(conninfo)
        failures: list[psycopg.OperationalError] = []
        replaced: ServerReplaced | None = None
        for server, url in served.servers(conninfo):
            try:
                made = super().connect(url, **kwargs)
                made._admit(served)  # noqa: SLF001
            except psycopg.OperationalError as error:
                failures.append(error)
            except ServerReplaced as error:
                replaced = error
            else:
                served.took(server)
                return made
        raise replaced or _joined(failures)

    def admit_again(self) -> None:
        """Find out again which server answers, because a pooler may have gone over to another; raise as ``connect``."""
        self._admit(self._served)

    @property
    def is_outdated(self) -> bool:
        """Whether the process has met a newer primary since."""
        return self._served.is_old(self._lineage)

    def hurry(self) -> None:
        """Give statements in flight only a few more seconds; may be called from any thread."""
        self._answer_by = time.monotonic() + _HASTE_SECONDS

    def wait(self, gen: Generator[Any, Any, Result], *args: Any, **kwargs: Any) -> Result:
        """Wait for the server; if it is silent for too long, close the connection and raise OperationalError."""
        return super().wait(self._bounded(gen), *args, **kwargs)

    def _admit(self, served: lineage.Served) -> None:
        """Find out which server it is; close it and raise if that is not the database (any more)."""
        try:
            with answering_within(self, _FIRST_SECONDS):
                self._served, self._lineage = served, served.admit(self)
            self.admitted_at = time.monotonic()
        except BaseException:
            self.close()
            raise

    def _bounded(self, gen: Generator[Any, Any, Result]) -> Generator[Any, Any, Result]:
        silent_since: float | None = None  # as of the first look after the server's last word; most calls need none
        look: _Look | None = None
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if ready != Ready.NONE:
                    silent_since = look = None
                else:
                    silent_since = silent_since or time.monotonic()
                    look = self._watch(time.monotonic() - silent_since, look)
                wanted = gen.send(ready)
        except StopIteration as done:
            result: Result = done.value
            return result

    def _watch(self, silent: float, look: _Look | None) -> _Look | None:
        """Keep the deadline, and look at a slow server from another connection; return the newest look."""
        self._keep_deadline(silent, look)
        if look is None:
            return _Look(self._look_for_standby) if silent > _SLOW_SECONDS else None
        is_due = self.answer_seconds is None and look.is_over and look.age > _LOOK_EVERY
        return _Look(self._look_for_standby) if is_due else look

    def _keep_deadline(self, silent: float, look: _Look | None) -> None:
        if self.is_outdated:
            self.pgconn.finish()
            raise psycopg.OperationalError(
                "a standby was promoted, and the server of this statement is the old primary"
            )
        if self.answer_seconds is not None:
            is_late = silent > self.answer_seconds
        else:
            is_late = look is not None and not look.is_over and look.age > _LOOK_SECONDS
        if is_late or (self._answer_by is not None and time.monotonic() > self._answer_by):
            self.pgconn.finish()
            why = f", because a commit waits for a synchronous standby ({self._standby})" if self._standby else ""
            raise psycopg.OperationalError(f"the server has not answered a statement for {silent:.0f} s{why}")

    def _look_for_standby(self) -> None:
        """Warn if commits wait for a standby; it uses a connection of its own, and so ends if the server answers."""
        try:
            info = self.info
            pid, database = info.backend_pid, info.dbname  # this connection may be closed meanwhile
            with psycopg.connect(
                info.dsn, password=info.password, autocommit=True, connect_timeout=_LOOK_CONNECT_SECONDS
            ) as looking:
                found = looking.execute(_STANDBY, [pid]).fetchone()
        except psycopg.Error as error:
            LOG.debug("it is not known why a statement takes long: %s", error)
            return
        if found:
            self._standby = f"synchronous_standby_names is {found[0]!r}"
            _say_once(database, self._standby)


def _joined(failures: list[psycopg.OperationalError]) -> psycopg.OperationalError:
    """Return one error that says why none of several servers was taken."""
    last = failures[-1]
    if len(failures) == 1:
        return last
    return type(last)("; ".join(str(error).strip() for error in failures), pgconn=last.pgconn)


class _Told:
    at = -_TOLD_EVERY
    lock = threading.Lock()


def _say_once(database: str, standby: str) -> None:
    """Warn once, not for each of many commits that hang at the same time."""
    with _Told.lock:
        if time.monotonic() - _Told.at < _TOLD_EVERY:
            return
        _Told.at = time.monotonic()
    LOG.warning(
        "commits of the database %s hang: a synchronous standby does not confirm them (%s). "
        "Bring the standby back, or take it out of synchronous_standby_names.",
        database,
        standby,
    )


@contextmanager
def answering_within(connection: psycopg.Connection[Any], seconds: float | None) -> Iterator[None]:
    """Let statements that read much take this long; None is without limit."""
    if not isinstance(connection, BoundedConnection):
        yield
        return
    before, connection.answer_seconds = connection.answer_seconds, seconds
    try:
        yield
    finally:
        connection.answer_seconds = before
