"""P11 and run hi: how long ``agentmesh --version`` takes, and ``agentmesh run "hi"`` from its start to its end."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from psycopg.conninfo import conninfo_to_dict

from bench.harness import Bench, Figure, Target, Values, ratio
from bench.model_server import HI, ModelServer

_ROOT: Final = Path(__file__).parent.parent
_VERSION: Final = "import sys; from agentmesh.cli.entry import main; sys.argv = ['agentmesh', '--version']; main()"
"""What the console script does."""
_HEAVY: Final = ("openai", "textual", "alembic", "sqlalchemy", "psycopg", "pydantic", "click", "rich")
_BARE: Final = (
    "import openai; answer = openai.OpenAI(max_retries=0).chat.completions.create(model='model', stream=True,"
    f" messages=[{{'role': 'user', 'content': '{HI}'}}]);"
    " print(''.join(chunk.choices[0].delta.content or '' for chunk in answer if chunk.choices))"
)
"""The same with the bare SDK, which stores nothing."""
_MODULES: Final = f"{_VERSION}; import json; print(json.dumps([name for name in {_HEAVY} if name in sys.modules]))"


def run(bench: Bench) -> None:
    """Measure P11 and run hi."""
    _version(bench)
    _hi(bench)


def _version(bench: Bench) -> None:
    figure = Figure(
        "P11",
        "agentmesh --version against an empty Python",
        {"agentmesh --version": "ms", "python -c pass": "ms", "ratio": "x", "heavy modules imported": ""},
        [Target("ratio", "<=", 5.0), Target("heavy modules imported", "==", 0)],
        note=f"Process start to end. Heavy: {', '.join(_HEAVY)}.",
    )
    runs = bench.size(15, 3)
    heavy = len(json.loads(_python(_MODULES).splitlines()[-1]))

    def repeat() -> Values:
        ours: list[float] = []
        empty: list[float] = []
        for _ in range(runs):
            for times, code in ((ours, _VERSION), (empty, "pass")):
                began = time.perf_counter()
                _python(code)
                times.append((time.perf_counter() - began) * 1e3)
        version, bare = statistics.median(ours), statistics.median(empty)
        return {
            "agentmesh --version": version,
            "python -c pass": bare,
            "ratio": ratio(version, bare),
            "heavy modules imported": heavy,
        }

    bench.measure(repeat, figure)


def _hi(bench: Bench) -> None:
    """Ask a model that answers at once, with the database up, and with the embedded one stopped before each run."""
    up, stopped, bare = "database up", "embedded database stopped", "bare openai SDK"
    figure = Figure(
        "run hi",
        'agentmesh run "hi" against a model that answers at once',
        {up: "s", stopped: "s", bare: "s", f"{up} / {bare}": "x", f"{stopped} / {bare}": "x"},
        [Target(f"{up} / {bare}", "<=", 1.3), Target(f"{stopped} / {bare}", "<=", 1.6)],
        ordinary=1,
        note="Process start to end, in turn; medians of some runs. Stopped: its folder is made, so the run starts the "
        "server and, at its end, stops it. The bare SDK is a script that asks the same and stores nothing.",
    )
    runs = bench.size(2, 1, 5)
    program = str(Path(sys.executable).with_name("agentmesh"))
    folder = bench.place.folder / "hi"
    folder.mkdir(exist_ok=True)
    with ModelServer() as models, bench.place.database(str(conninfo_to_dict(bench.place.url)["dbname"])) as url:
        environ = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(folder),
            "AGENTMESH_MODEL": "model",
            "AGENTMESH_DATA_DIR": str(folder / "data"),
            "OPENAI_BASE_URL": models.base_url,
            "OPENAI_API_KEY": "none",
        }
        asks = {
            up: ([program, "run", HI], {**environ, "AGENTMESH_DATABASE_URL": url}),
            stopped: ([program, "run", HI], environ),
            bare: ([sys.executable, "-c", _BARE], environ),
        }

        def repeat() -> Values:
            seen: dict[str, list[float]] = {name: [] for name in asks}
            for _ in range(runs):
                for name, (command, variables) in asks.items():
                    seen[name].append(_seconds(command, variables, folder))
            found = {name: statistics.median(times) for name, times in seen.items()}
            return {**found, **{f"{name} / {bare}": ratio(found[name], found[bare]) for name in (up, stopped)}}

        try:
            for command, variables in asks.values():  # makes the database and warms the disk's cache
                _seconds(command, variables, folder)
            bench.measure(repeat, figure)
        finally:
            subprocess.run([program, "db", "stop", "--force"], env=environ, capture_output=True, check=False)


def _seconds(command: list[str], environ: dict[str, str], folder: Path) -> float:
    """Return the seconds that a command takes; it must print an answer."""
    began = time.perf_counter()
    done = subprocess.run(command, env=environ, cwd=folder, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    if done.returncode or not done.stdout.startswith("word"):
        raise RuntimeError(f"{command[:3]} gave no answer: {done.stdout[-200:]} {done.stderr[-1000:]}")
    return seconds


def _python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], cwd=_ROOT, capture_output=True, text=True, check=True).stdout
