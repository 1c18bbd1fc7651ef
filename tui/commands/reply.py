"""Carries out /reply: mail from the agent in view that answers a message."""

from __future__ import annotations

import re

from agentmesh.domain.errors import UsageError
from agentmesh.domain.ids import MailId
from agentmesh.store import mailbox
from agentmesh.tui.commands.calls import Done
from agentmesh.tui.commands.context import CommandContext

_NUMBERED = re.compile(r"#([0-9]{1,18})(?:\s+|$)")
_USAGE = "Write /reply text to answer the newest message of an agent, or /reply #12 text to answer message 12."


def reply(ctx: CommandContext, words: str) -> Done:
    """Answer a message in the name of the agent in view: the newest that another agent sent it, or the one named."""
    if found := _NUMBERED.match(words):
        answered, text = MailId(int(found[1])), words[found.end() :]
    else:
        newest = ctx.run_idempotent(mailbox.newest_of_agents, ctx.in_view)
        if newest is None:
            raise UsageError("No agent has written to the agent in view.", hint=_USAGE)
        answered, text = newest, words
    if not text.strip():
        raise UsageError("The message is missing.", hint=_USAGE)
    to = ctx.run_idempotent(mailbox.addressee, ctx.in_view, answered)
    ctx.send(ctx.in_view, to.id, text, reply_to=answered)
    return Done(f"Sent to {to.label}, as an answer to message {answered}.")
