"""P34: what two servers carry of what one carries, where commits queue for its disk; and a list over both."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from bench.harness import Bench, Figure, Target, Values, ratio
from bench.pictures import Bars, Wanted
from bench.place import Mesh, Place
from bench.sending import owned_recipients, pgbench

_CLIENTS: Final = 16
_BEGIN: Final = "select agentmesh.begin_step(%s, row(%s, %s, null, null, null)::agentmesh.caller, 0)"
_STEP: Final = """select agentmesh.begin_step('{agent}', row({worker}, {epoch}, null, null, null)::agentmesh.caller,
  1000000);
select agentmesh.finish_step('{agent}', row({worker}, {epoch}, null, null, null)::agentmesh.caller,
  '{{"text": "no call", "correction": {{"reason": "no call", "text": "Make the call."}}}}', '[]',
  '{{"input_tokens": 1000, "output_tokens": 20}}');
"""
"""A step whose answer the model has to correct: it is told to the session's screens in the same commit."""


def run(bench: Bench) -> None:
    """Measure P34."""
    with ExitStack() as stack:
        second = stack.enter_context(Place(bench.place.folder.parent))
        one = stack.enter_context(bench.place.mesh())
        two = stack.enter_context(second.mesh())
        _steps(bench, one, two)
        _lists(bench, one, two)


def _steps(bench: Bench, one: Mesh, two: Mesh) -> None:
    figure = Figure(
        "P34",
        f"steps per second that notify: {_CLIENTS} clients at one server, and {_CLIENTS // 2} at each of two",
        {"one server": "steps/s", "two servers": "steps/s", "two / one": "x"},
        [Target("two / one", ">=", 1.7)],
        repetitions=3,
        ordinary=2,
        any_load=True,  # the second server would count as others
        note="pgbench with the statements of steps. The second commit of each step notifies. Such commits take turns "
        "at one lock of their server, and each holds it until its log is flushed. Both servers are on this machine "
        "and disk; commit_delay is off.",
        picture=Bars(
            {"one server": "one server", "two servers": "two servers"}, Wanted("≥ 1.7 × one server", 1.7, "one server")
        ),
    )
    each = bench.size(150, 10, 1000)
    steps = {mesh: _prepared(mesh) for mesh in (one, two)}

    def rate(meshes: Sequence[Mesh]) -> float:
        share = _CLIENTS // len(meshes)
        with ThreadPoolExecutor() as pool:
            folders = [bench.place.folder / f"pgbench{n}" for n in range(len(meshes))]
            for folder in folders:
                folder.mkdir(exist_ok=True)
            running = [
                pool.submit(pgbench, bench, mesh, steps[mesh][:share], each, folder)
                for mesh, folder in zip(meshes, folders, strict=True)
            ]
            return sum(one.result() for one in running)

    def repeat() -> Values:
        for mesh in (one, two):
            mesh.settle_storage()
        alone, both = rate([one]), rate([one, two])
        return {"one server": alone, "two servers": both, "two / one": ratio(both, alone)}

    bench.measure(repeat, figure)


def _prepared(mesh: Mesh) -> list[str]:
    """Return the script of each agent, whose first step has begun."""
    scripts = []
    for agent in owned_recipients(mesh, _CLIENTS):
        worker, epoch = mesh.bare.execute(
            "select worker_id, epoch from agentmesh.agents where id = %s", [agent]
        ).fetchone() or (None, None)
        mesh.bare.execute(_BEGIN, [agent, worker, epoch])
        scripts.append(_STEP.format(agent=agent, worker=worker, epoch=epoch))
    return scripts


def _lists(bench: Bench, one: Mesh, two: Mesh) -> None:
    figure = Figure(
        "P34 ps",
        "agentmesh ps --all with one database and with two",
        {"one database": "s", "two databases": "s", "two / one": "x"},
        [Target("two / one", "<=", 1.2)],
        repetitions=3,
        ordinary=1,
        any_load=True,
        note="Process start to end, in turn; medians. Both databases have as many agents.",
    )
    runs = bench.size(6, 1, 15)
    program = str(Path(sys.executable).with_name("agentmesh"))
    urls = {"one database": [one.url], "two databases": [one.url, two.url]}
    environs = {name: _configured(bench.place.folder / name.replace(" ", "-"), given) for name, given in urls.items()}

    def seconds(environ: dict[str, str]) -> float:
        began = time.perf_counter()
        subprocess.run([program, "ps", "--all"], env=environ, capture_output=True, check=True)
        return time.perf_counter() - began

    def repeat() -> Values:
        seen: dict[str, list[float]] = {name: [] for name in environs}
        for _ in range(runs):
            for name, environ in environs.items():
                seen[name].append(seconds(environ))
        found = {name: statistics.median(times) for name, times in seen.items()}
        return {**found, "two / one": ratio(found["two databases"], found["one database"])}

    bench.measure(repeat, figure)


def _configured(folder: Path, urls: Sequence[str]) -> dict[str, str]:
    """Return an environment whose configuration names these databases."""
    folder.mkdir(exist_ok=True)
    tables = (f'[databases.d{n}]\nurl = "{url}"\n' for n, url in enumerate(urls))
    (folder / "config.toml").write_text("".join(tables))
    return {"PATH": "/usr/bin:/bin", "HOME": str(folder), "AGENTMESH_CONFIG_DIR": str(folder)}
