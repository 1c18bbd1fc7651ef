"""The OpenAI Agents SDK, on Chat Completions, its tracing off."""

from __future__ import annotations

import json
from typing import Any

from bench.peers.frameworks.work import ENOUGH, PATIENCE, Converse, Said, Told, Work, main


def prepare(told: Told) -> Converse:
    """Make the agent; its tools find the work in the run's context."""
    from agents import Agent, FunctionTool, OpenAIChatCompletionsModel, RunConfig, Runner, set_tracing_disabled
    from openai import AsyncOpenAI
    from openai.types.responses import ResponseTextDeltaEvent

    set_tracing_disabled(True)

    def tool(definition: dict[str, Any]) -> FunctionTool:
        async def invoke(context: Any, arguments: str) -> str:
            work: Work = context.context
            return await work.call(definition["name"], json.loads(arguments))

        return FunctionTool(
            definition["name"], definition["description"], definition["parameters"], invoke, strict_json_schema=False
        )

    client = AsyncOpenAI(base_url=told.base_url, api_key="none", max_retries=0, timeout=PATIENCE)
    agent = Agent(
        "agent",
        instructions=told.system,
        tools=[tool(given["function"]) for given in told.tools],
        model=OpenAIChatCompletionsModel("model", client),
    )
    config = RunConfig(tracing_disabled=True)

    async def converse(work: Work, prompt: str) -> Said:
        said = Said()
        run = Runner.run_streamed(agent, prompt, context=work, max_turns=ENOUGH, run_config=config)
        async for event in run.stream_events():
            if event.type == "raw_response_event" and isinstance(event.data, ResponseTextDeltaEvent):
                said.heard(event.data.delta)
        return said

    return converse


if __name__ == "__main__":
    main(prepare)
