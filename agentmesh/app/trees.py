"""Operations of people and programs on the files of agents: fork with a tree, merge, and take back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agentmesh.domain.errors import NoRepository, TreeError, UsageError
from agentmesh.domain.figures import line_changes, plural
from agentmesh.domain.figures import listed as listed_names
from agentmesh.domain.ids import AgentId
from agentmesh.domain.rows import Session
from agentmesh.domain.shape import SAME, Shape

if TYPE_CHECKING:
    from agentmesh.app.mesh import Mesh
    from agentmesh.git.facts import FileChange
    from agentmesh.store.call import Lease
    from agentmesh.store.travel import Forked
    from agentmesh.tools.check import CheckCommand
    from agentmesh.workspace.results import MergeResult

_NAMED = 6
"""Files that a sentence names; it counts the others."""


def fork(
    mesh: Mesh,
    parent: AgentId,
    name: str,
    prompt: str | None = None,
    *,
    own: bool | None = None,
    lease: Lease | None = None,
    shape: Shape = SAME,
    report: bool = False,
) -> AgentId:
    """Make a child of an agent; with ``own`` it gets a tree of its own, made from the files that its parent has now.

    If ``own`` is None, its type decides, or else the session's default. ``lease`` belongs to an external parent.
    ``shape`` says how the child differs from its parent, and the form of its report; it names the model as people do.
    With ``report`` the prompt comes from its parent, which gets the report. Raise as ``agents.fork`` does,
    and UsageError for an unknown type.
    """
    from agentmesh.store import agents

    shape = _with_form(shape)
    if shape.model is not None and not shape.model.strip():
        raise UsageError("the name of the model is empty", hint="Leave it out for the model of its parent.")
    if shape.type is not None:
        by_parent = prompt is not None and (report or lease is not None)
        shape, own = _typed(mesh, parent, shape, own, reports_to_parent=by_parent)
    elif shape.model is not None:
        shape = shape._replace(model=mesh.models.name(shape.model))
    base = _now(mesh, parent) if own else None  # otherwise the worker that makes the tree looks at the files
    return mesh.database.run(
        agents.fork, parent, name, prompt, lease, workspace=_kind(own), base=base, shape=shape, report=report
    )


def _typed(
    mesh: Mesh, parent: AgentId, shape: Shape, own: bool | None, *, reports_to_parent: bool
) -> tuple[Shape, bool | None]:
    """Return the shape with all that its type says, and whether the fork has a tree of its own."""
    from agentmesh.engine.tool import ToolError
    from agentmesh.store import workspaces
    from agentmesh.tools.typed import typed, workspace_of

    works_in = mesh.database.run(workspaces.of_agent, parent, idempotent=True)
    shared = mesh.database.run(workspaces.of_session, works_in.session_id, idempotent=True)
    project, delegation = Path(str(shared.path)), mesh.delegation()
    if own is None and workspace_of(delegation, shape.type or "", project) == "own":
        own = True
    place: Path | None = project
    if works_in.id != shared.id:
        try:
            place = mesh.workspaces.root_of(works_in).path
        except TreeError:  # it is not here, or not made yet
            place = None
    try:
        where = (project, place, _kind(own))
        return typed(mesh.database, delegation, parent, shape, *where, reports_to_parent=reports_to_parent), own
    except ToolError as error:
        raise UsageError(str(error), hint=error.hint) from error


def _with_form(shape: Shape) -> Shape:
    """Return the shape with the form of the report as it is stored; raise UsageError for a bad schema or check."""
    if shape.schema is None and shape.check is None:
        return shape
    from agentmesh.engine.tool import ToolError
    from agentmesh.tools import report
    from agentmesh.tools.report_check import require_check

    try:
        schema = None if shape.schema is None else report.form(shape.schema)
        return shape._replace(schema=schema, check=require_check(shape.check))
    except ToolError as error:
        raise UsageError(str(error), hint=error.hint) from error


def fork_at(
    mesh: Mesh, parent: AgentId, name: str, at: int, prompt: str | None = None, *, own: bool | None = None
) -> Forked:
    """Make a child that begins at a row of its parent; a tree of its own has the files of that moment."""
    from agentmesh.store import travel

    if own:
        _now(mesh, parent)
    return mesh.database.run(travel.fork_at, parent, name, at, prompt, workspace=_kind(own))


def fork_session(mesh: Mesh, agent: AgentId, at: int, prompt: str | None = None, *, own: bool | None = None) -> Forked:
    """Begin a session with a copy of an agent at a row; a tree of its root's own has the files of that moment."""
    from agentmesh.store import travel

    if own:
        _now(mesh, agent)
    return mesh.database.run(travel.fork_session, agent, at, prompt, workspace=_kind(own))


def _now(mesh: Mesh, agent: AgentId) -> str | None:
    """Return the tree of an agent's files as they are now; None if they are not here. Raise NoRepository."""
    try:
        return mesh.workspaces.base_for_fork(agent)
    except NoRepository:
        raise
    except TreeError:
        return None


def _kind(own: bool | None) -> str | None:
    return None if own is None else "own" if own else "shared"


def merge(
    mesh: Mesh,
    session: Session,
    agent: AgentId,
    *,
    down: bool = False,
    check: str | None = None,
    preview: bool = False,
    agreed: str | None = None,
    progress: Callable[[str], None] = lambda _text: None,
) -> MergeResult:
    """Merge the files of an agent's own tree into their origin for a person, or with ``down`` the other way round.

    ``check`` is a command that must exit with 0 in the merged files. ``agreed`` is the plan of the preview that a
    person has agreed to: if it has changed, the result is only a preview of the new one. ``progress`` is told what goes
    on. Raise as ``merging.merge`` does.
    """
    from agentmesh.workspace import merging

    run = None if check is None else _check(mesh, session, agent, check)
    terms = merging.MergeTerms(run, preview=preview, agreed=agreed)
    return merging.merge(mesh.workspaces, agent, down=down, terms=terms, progress=progress)


def _check(mesh: Mesh, session: Session, agent: AgentId, check: str) -> CheckCommand:
    """Return a person's check. It runs what the agent has written, so it sees no file that the agent must not read."""
    from agentmesh.engine.tool import Rights
    from agentmesh.store import forms
    from agentmesh.tools.check import CheckCommand
    from agentmesh.tools.gate import ToolGate
    from agentmesh.tools.guarded_run import Spawner

    rights = Rights(*mesh.database.run(forms.rights, agent, idempotent=True))
    project = Path(session.workdir)
    withheld = ToolGate(walls=mesh.walls).withheld("bash", rights, project, approved=True)
    return CheckCommand(check, Spawner(), mesh.walls, agent, str(session.id), withheld=withheld, project=project)


def target_of(result: MergeResult, session: Session) -> str:
    """Return the target of a merge for people: the tree of an agent, or the session's directory."""
    return f"the tree of {result.target}" if result.target else shortened(session.workdir)


def shortened(folder: str) -> str:
    """Return a folder with ``~`` for the user's home."""
    path, home = Path(folder), Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) and path != home else folder


def figures(files: Sequence[FileChange]) -> str:
    """Return ``2 files, +12 −4``."""
    lines = line_changes(sum(one.added for one in files), sum(one.removed for one in files))
    return f"{plural(len(files), 'file')}, {lines}"


def listed(paths: Sequence[str], most: int = _NAMED) -> str:
    """Return paths for a sentence: ``a.py, b.py and 3 more``."""
    from agentmesh.domain.text import one_line, visible

    return listed_names([one_line(visible(path), 80) for path in paths], most)
