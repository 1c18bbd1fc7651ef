"""The server's interface to its client: the list of tools, and their calls, over stdio."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

from agentmesh import __version__
from agentmesh.domain.errors import AgentmeshError
from agentmesh.domain.log import logger
from agentmesh.engine.tool import Effect, ToolError
from agentmesh.mcp import tools
from agentmesh.mcp.member import Member
from agentmesh.mcp.stdin import StdinLines, pass_on
from agentmesh.mcp.waiting import Waits, in_thread

LOG = logger(__name__)

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that ask to stop."""

_INSTRUCTIONS = (
    "You are an agent of an agentmesh session: a tree of LLM agents that work at the same time and send each other "
    "messages. fork starts one, send writes to one, wait returns their messages, kill ends one. An agent that you "
    'forked reports to you: call wait, with a long timeout, instead of polling. An agent whose activity is "needs '
    'approval" or "asking" waits for a person: tell the user to run `agentmesh answer`, or to open `agentmesh`.'
)


def build(member: Member) -> Server[Any]:
    """Return the server whose client acts as this member."""
    waits = Waits(member)

    async def list_tools(
        _context: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(each) for each in tools.definitions()])

    async def wait(context: ServerRequestContext[Any], given: dict[str, Any]) -> dict[str, Any]:
        until_gone: anyio.CancelScope = context.request.state.until_gone if context.request else anyio.CancelScope()
        with until_gone:
            return await waits.wait(given, context.session.report_progress)
        return {"error": "the client is gone"}  # nobody reads it

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        given = params.arguments or {}
        try:
            if params.name == "wait":
                return _answer(await wait(context, given))
            return _answer(await in_thread(tools.call, member, params.name, given))
        except (ToolError, AgentmeshError) as error:
            return _answer(tools.refusal(error), failed=True)
        except Exception as error:
            LOG.exception("the call of %s failed", params.name)
            words = f"unexpected {type(error).__name__}: {error}"
            return _answer({"error": words, "hint": "This is a bug in agentmesh; please report it."}, failed=True)

    return Server(
        "agentmesh",
        version=__version__,
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def serve_stdio(member: Member) -> None:
    """Serve one client on stdin and stdout until it closes stdin or a signal asks to stop."""
    anyio.run(_serve_stdio, member)


async def _serve_stdio(member: Member) -> None:
    server, lines = build(member), StdinLines()
    requests: anyio.AsyncFile[str] = anyio.wrap_file(lines)
    onward, messages = anyio.create_memory_object_stream[SessionMessage | Exception]()
    async with (
        _ended_by_signals(member),
        stdio_server(requests) as (incoming, outgoing),
        _ended_with_stdout(member),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(pass_on, lines, incoming, onward, outgoing)
        await server.run(messages, outgoing, server.create_initialization_options())
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def _ended_by_signals(member: Member) -> AsyncIterator[None]:
    """End the process cleanly on a signal; there is no other way to wait for the thread that reads stdin."""

    async def heed() -> None:
        with anyio.open_signal_receiver(*SIGNALS) as signals:
            async for number in signals:
                await in_thread(member.leave)
                os._exit(130 if number == signal.SIGINT else 0)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(heed)
        yield
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def _ended_with_stdout(member: Member) -> AsyncIterator[None]:
    """End the process cleanly if it cannot answer any more: then, and only then, the SDK cancels what is within."""
    try:
        yield
    except anyio.get_cancelled_exc_class():
        LOG.info("the client reads no answers any more")
        with anyio.CancelScope(shield=True):
            await in_thread(member.leave)
        os._exit(0)


def _described(tool: dict[str, Any]) -> types.Tool:
    reads = tools.TOOLS[tool["name"]].effect == Effect.READ
    return types.Tool(
        name=tool["name"],
        description=tool["description"],
        input_schema=tool["parameters"],
        annotations=types.ToolAnnotations(
            read_only_hint=reads, destructive_hint=tool["name"] == "kill", open_world_hint=False
        ),
    )


def _answer(result: dict[str, Any], *, failed: bool = False) -> types.CallToolResult:
    text = json.dumps(result, ensure_ascii=False)
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=failed)
