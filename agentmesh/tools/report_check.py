"""The command that checks a report before it is taken: it runs where the agent works, as a command of the agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agentmesh.domain import permissions
from agentmesh.domain.permissions import Decision
from agentmesh.domain.text import one_line, storable
from agentmesh.engine.tool import Rights, ToolContext, ToolError
from agentmesh.store.forms import Owed
from agentmesh.tools.check import CheckCommand
from agentmesh.tools.gate import ToolGate
from agentmesh.tools.guarded_run import Spawner
from agentmesh.tools.shell_command import require_no_nul
from agentmesh.tools.wall.walls import Walls
from agentmesh.workspace.merge_words import how_it_ended
from agentmesh.workspace.results import Checked

_MOST_BYTES: Final = 8192


def require_check(check: str | None) -> str | None:
    """Return a check as it is stored, None if there is none; raise ToolError if it cannot be a command."""
    if check is None:
        return None
    if not check.strip():
        raise ToolError("the check is empty", "Give a command, or leave check out.")
    require_no_nul("check", check)
    if (size := len(storable(check).encode())) > _MOST_BYTES:
        raise ToolError(f"the check is {size} bytes long, the limit is 8192", "Put it into a script, and call that.")
    return storable(check)


class ReportChecks:
    """Runs the checks of reports."""

    def __init__(self, spawner: Spawner, walls: Walls) -> None:
        self._spawner = spawner
        self._walls = walls
        self._gate = ToolGate(walls=walls)

    def run(self, owed: Owed, context: ToolContext) -> Checked | None:
        """Run the check, if there is one; raise ToolError if the agent's own rules deny it, or if it cannot run."""
        if owed.check_command is None:
            return None
        if not context.workdir.is_dir():
            raise ToolError(f"The working directory {context.workdir} does not exist.", "Ask the user to restore it.")
        rights = Rights(owed.permissions, owed.allowed)
        verdict = self._gate.judge(
            "bash", {"command": owed.check_command}, rights, context.workdir, context.project if context.own else None
        )
        if verdict.decision is Decision.DENY:
            raise ToolError(f"the check may not run: {permissions.refusal(verdict, 'bash').message}", "Say so.")
        # Whoever asked for the check was allowed to run it, at that time. That allows it to the agent too.
        approved = verdict.approved or owed.check_approved
        if verdict.decision is Decision.ASK and not approved:
            raise ToolError(f"nobody has allowed the check: {verdict.reason}", "Say so.")
        context.progress(f"checking the report: {one_line(owed.check_command, 80)}")
        command = CheckCommand(
            owed.check_command,
            self._spawner,
            self._walls,
            context.agent_id,
            str(context.session_id),
            approved=approved,
            output_limit=min(context.output_limit, 16 * 1024),
            show=context.output,
            withheld=self._gate.withheld("bash", rights, context.project, approved=approved),
            own=context.own,
        )
        try:
            return command(context.workdir, context.cancel)
        except OSError as error:
            raise ToolError(f"The check could not be started: {error}.", "Say so.") from error


def failed(checked: Checked | None) -> Mapping[str, Any] | None:
    """Return the refusal of a report whose check failed; None if there was no check, or if it passed."""
    if checked is None or checked.passed:
        return None
    return {
        "error": f"the report was not taken: its check failed ({how_it_ended(checked)})",
        "hint": "Make the check pass, then call report again.",
        "check": {"command": checked.command, "exit_code": checked.exit_code, "output": checked.output},
    }
