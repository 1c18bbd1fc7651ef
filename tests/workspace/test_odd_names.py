"""Names of files that are no words: in diffs, in blame, and taken back."""

from __future__ import annotations

import os
import shlex

import pytest

from agentmesh.workspace import undo
from agentmesh.workspace.blame import blame
from agentmesh.workspace.changed import changed, net
from agentmesh.workspace.results import UndoStatus
from tests.fixtures.engine import Rig, call, do, say
from tests.workspace.conftest import here

pytestmark = pytest.mark.timeout(120)
NAMES = [b"\xff.txt", b"d\xfe/in", b"new\nline", b"q'uo\"te", b"-dash", b" lead ", b"[br]*", b":colon", b"\x1b[31mred"]


def test_a_file_of_any_name_is_shown_blamed_and_taken_back(grove: Rig):
    rig = grove
    write = f"import os\nos.makedirs(b'd\\xfe')\nfor n in {NAMES}:\n  open(n, 'w').write('hello\\n')"
    rig.script("root", do(call("bash", command=f"python3 -c {shlex.quote(write)}")), say("done"))
    rig.worker()
    rig.run("work")
    shown = changed(here(rig), rig.root).changes
    assert len(shown) == len(NAMES)
    assert all([line.whole for line in one.lines if line.whole.startswith("+")] == ["+hello"] for one in shown)
    difference = net(here(rig), rig.root)
    assert difference is not None
    assert {os.fsencode(one.path) for one in difference.files} == set(NAMES)
    for name in NAMES:
        (line,) = blame(here(rig), rig.root, os.fsdecode(name))
        assert (line.text, line.agent_id) == ("hello", rig.root), name
    one = undo.undo(here(rig), rig.root, paths=[os.fsdecode(NAMES[0])])
    assert [os.fsencode(each.path) for each in one.files] == NAMES[:1]
    assert undo.undo(here(rig), rig.root).status is UndoStatus.DONE
    assert not any(os.path.lexists(os.path.join(os.fsencode(rig.workdir), name)) for name in NAMES)
