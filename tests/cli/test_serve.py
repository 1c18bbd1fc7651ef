"""``agentmesh serve``: the screen in a browser of this machine, and pages that may not have it."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.cli.conftest import CommandLine

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PATIENCE = 40


@pytest.fixture
def address(am: CommandLine) -> Iterator[str]:
    """The address of a server of a new session."""
    with am.start("serve") as process:
        assert process.stdout is not None
        yield process.stdout.readline().decode().strip()


def status(address: str, **headers: str) -> int:
    async def ask() -> int:
        async with aiohttp.ClientSession() as client, client.get(address, headers=headers) as response:
            return response.status

    return asyncio.run(ask())


def test_the_address_is_on_loopback_and_has_a_secret(address: str):
    assert address.startswith("http://127.0.0.1:")
    assert len(address.split("/")[3]) >= 43
    assert status(address) == 200
    root = address[: address.index("/", 8)]
    assert status(root + "/") == 404
    assert status(root + "/ws") == 404
    assert status(f"{root}/{'x' * 43}/") == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": ""},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Upgrade": "websocket", "Connection": "Upgrade"},
    ],
    ids=str,
)
def test_other_pages_are_refused(address: str, headers: dict[str, str]):
    assert status(address, **headers) == 403
    assert status(f"{address}ws", **headers) == 403


def test_the_page_loads_nothing_from_elsewhere(address: str):
    async def ask() -> str:
        async with aiohttp.ClientSession() as client, client.get(address) as response:
            return response.headers["Content-Security-Policy"]

    policy = asyncio.run(ask())
    assert "default-src 'none'" in policy
    assert "http:" not in policy
    assert "*" not in policy


def test_a_port_that_is_taken_is_said(am: CommandLine, address: str):
    port = address.split(":")[2].split("/", maxsplit=1)[0]
    done = am("serve", "--port", port)
    assert done.code == 2
    assert done.err.startswith(f"agentmesh: Port {port} cannot be used")


def test_what_a_page_types_reaches_the_database(address: str, mesh: Any):
    async def type_a_message() -> None:
        origin = address[: address.index("/", 8)]
        async with aiohttp.ClientSession() as client:
            url = f"{address}ws?width=80&height=24"
            async with client.ws_connect(url, headers={"Origin": origin}, max_msg_size=0) as socket:
                await shown(socket, b"/ commands")
                await socket.send_json(["stdin", "hello"])
                await shown(socket, b"hello")
                await socket.send_json(["stdin", "\r"])
                await come_true(
                    lambda: mesh.conn.execute("select 1 from agentmesh.mail where body = 'hello'").fetchone()
                )

    asyncio.run(type_a_message())


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")
def test_a_browser_shows_the_screen(address: str, tmp_path: Path):
    async def look() -> None:
        async with browser(tmp_path) as call:
            await call("Page.navigate", url=address)
            await until(call, "document.body.classList.contains('-first-byte')")

    asyncio.run(look())


async def shown(socket: aiohttp.ClientWebSocketResponse, text: bytes) -> None:
    """Read until the screen has painted a text."""
    painted = b""
    while text not in painted:
        piece = await socket.receive(PATIENCE)
        assert not socket.closed, f"the page was closed before it showed {text!r}"
        painted += piece.data if isinstance(piece.data, bytes) else b""


async def come_true(check: Callable[[], Any]) -> None:
    """Wait until a check holds."""
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while not check():
        assert asyncio.get_running_loop().time() < deadline, "it did not come true"
        await asyncio.sleep(0.1)


Call = Callable[..., Any]


@asynccontextmanager
async def browser(folder: Path) -> AsyncIterator[Call]:
    """Start a Chromium, and lend a function that gives it commands of the DevTools protocol."""
    assert BROWSER is not None
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"]
    command = [BROWSER, *options, f"--user-data-dir={folder / 'chromium'}", "about:blank"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            port = await devtools_port(folder / "chromium" / "DevToolsActivePort")
            async with aiohttp.ClientSession() as client:
                async with client.get(f"http://127.0.0.1:{port}/json") as response:
                    pages = [page for page in await response.json() if page["type"] == "page"]
                async with client.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                    yield commands(socket)
        finally:
            process.kill()


async def devtools_port(file: Path) -> int:
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while not (file.exists() and file.read_text()):
        assert asyncio.get_running_loop().time() < deadline, "the browser did not start"
        await asyncio.sleep(0.1)
    return int(file.read_text().splitlines()[0])


def commands(socket: aiohttp.ClientWebSocketResponse) -> Call:
    numbers = iter(range(1, 10_000))

    async def call(method: str, **params: Any) -> Any:
        number = next(numbers)
        await socket.send_json({"id": number, "method": method, "params": params})
        while (answer := json.loads((await socket.receive()).data)).get("id") != number:
            pass
        assert "error" not in answer, answer
        return answer["result"]

    return call


async def until(call: Call, expression: str) -> None:
    """Wait until a JavaScript expression is true."""
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while not (await call("Runtime.evaluate", expression=expression))["result"].get("value"):
        assert asyncio.get_running_loop().time() < deadline, f"it did not come to {expression}"
        await asyncio.sleep(0.1)
