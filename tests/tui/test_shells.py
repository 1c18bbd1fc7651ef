from __future__ import annotations

import os
import signal
from pathlib import Path
from uuid import uuid4

from agentmesh.domain.cancel import Cancel
from agentmesh.domain.ids import AgentId
from agentmesh.tui.commands.shell import ShellResult, Shells


def test_a_command_that_is_ended_before_it_begins_never_begins(tmp_path: Path):
    shells, agent = Shells(), AgentId(uuid4())
    shells.expect(agent)
    assert shells.end(agent)
    assert shells.run(agent, "touch made", str(tmp_path), os.environ) == ShellResult("", -signal.SIGTERM)
    cancel = Cancel()
    with shells.cancelling(agent, cancel):
        assert cancel.is_set()
    assert not list(tmp_path.iterdir())
    shells.forget(agent)
    assert not shells.end(agent)
    assert shells.run(agent, "echo made", str(tmp_path), os.environ) == ShellResult("made\n", 0)
