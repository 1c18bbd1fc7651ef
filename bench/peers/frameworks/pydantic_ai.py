"""Pydantic AI, with tools of given schemas and the events of its runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from bench.peers.frameworks.work import PATIENCE, Converse, Said, Told, Work, main


def prepare(told: Told) -> Converse:
    """Make the agent; its tools find the work in the run's dependencies."""
    from openai import AsyncOpenAI
    from pydantic_ai import Agent, PartDeltaEvent, PartStartEvent, RunContext, TextPart, TextPartDelta, Tool
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    def tool(definition: dict[str, Any]) -> Tool[Work]:
        return Tool.from_schema(
            _invoke(definition["name"]),
            definition["name"],
            definition["description"],
            definition["parameters"],
            takes_ctx=True,
        )

    def _invoke(name: str) -> Callable[..., Awaitable[str]]:
        async def invoke(context: RunContext[Work], **arguments: Any) -> str:
            work: Work = context.deps
            return await work.call(name, arguments)

        return invoke

    client = AsyncOpenAI(base_url=told.base_url, api_key="none", max_retries=0, timeout=PATIENCE)
    agent = Agent(
        OpenAIChatModel("model", provider=OpenAIProvider(openai_client=client)),
        deps_type=Work,
        system_prompt=told.system,
        tools=[tool(given["function"]) for given in told.tools],
    )

    async def converse(work: Work, prompt: str) -> Said:
        said = Said()
        async with agent.run_stream_events(prompt, deps=work) as events:
            async for event in events:
                if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                    said.heard(event.part.content)
                elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                    said.heard(event.delta.content_delta)
        return said

    return converse


if __name__ == "__main__":
    main(prepare)
