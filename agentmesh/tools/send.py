"""The send tool: one message to another agent of the session, or to several at once."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from agentmesh.domain import spans
from agentmesh.domain.ids import MailId
from agentmesh.domain.timers import When, read_time
from agentmesh.engine.tool import Effect, ToolContext, ToolError
from agentmesh.store import agents, mailbox, timers
from agentmesh.store.cron import read_cron
from agentmesh.store.send_many import audience_of, resolve_each, send_many
from agentmesh.store.tx import Database
from agentmesh.tools.tool_schema import RARE
from agentmesh.tools.words import Described


def _seconds(given: Any) -> Any:
    """Return the seconds of a span such as "10m"; a number, also as text, is left to the field."""
    if not isinstance(given, str):
        return given
    with suppress(ValueError):
        return float(given)
    if (seconds := spans.read(given)) is None:
        raise PydanticCustomError("span", "should be seconds, or a span as 90s, 10m, 2h or 1d")
    return float(seconds)


Span = Annotated[float, BeforeValidator(_seconds)]
"""Seconds, also as people write them."""


class SendArgs(BaseModel):
    """Arguments of send."""

    to: str | list[str] | None = None
    message: str
    after: Span | None = Field(default=None, description="seconds of delay", json_schema_extra=RARE)
    every: Span | None = Field(default=None, description="repeat, seconds from 60", json_schema_extra=RARE)
    urgent: bool = Field(
        default=False, description="true, to be read before its next tool call", json_schema_extra=RARE
    )
    at: str | None = Field(default=None, description="ISO time with zone", json_schema_extra=RARE)
    cron: str | None = Field(default=None, description="repeat, as 0 9 * * 1-5 Europe/Berlin", json_schema_extra=RARE)
    reply_to: int | None = Field(
        default=None,
        description="message_id it answers, to its sender unless to says otherwise",
        json_schema_extra=RARE,
    )


def when_of(args: SendArgs) -> When:
    """Return when the message is due; raise UsageError for text that is no time with its zone, or no expression."""
    cron = None if args.cron is None else read_cron(args.cron)
    return When(None if args.at is None else read_time(args.at), args.after, args.every, cron)


def require_not_urgent(args: SendArgs) -> None:
    """Raise ToolError for a later message that is urgent."""
    if args.urgent:
        raise ToolError("a later message cannot be urgent", "Leave out urgent, or send it now.")


def require_recipient(args: SendArgs, when: When) -> None:
    """Raise ToolError for a message to nobody, and for an answer to several agents, or a later one."""
    if args.to is None and args.reply_to is None:
        raise ToolError("to is missing", "Say who gets the message, or by reply_to which message it answers.")
    is_plain = args.to is None or (isinstance(args.to, str) and not audience_of(args.to))
    if args.reply_to is not None and (when.is_later or not is_plain):
        raise ToolError("an answer goes to one agent, and now", "Leave out reply_to, or send it to one agent now.")


def require_one_recipient(args: SendArgs) -> str:
    """Return the receiver of a later message; raise ToolError if it has several."""
    if isinstance(args.to, str) and not audience_of(args.to):
        return args.to
    raise ToolError("a later message goes to one agent", "Send one to each, or leave out its time.")


class Send(Described):
    """Put a message into an agent's mailbox."""

    name = "send"
    effect = Effect.VERB
    args = SendArgs

    def __init__(self, database: Database) -> None:
        self._database = database

    def run(self, args: SendArgs, context: ToolContext) -> None:
        """Send the message; the verb writes the result."""
        me, run, lease = context.agent_id, self._database.run, context.own_lease
        when = when_of(args)
        require_recipient(args, when)
        if when.is_later:
            require_not_urgent(args)
            recipient = run(agents.resolve, context.session_id, require_one_recipient(args), me, idempotent=True).id
            run(timers.send_later, me, recipient, args.message, when, lease)
        elif audience := audience_of(args.to) if isinstance(args.to, str) else None:
            run(send_many, me, audience, args.message, lease=lease, urgent=args.urgent)
        elif isinstance(args.to, list):
            several = run(resolve_each, context.session_id, args.to, me, idempotent=True)
            run(send_many, me, several, args.message, lease=lease, urgent=args.urgent)
        else:
            to = None if args.to is None else run(agents.resolve, context.session_id, args.to, me, idempotent=True).id
            answered = None if args.reply_to is None else MailId(args.reply_to)
            run(mailbox.send, me, to, args.message, lease=lease, urgent=args.urgent, reply_to=answered)
