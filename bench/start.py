"""P11: how long ``agentmesh --version`` takes, against a Python that does nothing."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from bench.harness import Bench, Figure, Target, Values, ratio

_ROOT: Final = Path(__file__).parent.parent
_VERSION: Final = "import sys; from agentmesh.cli.entry import main; sys.argv = ['agentmesh', '--version']; main()"
"""What the console script does."""
_HEAVY: Final = ("openai", "textual", "alembic", "sqlalchemy", "psycopg", "pydantic", "click", "rich")
_MODULES: Final = f"{_VERSION}; import json; print(json.dumps([name for name in {_HEAVY} if name in sys.modules]))"


def run(bench: Bench) -> None:
    """Measure P11."""
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


def _python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], cwd=_ROOT, capture_output=True, text=True, check=True).stdout
