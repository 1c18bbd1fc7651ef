"""The merge tool: bring in the files of a child's own tree, or the parent's into one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from agentmesh.domain.errors import TreeError
from agentmesh.engine.tool import Effect, ToolContext, ToolError
from agentmesh.store import agents, steps
from agentmesh.store.tx import Database
from agentmesh.tools.check import CheckCommand
from agentmesh.tools.guarded_run import Spawner
from agentmesh.tools.tool_schema import RARE
from agentmesh.tools.wall.walls import Walls
from agentmesh.tools.words import Described
from agentmesh.workspace import merging
from agentmesh.workspace.merge_words import told
from agentmesh.workspace.results import MergeResult, MergeStatus

if TYPE_CHECKING:
    from agentmesh.workspace.workspaces import Workspaces

_PARENT = "parent"
_LEFT = (MergeStatus.NOTHING, MergeStatus.PREVIEW)
"""How a merge ends that has no row, so that the result of the call is still to be written."""


class MergeArgs(BaseModel):
    """Arguments of merge."""

    agent: str = Field(min_length=1)
    check: str | None = Field(
        default=None, description="a command that must pass in the merged files", json_schema_extra=RARE
    )
    preview: bool = Field(default=False, description="true, to only show it", json_schema_extra=RARE)


class Merge(Described):
    """Merge the files of another tree into the caller's."""

    name = "merge"
    effect = Effect.VERB
    args: type[BaseModel] = MergeArgs

    def __init__(self, database: Database, workspaces: Workspaces | None, spawner: Spawner, walls: Walls) -> None:
        """Without ``workspaces`` every merge is refused."""
        self._database = database
        self._workspaces = workspaces
        self._spawner = spawner
        self._walls = walls

    def run(self, args: MergeArgs, context: ToolContext) -> None:
        """Merge; the result is written by the merge's own commit, or here if nothing was changed."""
        if self._workspaces is None:
            raise ToolError("There are no working trees here.", "Work in the session's directory.")
        down = args.agent.strip().lower() == _PARENT
        source = context.agent_id if down else self._source(args.agent, context)
        terms = merging.MergeTerms(
            self._check(args, context), context.forbidden, context.withheld, preview=args.preview
        )
        try:
            result = merging.merge(
                self._workspaces,
                source,
                by=context.agent_id,
                lease=context.own_lease,
                down=down,
                terms=terms,
                cancel=context.cancel,
                progress=context.progress,
            )
        except TreeError as error:
            raise ToolError(error.message, error.hint) from error
        if result.status in _LEFT or (result.status is MergeStatus.CHANGED and result.id is None):
            lease = context.own_lease
            assert lease.ordinal is not None  # noqa: S101  a call has one
            self._database.run(steps.finish_calls, lease, {lease.ordinal: _noted(result, lease.note)}, idempotent=True)

    def _source(self, named: str, context: ToolContext) -> Any:
        found = self._database.run(agents.resolve, context.session_id, named, context.agent_id, idempotent=True)
        if found.id == context.agent_id:
            raise ToolError("You cannot merge your own files into themselves.", 'Name a child, or "parent".')
        return found.id

    def _check(self, args: MergeArgs, context: ToolContext) -> CheckCommand | None:
        if not args.check or not args.check.strip():
            return None
        return CheckCommand(
            args.check,
            self._spawner,
            self._walls,
            context.agent_id,
            str(context.session_id),
            approved=context.approved,
            output_limit=min(context.output_limit, 16 * 1024),
            show=context.output,
            withheld=context.withheld,
            project=context.project,
        )


def _noted(result: MergeResult, note: str | None) -> dict[str, Any]:
    """Return the result of a call, with the note about how the model's call was read."""
    said = told(result)
    notes = " ".join(filter(None, (said.get("note"), note)))
    return {**said, **({"note": notes} if notes else {})}
