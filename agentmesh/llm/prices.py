"""The price of a call and the context size of a model, from the tables of genai-prices (imported at the first use)."""

from __future__ import annotations

from functools import lru_cache

from agentmesh.llm.port import Prices, Usage
from agentmesh.llm.provider import Provider


def cost_usd(provider: Provider, models: tuple[str, ...], usage: Usage) -> float | None:
    """Return the price of a call in USD, from the first known one of ``models``; None if none is known.

    Tokens that were read from a cache, or written into it, count at their own prices.
    """
    known = [model for model in models if model and _is_known(model, *_whose(provider))]
    if not known:
        return None
    from genai_prices import Usage as Counted
    from genai_prices.data_snapshot import get_snapshot

    cached = min(usage.cached_tokens, usage.input_tokens)
    counted = Counted(
        input_tokens=usage.input_tokens,
        cache_read_tokens=cached,
        cache_write_tokens=min(usage.written_tokens, usage.input_tokens - cached),
        output_tokens=usage.output_tokens,
    )
    provider_id, url = _whose(provider)
    for model in known:
        try:
            price = get_snapshot().calc(counted, model, provider_id, url, None)
        except (LookupError, ValueError):
            continue
        return float(price.total_price)
    return None


def token_prices(provider: Provider, models: tuple[str, ...], input_tokens: int) -> Prices | None:
    """Return the prices of the first known one of ``models``, for a request of this size; None if none is known.

    Some providers charge more per token for long requests, so the size is rounded up to a power of two.
    """
    provider_id, url = _whose(provider)
    size = 1 << max(input_tokens - 1, 1).bit_length()
    for model in models:
        if model and _is_known(model, provider_id, url) and (found := _prices(model, provider_id, url, size)):
            return found
    return None


@lru_cache(maxsize=256)
def _prices(model: str, provider_id: str | None, url: str | None, size: int) -> Prices | None:
    from genai_prices import Usage as Counted
    from genai_prices.data_snapshot import get_snapshot

    def price(cached: int, output: int) -> float:
        counted = Counted(input_tokens=size, cache_read_tokens=cached, output_tokens=output)
        return float(get_snapshot().calc(counted, model, provider_id, url, None).total_price)

    try:
        uncached = price(0, 0)
        return Prices(uncached / size, price(size, 0) / size, (price(0, size) - uncached) / size)
    except (LookupError, ValueError):
        return None


def context_window(provider: Provider, model: str) -> int | None:
    """Return the model's context size in tokens, or None if unknown."""
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, known = get_snapshot().find_provider_model(model, None, *_whose(provider))
    except (LookupError, ValueError):
        return None
    return known.context_window


def _whose(provider: Provider) -> tuple[str | None, str | None]:
    """Return the provider's id in the tables, or its address.

    The address counts, never the name: a local server that calls its model gpt-4o does not charge OpenAI's price.
    """
    return (provider.priced_as, None) if provider.priced_as else (None, provider.base_url)


@lru_cache(maxsize=256)
def _is_known(model: str, provider_id: str | None, url: str | None) -> bool:
    """Whether the tables have the model; cached, because a local model is looked up after each call."""
    from genai_prices.data_snapshot import get_snapshot

    try:
        get_snapshot().find_provider_model(model, None, provider_id, url)
    except (LookupError, ValueError):
        return False
    return True
