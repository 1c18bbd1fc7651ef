"""Finders that are asked for a while, beside imports of other threads."""

from __future__ import annotations

import subprocess
import sys

# Another thread's import stops at the first of three finders; meanwhile the one before it is taken out.
CODE = """
import sys, threading
from importlib.abc import MetaPathFinder
from agentmesh.llm.finders import asked_first

reached, go_on, asked = threading.Event(), threading.Event(), []

class Stops(MetaPathFinder):
    def find_spec(self, fullname, *_):
        if fullname == 'colorsys':
            reached.set()
            go_on.wait()

class Next(MetaPathFinder):
    def find_spec(self, fullname, *_):
        asked.append(fullname)

class Ours(MetaPathFinder):
    def find_spec(self, fullname, *_):
        asked.append(f'ours: {fullname}')

ours = Ours()
sys.meta_path[:0] = [Stops(), Next()]
importing = threading.Thread(target=__import__, args=('colorsys',))
with asked_first(ours):
    importing.start()
    reached.wait()
go_on.set()
importing.join()
print(asked, ours in sys.meta_path, 'colorsys' in sys.modules)
"""


def test_an_import_that_runs_while_a_finder_is_taken_out_asks_all_others() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("['ours: colorsys', 'colorsys'] False True\n", "")
