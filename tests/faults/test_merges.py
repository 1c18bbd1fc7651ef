"""Workers are killed at random points of merges, one after the other; the last one finishes, and nothing shows."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest

from agentmesh.workspace import repair
from agentmesh.workspace.workspaces import Workspaces
from tests.faults.conftest import ROUNDS
from tests.faults.crowd import SEEDS
from tests.fixtures.engine import Rig, call, do, once, say
from tests.fixtures.repositories import git, repository, untouched
from tests.fixtures.worker_process import HOST, USER

pytestmark = pytest.mark.timeout(300)

NAMES = ("one", "two", "three")
POINTS = tuple(
    f"{when} {name} {n}" for name in ("begin", "end", "record") for when in ("before", "after") for n in (1, 2)
) + tuple(f"before rename {n}" for n in range(1, 7))
KILLS = 3 + (ROUNDS > 0) * 5


def script(rig: Rig) -> None:
    """Let three agents change a file of their own and one that all have, at places apart, and the root merge them."""
    rig.script(
        "root",
        do(*(call("fork", name=name, prompt="work", workspace="own") for name in NAMES)),
        once(
            lambda: all(rig.status(name) == "idle" for name in NAMES),
            do(*(call("merge", agent=name) for name in NAMES)),
        ),
        say("the end"),
    )
    for n, name in enumerate(NAMES):
        change = f"mkdir -p {name} && echo {name} > {name}/file && sed -i 's/^{n}5$/{name}/' list.txt"
        rig.script(name, do(call("bash", command=change)), say("changed"))


def died(rig: Rig, point: str) -> bool:
    """Let a worker go on until it dies at this point; False if all is done before."""
    worker = rig.process(point)
    rig.until(lambda: worker.process.exitcode is not None or rig.status("root") == "idle", "its death or the end")
    if worker.process.exitcode is None:
        return False
    assert worker.join() == -signal.SIGKILL
    rig.bury(worker.worker_id)
    return True


@pytest.mark.parametrize("seed", SEEDS)
def test_merges_survive_deaths_of_their_workers(rig: Rig, seed: str):
    repository(rig.workdir)
    (rig.workdir / "list.txt").write_text("".join(f"{n:02}\n" for n in range(30)))
    before, chosen = untouched(rig.workdir), random.Random(seed)
    script(rig)
    rig.prompt()
    for point in chosen.sample(POINTS, KILLS):
        if not died(rig, point):
            break
    rig.worker()
    rig.rest()
    among = Workspaces(rig.db, rig.data_dir, host=HOST, os_user=USER)
    assert all(one.done for one in repair.mend(among, repair.look(among)))
    assert [result["status"] for result in rig.results("merge")] == ["merged"] * 3
    lines = (rig.workdir / "list.txt").read_text().split()
    assert [lines[5], lines[15], lines[25]] == list(NAMES)
    assert all((rig.workdir / name / "file").read_text() == f"{name}\n" for name in NAMES)
    assert rig.conn.execute("select state, count(*) from agentmesh.merges group by 1").fetchall() == [("done", 3)]
    assert untouched(rig.workdir) == before
    assert "error" not in git(rig.workdir, "fsck", "--full")
    assert not [*Path(rig.workdir).rglob(".agentmesh-*")]
