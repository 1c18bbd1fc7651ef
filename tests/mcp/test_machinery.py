"""What the server needs around it: workers, the database, its package, a session to join."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import psutil
import pytest

from agentmesh.store import waits
from tests.cli.conftest import CommandLine
from tests.fixtures.blocking import Stage
from tests.fixtures.mesh import Mesh
from tests.fixtures.proxy import Proxy
from tests.mcp.conftest import Desk, run, soon

pytestmark = pytest.mark.timeout(180)  # each starts Python several times


@pytest.fixture
def background(mesh: Mesh) -> Iterator[None]:
    """End the workers that were started in the background, and see that they are gone."""
    yield
    for pid in mesh.column("select pid from agentmesh.workers where providers <> '{}' and pid > 1 and pid < 2^31 - 1"):
        try:
            process = psutil.Process(pid)
            process.terminate()
            process.wait(30)
        except psutil.NoSuchProcess:
            continue


@pytest.mark.usefixtures("background", "patient")
def test_the_first_fork_starts_a_worker_which_runs_the_agent(am: CommandLine, mesh: Mesh, tmp_path):
    async def test():
        async with Desk(am, mesh, tmp_path).guest("--permission-mode", "all") as guest:
            await guest.call("fork", name="a", prompt="list files")
            result = await guest.call("wait", timeout=150, from_agents=["a"])
            assert result["outcome"] == "complete"
            assert result["results"][0]["status"] in ("idle", "received")
            transcript = await guest.call("read_transcript", agent_id="a")
            assert "→ glob" in transcript["text"]

    run(test)
    assert mesh.one("select count(*) from agentmesh.workers where providers <> '{}' and pid > 1") == 1


def test_a_session_whose_model_has_no_key_here_is_said(desk: Desk):
    async def test():
        session = desk.session()
        desk.mesh.conn.execute("update agentmesh.agents set model = 'openai/x'")
        async with desk.guest("--session", session) as guest:
            forked = await guest.call("fork", name="a", prompt="work")
            assert "its model openai/x has no key here" in forked["note"]

    run(test)


def test_without_a_model_the_first_call_says_what_to_do(desk: Desk):
    async def test():
        async with desk.guest(model="") as guest:
            refused = await guest.refused("list_agents")
            assert refused["error"] == "no model is configured"
            assert "--model demo" in refused["hint"]

    run(test)


def test_a_database_that_is_away_is_said_and_found_when_it_is_back(desk: Desk, proxy: Proxy):
    async def test():
        proxy.refuse()
        async with desk.guest(AGENTMESH_DATABASE_URL=proxy.url) as guest:
            refused = await guest.refused("list_agents")
            assert "cannot be reached" in refused["error"]
            assert refused["hint"]
            proxy.admit()
            assert len((await guest.call("list_agents"))["agents"]) == 1

    run(test)


def test_a_wait_outlives_an_outage(desk: Desk, proxy: Proxy):
    async def test():
        async with desk.guest(AGENTMESH_DATABASE_URL=proxy.url) as guest:
            mesh = desk.mesh
            await guest.call("fork", name="a", prompt="work")
            me, a, ended = await guest.id(), await guest.id("a"), []

            async def wait() -> None:
                ended.append(await guest.call("wait", timeout=150, from_agents=["a"]))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await soon(lambda: mesh.run(waits.registered, me), "the wait")
                proxy.refuse()
                await soon(proxy.refused.is_set, "an attempt to come back")
                mesh.send(a, me, "meanwhile")
                proxy.admit()
            assert [each["message"] for each in ended[0]["results"]] == ["meanwhile"]

    run(test)


@pytest.mark.parametrize("lost", ["the reply", "the call", "the result"])
def test_a_wait_outlives_an_outage_while_it_begins(desk: Desk, proxy: Proxy, stage: Stage, lost: str):
    """Whether the database began it is unknown to the server: nothing is refused, and no message is lost."""
    begins = "select pid from pg_stat_activity where query like '%%wait_begin%%' and wait_event_type = 'Lock'"

    async def test():
        async with desk.guest(AGENTMESH_DATABASE_URL=proxy.url) as guest:
            mesh = desk.mesh
            await guest.call("fork", name="a", prompt="work")
            me, a, ended = await guest.id(), await guest.id("a"), []
            if lost == "the result":
                mesh.send(a, me, "meanwhile")

            async def wait() -> None:
                ended.append(await guest.call("wait", timeout=150, from_agents=["a"]))

            async with anyio.create_task_group() as tasks:
                stage.holder.execute("select from agentmesh.agents where id = %s for no key update", [me])
                tasks.start_soon(wait)
                await soon(lambda: mesh.column(begins), "the wait's beginning")
                (backend,) = mesh.column(begins)
                proxy.refuse()
                if lost == "the call":
                    mesh.conn.execute("select pg_terminate_backend(%s)", [backend])
                    await soon(lambda: not mesh.column(begins), "the end of the call")
                stage.holder.rollback()
                if lost == "the reply":
                    await soon(lambda: mesh.run(waits.registered, me), "the wait")
                elif lost == "the result":
                    await soon(lambda: not mesh.unread(me), "the message's delivery")
                await soon(proxy.refused.is_set, "an attempt to come back")
                proxy.admit()
                if lost != "the result":
                    await soon(lambda: mesh.run(waits.registered, me), "the wait")
                    mesh.send(a, me, "meanwhile")
            assert [each["message"] for each in ended[0]["results"]] == ["meanwhile"]

    run(test)


def test_a_session_that_does_not_exist_ends_it_at_once(desk: Desk):
    done = desk.am("mcp", "--session", "00000000")
    assert done.code == 1
    assert done.out == ""
    assert "session" in done.err


def test_without_its_package_one_sentence_says_what_to_install(desk: Desk):
    desk.am.folder.mkdir()
    code = (
        "import sys\n"
        "sys.modules['mcp'] = sys.modules['mcp_types'] = None\n"
        "sys.argv = ['agentmesh', 'mcp']\n"
        "from agentmesh.cli.entry import main\n"
        "sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=desk.am.folder,
        env=desk.am.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert "pip install '.[mcp]' in a checkout" in done.stderr
    assert "Traceback" not in done.stderr


def test_its_environment_is_concealed_from_the_commands_of_agents(desk: Desk):
    if sys.platform != "linux":
        pytest.skip("only Linux shows it")
    with desk.raw("--model", "demo") as server:
        shown = Path(f"/proc/{server.process.pid}/environ").read_bytes()
    assert shown.strip(b"\0") == b""
