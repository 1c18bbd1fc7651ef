"""AutoGen's AgentChat: an assistant for each conversation, its model client shared, as its guide does it."""

from __future__ import annotations

from typing import Any

from bench.peers.frameworks.work import ENOUGH, PATIENCE, Converse, Said, Told, Work, main


def prepare(told: Told) -> Converse:
    """Make the model's client; an assistant keeps its conversation, so each has one of its own."""
    from autogen_agentchat.agents import AssistantAgent
    from autogen_agentchat.messages import ModelClientStreamingChunkEvent
    from autogen_core.models import ModelFamily, ModelInfo
    from autogen_core.tools import BaseTool, ToolSchema
    from autogen_ext.models.openai import OpenAIChatCompletionClient
    from pydantic import BaseModel, ConfigDict

    class Arguments(BaseModel):
        model_config = ConfigDict(extra="allow")

    class Given(BaseTool[Arguments, str]):  # type: ignore[misc]  # not in our environment
        """A tool with the definition that it was given."""

        def __init__(self, definition: dict[str, Any], work: Work) -> None:
            super().__init__(Arguments, str, definition["name"], definition["description"])
            self._definition = definition
            self._work = work

        @property
        def schema(self) -> ToolSchema:
            return ToolSchema(**self._definition)

        async def run(self, args: Arguments, cancellation_token: Any) -> str:
            del cancellation_token
            return await self._work.call(self.name, args.model_extra or {})

    info = ModelInfo(
        vision=False, function_calling=True, json_output=False, family=ModelFamily.UNKNOWN, structured_output=False
    )
    client = OpenAIChatCompletionClient(
        model="model",
        base_url=told.base_url,
        api_key="none",
        max_retries=0,
        timeout=PATIENCE,
        model_info=info,
        stream_options={"include_usage": True},
    )

    async def converse(work: Work, prompt: str) -> Said:
        said = Said()
        agent = AssistantAgent(
            "agent",
            client,
            tools=[Given(given["function"], work) for given in told.tools],
            system_message=told.system,
            model_client_stream=True,
            max_tool_iterations=ENOUGH,
        )
        async for event in agent.run_stream(task=prompt):
            if isinstance(event, ModelClientStreamingChunkEvent):
                said.heard(event.content)
        return said

    return converse


if __name__ == "__main__":
    main(prepare)
