"""Workers on several hosts, each a network namespace of its own; one is cut off, and comes back."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.faults import crowd
from tests.faults.crowd import impatient, rows
from tests.fixtures.engine import Rig, until
from tests.fixtures.proxy import Door, Proxy

pytestmark = [pytest.mark.usefixtures("impatient"), pytest.mark.timeout(180)]
__all__ = ["impatient"]

Note = Callable[[str, object], None]

IP = shutil.which("ip") or shutil.which("ip", path="/usr/sbin:/sbin")


class Host:
    """A network namespace with one cable to here."""

    def __init__(self, ip: str, name: str, network: str) -> None:
        self.here, self.there = f"{network}.1", f"{network}.2"
        self._ip, self._name, self._cable = ip, name, f"{name}h"
        self._run("netns", "add", name)
        self._run("link", "add", self._cable, "type", "veth", "peer", "name", "eth0", "netns", name)
        self._run("addr", "add", f"{self.here}/30", "dev", self._cable)
        self._run("-n", name, "addr", "add", f"{self.there}/30", "dev", "eth0")
        for link in ((self._cable,), ("eth0",), ("lo",)):
            where = () if link[0] == self._cable else ("-n", name)
            self._run(*where, "link", "set", *link, "up")

    def command(self, *words: str) -> list[str]:
        """Return the command that runs there."""
        return [self._ip, "netns", "exec", self._name, *words]

    def cut_off(self) -> None:
        """Pull the cable: nothing arrives any more, and nobody is told."""
        self._run("link", "set", self._cable, "down")

    def connect(self) -> None:
        """Plug it in again."""
        self._run("link", "set", self._cable, "up")

    def close(self) -> None:
        """Remove it."""
        self._run("netns", "del", self._name)

    def _run(self, *words: str) -> None:
        subprocess.run([self._ip, *words], check=True, capture_output=True)


@pytest.fixture
def host() -> Iterator[Host]:
    """Another host; skips where none can be made."""
    if not IP:
        pytest.skip("no program ip here")
    try:
        made = Host(IP, f"am{os.getpid()}", f"10.217.{os.getpid() % 256}")
    except subprocess.CalledProcessError as error:
        subprocess.run([IP, "netns", "del", f"am{os.getpid()}"], check=False, capture_output=True)
        pytest.skip(f"no network namespaces here: {error.stderr.decode().strip()}")
    yield made
    made.close()


@pytest.mark.parametrize("seed", crowd.SEEDS)
def test_a_host_is_cut_off_and_comes_back(rig: Rig, host: Host, tmp_path: Path, seed: str, record_property: Note):
    rig.root = rig.session(provider="openai")
    crowd.script(rig)
    with ExitStack() as closing:
        database, model = Proxy(rig.url, host.here), Door(_address(rig.model.base_url), host.here)
        for door in (database, model):
            closing.callback(door.close)
        environ = {key: value for key, value in os.environ.items() if not key.startswith(("AGENTMESH_", "OPENAI_"))}
        environ |= {
            "AGENTMESH_DATABASE_URL": database.url,
            "OPENAI_BASE_URL": f"http://{host.here}:{model.address[1]}/v1",
            "OPENAI_API_KEY": "none",
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "HOME": str(tmp_path),
        }
        command = host.command(sys.executable, "-m", "agentmesh", "worker", "--any", "--concurrency", "6")
        log = closing.enter_context((tmp_path / "worker.log").open("wb"))
        far = closing.enter_context(subprocess.Popen(command, env=environ, cwd=rig.workdir, stderr=log, stdout=log))
        closing.callback(far.kill)
        alive = "select id from agentmesh.workers where ended_at is null order by started_at desc limit 1"
        worker = until(lambda: rig.one(alive), "its registration")
        rig.prompt()
        for _moment in crowd.at_moments(rig, random.Random(seed), 1):
            rig.worker(concurrency=6, tick=0.2, providers=("openai",))
            host.cut_off()
        crowd.until_buried(rig, worker)
        crowd.until_rest(rig)
        before = rows(rig)
        host.connect()
        again = "select exists (select from agentmesh.workers where pid = %s and id <> %s and ended_at is null)"
        until(lambda: rig.one(again, far.pid, worker), "its new registration", 45.0)
        far.send_signal(signal.SIGTERM)
        assert far.wait(40) == 0
        assert rows(rig) == before
    record_property("fault", ("a host cut off and back", 1, crowd.assert_whole(rig)))


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return str(parts.hostname), int(parts.port or 80)
