"""Apply a budget's answer to a step: limit the model's answer, or let the agent wait for the calls of others.

The database decides (``agentmesh.reserve``); nothing here reads or writes it.
"""

from __future__ import annotations

from contextlib import suppress

from agentmesh.domain.errors import AgentmeshError
from agentmesh.engine.calls import Parked
from agentmesh.engine.conversation import Conversation
from agentmesh.llm.bounds import Bounds
from agentmesh.llm.port import ChatModel
from agentmesh.store.steps import Granted, Planned

_WAITS = {
    "bill": "waiting for the first bill of {}",
    "room": "waiting for room in the budget",
}
"""The activity of an agent with a model call that waits for other calls, in words for people."""


def parked(granted: Granted, model: str) -> Parked | None:
    """Return the state of an agent with a call that waits for the calls of others; None if it does not wait."""
    if granted.waits is None:
        return None
    return Parked(pending=True, activity=_WAITS[granted.waits].format(model))


def wanted(model: ChatModel, name: str) -> int:
    """Return how many tokens the longest answer of a model may have."""
    try:
        return model.answer_tokens(name)
    except AgentmeshError:  # no such provider: the call itself reports it
        return Bounds().tokens


def planned(model: ChatModel, name: str, conversation: Conversation) -> Planned:
    """Return the planned call of a model over a conversation, as its budget needs to know it."""
    prices, address = None, ""
    with suppress(AgentmeshError):
        prices, address = model.token_prices(name, conversation.tokens), model.address(name)
    input_usd, output_usd = (prices.input_usd, prices.output_usd) if prices else (None, None)
    return Planned(conversation.bytes, wanted(model, name), input_usd, output_usd, address, name)


def shortened(granted: Granted, wanted: int) -> int | None:
    """Return how many tokens the answer may have if the budget has no room for ``wanted``; otherwise None.

    The server gets the limit only then: some refuse a number larger than the rest of the model's context.
    """
    allowed = granted.answer_tokens
    return allowed if allowed is not None and allowed < wanted else None
