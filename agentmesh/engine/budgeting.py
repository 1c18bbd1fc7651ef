"""What a budget's answer means for a step: how long the model may answer, and how an agent waits for others' calls.

The database decides (``agentmesh.reserve``); nothing here reads or writes it.
"""

from __future__ import annotations

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
"""What people are told of an agent whose model call waits for others."""


def parked(granted: Granted, model: str) -> Parked | None:
    """Return the agent's rest while its call waits for those of others; None where it does not."""
    if granted.waits is None:
        return None
    return Parked(pending=True, activity=_WAITS[granted.waits].format(model))


def wanted(model: ChatModel, name: str) -> int:
    """Return how many tokens the longest answer of a model may have."""
    try:
        return model.answer_tokens(name)
    except AgentmeshError:  # no such provider: the call itself says so
        return Bounds().tokens


def planned(model: ChatModel, name: str, conversation: Conversation) -> Planned:
    """Return the call of a model over a conversation as its budget is asked for it."""
    try:
        prices = model.token_prices(name, conversation.tokens)
    except AgentmeshError:
        prices = None
    usd = (prices.input_usd, prices.output_usd) if prices else (None, None)
    return Planned(conversation.bytes, wanted(model, name), *usd)


def shortened(granted: Granted, wanted: int) -> int | None:
    """Return how many tokens the answer may have where the budget has no room for as many as ``wanted``.

    Only then is the server told: some refuse a number above what is left of the model's context.
    """
    allowed = granted.answer_tokens
    return allowed if allowed is not None and allowed < wanted else None
