"""When a cron expression is due. The database cannot read one, so the sending or delivering program computes it."""

from __future__ import annotations

import os
import re
import time
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Final

from agentmesh.domain.errors import UsageError
from agentmesh.domain.figures import plural
from agentmesh.domain.text import one_line

if TYPE_CHECKING:
    from cronsim import CronSim

_SIZES: Final = {"minute": 60, "hour": 24, "day-of-month": 31, "month": 12, "day-of-week": 7}
"""How many values each field has, in its order."""
_FIELDS: Final = len(_SIZES)
_MOST: Final = 200
"""Characters of an expression."""


def read_cron(text: str) -> str:
    """Return ``0 9 * * 1-5 Europe/Berlin``, always with its time zone; raise UsageError for other text.

    Without a zone it is this machine's, from ``TZ`` or ``/etc/localtime``, or UTC if it has no other clocks.
    """
    given = text.split()
    shown, hint = one_line(text, 60), "Write minute, hour, day, month and weekday: 0 9 * * 1-5 Europe/Berlin."
    if len(given) == _FIELDS:
        given.append(_zone_here(shown))
    elif len(given) != _FIELDS + 1:
        raise UsageError(f"{shown!r} is no cron expression: it has {plural(len(given), 'field')}, not 5.", hint=hint)
    cron = " ".join(given)
    if not is_zone(given[-1]):
        raise UsageError(f"{shown!r} is no cron expression: the sixth field is not a time zone.", hint=hint)
    if len(cron) > _MOST:
        raise UsageError(f"{shown!r} is no cron expression: it has more than {_MOST} characters.", hint=hint)
    try:
        _read(cron, datetime.now(UTC))
        _require_steps(given)
    except ValueError as error:
        raise UsageError(f"{shown!r} is no cron expression: {error}.", hint=hint) from error
    return cron


def next_time(cron: str, after: datetime) -> datetime | None:
    """Return the first time after another one; None if there is none in 50 years, or if the text cannot be read.

    Where clocks are put forward, a fixed time that is left out is due when the clock goes on. Where they are put back,
    a fixed time that comes twice is due once, and every minute stays every minute.
    """
    try:
        times = _read(cron, after)
    except ValueError:
        return None
    moment = after.astimezone(UTC)  # times of one zone would be compared without their offsets
    return next((at.astimezone(UTC) for at in times if at > moment), None)


def words(cron: str) -> str:
    """Return ``at 09:00 on Monday through Friday, Europe/Berlin``."""
    try:
        said = _read(cron, datetime.now(UTC)).explain()
    except ValueError:
        return cron
    return f"{said[:1].lower()}{said[1:]}, {cron.rpartition(' ')[2]}"


def is_zone(name: str) -> bool:
    """Return whether this names a time zone."""
    return _zone(name) is not None


def _read(cron: str, after: datetime) -> CronSim:
    """Return the times of an expression with its zone; raise ValueError, which says what is wrong."""
    from cronsim import CronSim, CronSimError

    fields, _, name = cron.rpartition(" ")
    zone = _zone(name)
    if zone is None or len(fields.split()) != _FIELDS:
        raise ValueError("it needs five fields and a time zone")
    try:
        return CronSim(fields, after.astimezone(zone))
    except CronSimError as error:
        raise ValueError(str(error).lower()) from error


def _require_steps(fields: list[str]) -> None:
    """Raise ValueError for a step like ``*/90``: it rings once in each hour, and never every 90 minutes.

    Only what is written now is refused: timers that are set already keep their times.
    """
    for (name, size), field in zip(_SIZES.items(), fields, strict=False):
        if any(int(step) > size for step in re.findall("/([0-9]+)", field)):
            raise ValueError(f"the step of the {name} is larger than {size}")


def _zone(name: str) -> tzinfo | None:
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown, no name at all, or a folder of zones
        return None


def _zone_here(shown: str) -> str:
    """Return the name of this machine's zone; raise UsageError if it has other clocks than UTC and no name."""
    given = os.environ.get("TZ", "").removeprefix(":")
    name = given or "/etc/localtime"
    if name.startswith("/"):
        name = os.path.realpath(name).partition("/zoneinfo/")[2]
    if name and is_zone(name):
        return name
    if time.timezone == 0 and not time.daylight:
        return "UTC"
    why = f"TZ is {one_line(given, 60)!r}" if given else "/etc/localtime is no link to one"
    raise UsageError(
        f"{shown!r} has no time zone, and this machine's has no name: {why}.",
        hint="Write its name as the last word: 0 9 * * 1-5 Europe/Berlin.",
    )
