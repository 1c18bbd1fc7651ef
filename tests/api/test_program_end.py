"""Programs that end inside a block of ``mesh.worker()``."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.fixtures.engine import Rig

BEGIN = """
import sys
import threading
import agentmesh

mesh = agentmesh.open(background_workers=False)

def serve():
    with mesh.worker():
        yield
"""
ENDS = {
    "entered": "block = mesh.worker()\nblock.__enter__()",
    "generator": "serving = serve()\nnext(serving)",
    "thread": """
serves = threading.Event()

def run():
    for _ in serve():
        serves.set()
        threading.Event().wait()

threading.Thread(target=run, daemon=True).start()
serves.wait(20)
""",
    "exit": "for _ in serve():\n    sys.exit()",
}


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
def test_a_program_that_ends_inside_the_block_stops_its_worker(rig: Rig, machine, end):
    program = [sys.executable, "-c", BEGIN + ENDS[end]]
    ended = subprocess.run(program, timeout=60, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert rig.one("select count(*) from agentmesh.workers where ended_at is not null") == 1
