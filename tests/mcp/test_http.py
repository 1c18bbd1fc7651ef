"""`agentmesh mcp --http`: on loopback, for who has the token."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx2
import psutil
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from agentmesh.domain.states import AgentStatus
from agentmesh.store import waits
from tests.mcp.conftest import Desk, Guest, run, soon

pytestmark = pytest.mark.timeout(180)  # each starts Python several times

TOKEN = "the-token-of-this-test"
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}

WAITS = """
import sys
import anyio, httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

async def wait(url, token, mode):
    with_token = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=None)
    async with with_token, Client(streamable_http_client(url, http_client=with_token), mode=mode) as client:
        await client.call_tool("wait", {"timeout": 3600})

anyio.run(wait, *sys.argv[1:])
"""
"""A client that waits."""


@contextmanager
def server(desk: Desk, *args: str) -> Iterator[tuple[str, psutil.Process]]:
    """Start a server; lend its URL and process. It must end cleanly when asked to."""
    given = ("mcp", "--model", "demo", "--http", "0", "--token-env", "TOKEN_HERE", *args)
    with desk.am.start(*given, TOKEN_HERE=TOKEN) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        yield process.stdout.readline().decode().strip(), psutil.Process(process.pid)
        process.send_signal(signal.SIGTERM)
        said = process.stderr.read()
        assert (process.wait(), said) == (0, b"")


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_two_clients_act_as_the_one_agent_of_the_server(desk: Desk, mode: str):
    async def test(url: str):
        with_token = httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"})
        async with with_token, Client(streamable_http_client(url, http_client=with_token), mode=mode) as first:
            one = Guest(first, desk.mesh)
            await one.call("fork", name="a", prompt="work")
            desk.mesh.answer(await one.id("a"), "done")
            async with Client(streamable_http_client(url, http_client=with_token), mode=mode) as second:
                two = Guest(second, desk.mesh)
                assert (await two.call("wait", timeout=150, from_agents=["a"]))["results"][0]["output"] == "done"
                assert await two.id() == await one.id()

    with server(desk) as (url, _):
        run(test, url)
    assert desk.mesh.one("select status from agentmesh.agents where external") == AgentStatus.IDLE


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_client_that_is_gone_waits_no_more_and_its_mail_goes_to_the_next(desk: Desk, mode: str):
    async def test(url: str):
        with_token = httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"})
        async with with_token, Client(streamable_http_client(url, http_client=with_token), mode=mode) as client:
            guest, mesh = Guest(client, desk.mesh), desk.mesh
            me = await guest.id()
            with subprocess.Popen([sys.executable, "-c", WAITS, url, TOKEN, mode]) as gone:
                await soon(lambda: mesh.run(waits.registered, me), "the wait")
                gone.kill()
            await soon(lambda: mesh.run(waits.registered, me) is None, "the end of the wait")
            mesh.send(None, me, "for whoever reads it")
            assert mesh.unread(me) == ["for whoever reads it"]
            result = await guest.call("wait", timeout=150)
            assert result["results"] == [{"name": "user", "message": "for whoever reads it"}]

    with server(desk) as (url, _):
        run(test, url)


@pytest.mark.parametrize("given", [None, "Bearer wrong", f"Basic {TOKEN}", TOKEN])
def test_without_the_token_nothing_is_answered(desk: Desk, given: str | None):
    headers = {"Accept": "application/json, text/event-stream", **({"Authorization": given} if given else {})}
    with server(desk) as (url, _):
        for method in ("POST", "GET", "DELETE"):
            answer = httpx2.request(method, url, headers=headers, json=PING)
            assert answer.status_code == 401
            assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_a_web_page_that_calls_itself_by_another_name_is_refused(desk: Desk):
    headers = {"Accept": "application/json, text/event-stream", "Authorization": f"Bearer {TOKEN}"}
    with server(desk) as (url, _):
        for name, value in (("Host", "evil.example"), ("Origin", "https://evil.example")):
            answer = httpx2.post(url, headers={**headers, name: value}, json=PING)
            assert answer.status_code in (403, 421)


def test_it_listens_on_loopback_only_and_stdio_on_nothing(desk: Desk):
    with server(desk) as (url, process):
        assert listening(process) == [("127.0.0.1", urlsplit(url).port)]
    with desk.raw("--model", "demo") as stdio:
        stdio.call("list_agents", {})
        stdio.stdout.readline()
        assert listening(psutil.Process(stdio.process.pid)) == []


def test_a_token_is_made_when_none_is_given(desk: Desk):
    with desk.am.start("mcp", "--model", "demo", "--http", "0") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        url = process.stdout.readline().decode().strip()
        said = process.stderr.readline().decode()
        assert said.startswith("Clients must send this header:  Authorization: Bearer ")
        headers = {"Accept": "application/json, text/event-stream", "Authorization": said.partition("n: ")[2].strip()}
        assert httpx2.post(url, json=PING, headers=headers).status_code != 401
        assert httpx2.post(url, json=PING, headers={"Authorization": "Bearer x"}).status_code == 401


def test_a_port_that_is_taken_is_said(desk: Desk):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = desk.am("mcp", "--model", "demo", "--http", str(taken.getsockname()[1]))
    assert done.code == 2
    assert "cannot be used" in done.err


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("--http", "0", "--token-env", "NO_SUCH_VARIABLE"), "NO_SUCH_VARIABLE is not set"),
        (("--token-env", "HOME"), "--token-env is for --http"),
    ],
)
def test_a_token_that_cannot_be_meant_is_said(desk: Desk, args: tuple[str, ...], sentence: str):
    done = desk.am("mcp", *args)
    assert done.code == 2
    assert sentence in done.err


def listening(process: psutil.Process) -> list[Any]:
    """Return the addresses at which a process listens for TCP."""
    return [tuple(each.laddr) for each in process.net_connections("tcp") if each.status == psutil.CONN_LISTEN]
