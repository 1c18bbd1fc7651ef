"""One message of the user to several agents."""

from __future__ import annotations

from collections.abc import Sequence

from agentmesh.api.agent import Who, find_agent
from agentmesh.api.arguments import list_of
from agentmesh.api.keys import key_of
from agentmesh.api.link import SessionLink
from agentmesh.domain.audience import Audience
from agentmesh.domain.errors import UsageError
from agentmesh.domain.ids import AgentId, MailId
from agentmesh.domain.text import as_text
from agentmesh.store.send_many import audience_of, send_many

_HINT = 'Give ["a", "b"], "children" or "session".'


def send_to_several(
    link: SessionLink, message: str, to: Sequence[Who] | str, key: str | None, *, urgent: bool
) -> list[MailId]:
    """Write to several agents as the user; see ``Session.send_many``."""
    message = as_text(message, "a message")
    key = key_of(key)
    whom: Sequence[AgentId] | Audience
    if isinstance(to, str):
        audience = audience_of(to)
        if audience is None:
            raise UsageError(f"{to!r} is no list of agents", hint=_HINT)
        whom = audience
    else:
        whom = [find_agent(link, one).id for one in list_of(to, "to", _HINT)]
    sent = link.run(send_many, None, whom, message, key, around=link.root, urgent=urgent, idempotent=True)
    link.try_to_serve()
    return [MailId(one.message_id) for one in sent]
