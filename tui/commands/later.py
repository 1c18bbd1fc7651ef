"""Carries out /later: messages that are due later."""

from __future__ import annotations

from agentmesh.domain.errors import UsageError
from agentmesh.domain.text import one_line
from agentmesh.domain.timers import When, read_span, read_time
from agentmesh.store import timers
from agentmesh.store.cron import is_zone, read_cron, words
from agentmesh.store.reader import QueryResult
from agentmesh.tui.commands import attachments
from agentmesh.tui.commands.calls import Done
from agentmesh.tui.commands.context import CommandContext, new_key
from agentmesh.tui.widgets.formats import duration

_WIDTH = 60
_USAGE = (
    "Write /later 10m text, /later at 2026-12-24T18:00+01:00 text, /later every 1h text, "
    "/later cron 0 9 * * 1-5 text, /later cancel 3, or /later alone."
)
_FIELDS = 5


def later(ctx: CommandContext, words: str = "") -> Done:
    """Send a message to the agent in view when it is due, cancel one, or list the session's messages."""
    first, _, rest = words.strip().partition(" ")
    if not first:
        return _listed(ctx)
    if first == "cancel":
        return _cancelled(ctx, rest.strip())
    when, how, text = _read(first, rest.strip())
    if not text.strip():
        raise UsageError("The message is missing.", hint=_USAGE)
    shown = attachments.of(ctx, ctx.in_view, text)
    what = (text.strip(), when, None, new_key(), shown.references)
    timer = ctx.run_persistently(timers.send_later, None, ctx.in_view, *what)
    ctx.ensure_served()
    said = f"Timer {timer} rings {how}, if a worker runs then. /later lists them."
    return Done(f"{said} {shown.remark}".strip())


def _read(first: str, rest: str) -> tuple[When, str, str]:
    """Return the time when the message is due, that time in words, and the text."""
    if first == "cron":
        return _read_cron(rest)
    if first == "at":
        time, _, text = rest.partition(" ")
        return When(at=read_time(time)), f"at {time}", text
    if first == "every":
        span, _, text = rest.partition(" ")
        return When(every=read_span(span)), f"every {span}", text
    return When(after=read_span(first)), f"in {first}", rest


def _read_cron(rest: str) -> tuple[When, str, str]:
    """Read five fields, a time zone if the next word is one (``UTC``, ``Europe/Berlin``), and the text."""
    *fields, text = [*rest.split(maxsplit=_FIELDS), ""]
    if len(fields) > _FIELDS:
        text = fields.pop()
    zone, _, after = text.partition(" ")
    if zone == "UTC" or ("/" in zone and is_zone(zone)):
        fields.append(zone)
        text = after
    cron = read_cron(" ".join(fields))
    return When(cron=cron), words(cron), text


def _cancelled(ctx: CommandContext, number: str) -> Done:
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        raise UsageError(f"{one_line(number, 30)!r} is not a timer's number.", hint=_USAGE)
    ended = ctx.run_idempotent(timers.cancel, ctx.session.id, int(number))
    return Done(f"Timer {number} is cancelled." if ended else f"Timer {number} has ended already.")


def _listed(ctx: CommandContext) -> Done:
    found = ctx.run_idempotent(timers.pending, ctx.session.id)
    if not found:
        return Done("No message is due later.")
    ctx.ensure_served()
    columns = ["timer", "due", "message", "every", "from", "to", "state"]
    return Done(table=QueryResult(columns, [], [_row(one) for one in found]))


def _row(timer: timers.Timer) -> tuple[str | None, ...]:
    due = f"{timer.due_at.astimezone():%Y-%m-%d %H:%M:%S}"
    every = duration(timer.every_seconds) if timer.every_seconds else words(timer.cron) if timer.cron else ""
    message = one_line(timer.body, _WIDTH)
    return (str(timer.id), due, message, every, timer.sender_name, timer.recipient_name, timer.state)
