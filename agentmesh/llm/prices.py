"""What a call costs and how much a model reads, from the tables of genai-prices (imported at the first question)."""

from __future__ import annotations

from agentmesh.llm.port import Usage
from agentmesh.llm.provider import Provider


def cost_usd(provider: Provider, models: tuple[str, ...], usage: Usage) -> float | None:
    """Return the price of a call in USD by the first known of ``models``, cached tokens as such; None where unknown."""
    import genai_prices

    counted = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        cache_read_tokens=min(usage.cached_tokens, usage.input_tokens),
        output_tokens=usage.output_tokens,
    )
    for model in filter(None, models):
        try:
            if provider.priced_as:
                price = genai_prices.calc_price(counted, model, provider_id=provider.priced_as)
            else:
                # By address, never by name: a local server that calls its model gpt-4o does not cost what OpenAI does.
                price = genai_prices.calc_price(counted, model, provider_api_url=provider.base_url)
        except (LookupError, ValueError):
            continue
        return float(price.total_price)
    return None


def context_window(provider: Provider, model: str) -> int | None:
    """Return the model's context size in tokens, or None where unknown."""
    from genai_prices.data_snapshot import get_snapshot

    provider_id = provider.priced_as or None
    url = None if provider_id else provider.base_url
    try:
        _, known = get_snapshot().find_provider_model(model, None, provider_id, url)
    except (LookupError, ValueError):
        return None
    return known.context_window
