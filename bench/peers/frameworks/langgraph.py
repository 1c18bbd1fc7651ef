"""LangGraph's react agent on langchain-openai, without a checkpointer: nothing is stored."""

from __future__ import annotations

import warnings
from contextvars import ContextVar
from typing import Any

from bench.peers.frameworks.work import ENOUGH, PATIENCE, Converse, Said, Told, Work, main

_WORK: ContextVar[Work] = ContextVar("work")


def prepare(told: Told) -> Converse:
    """Make the graph; its tools find the work in the task's context."""
    from langchain_core.messages import AIMessageChunk
    from langchain_core.tools import StructuredTool
    from langchain_openai import ChatOpenAI

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it has moved to langchain, under another name
        from langgraph.prebuilt import create_react_agent

    def tool(definition: dict[str, Any]) -> StructuredTool:
        async def invoke(**arguments: Any) -> str:
            return await _WORK.get().call(definition["name"], arguments)

        return StructuredTool(
            name=definition["name"],
            description=definition["description"],
            args_schema=definition["parameters"],
            coroutine=invoke,
        )

    model = ChatOpenAI(
        model="model",
        base_url=told.base_url,
        api_key="none",
        max_retries=0,
        timeout=PATIENCE,
        streaming=True,
        stream_usage=True,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = create_react_agent(model, [tool(given["function"]) for given in told.tools], prompt=told.system)

    async def converse(work: Work, prompt: str) -> Said:
        said = Said()
        _WORK.set(work)
        asked = {"messages": [{"role": "user", "content": prompt}]}
        async for message, _ in graph.astream(asked, {"recursion_limit": ENOUGH}, stream_mode="messages"):
            if isinstance(message, AIMessageChunk) and isinstance(message.content, str):
                said.heard(message.content)
        return said

    return converse


if __name__ == "__main__":
    main(prepare)
