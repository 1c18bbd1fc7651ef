"""Carries out /search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from agentmesh.domain.errors import Timeout
from agentmesh.domain.figures import plural
from agentmesh.domain.text import one_line
from agentmesh.store import search as searches
from agentmesh.tui.commands.calls import Done
from agentmesh.tui.commands.context import CommandContext

if TYPE_CHECKING:
    from agentmesh.app import Mesh

_MOST = 200
_ALL = "--all"
_Answer = tuple[list[searches.Hit], searches.Reach] | None


def search(ctx: CommandContext, *args: str) -> Done:
    """Find what the session's agents were told, said and did; with ``--all`` in the sessions of all databases."""
    words = args[-1]
    if args[0] == _ALL and len(args) > 1:
        return _everywhere(ctx, words)
    hits = ctx.run_idempotent(searches.search, words, ctx.session.id, None, _MOST)
    if not hits:
        return Done(f"Nothing found for {one_line(words, 60)}. /search --all looks into all sessions.")
    return Done(hits=hits)


def _everywhere(ctx: CommandContext, words: str) -> Done:
    answers, missing = _answers(ctx, words)
    hits = [(hit, name) for name, (found, _) in answers.items() for hit in found]
    hits.sort(key=lambda each: each[0].at, reverse=True)
    hits = hits[:_MOST]
    said = [] if hits else [f"Nothing found for {one_line(words, 60)} in any session."]
    if missing:
        several = "which do not answer" if len(missing) > 1 else "which does not answer"
        said.append(f"Without the database{'s' * (len(missing) > 1)} {', '.join(missing)}, {several}.")
    looked, known = (sum(getattr(one, what) for _, one in answers.values()) for what in ("looked_into", "all_of_them"))
    if looked < known:
        said.append(f"Looked into the newest {plural(looked, 'session')} of {known}.")
    return Done(" ".join(said), hits=[hit for hit, _ in hits], databases={hit.session_id: name for hit, name in hits})


def _answers(
    ctx: CommandContext, words: str
) -> tuple[Mapping[str, tuple[list[searches.Hit], searches.Reach]], list[str]]:
    """Return the hits of each database, and the databases that have not answered in time."""

    def look(mesh: Mesh) -> tuple[list[searches.Hit], searches.Reach]:
        run = mesh.database.run
        return run(searches.search, words, None, None, _MOST, idempotent=True), run(searches.reach, idempotent=True)

    def look_in_time(mesh: Mesh) -> _Answer:
        try:
            return look(mesh)
        except Timeout:
            return None

    if ctx.databases is None:
        return {"": look(ctx.mesh)}, []
    answers = ctx.databases.ask(look_in_time)
    found = {name: answer for name, answer in answers.some().items() if answer is not None}
    return found, [name for name in ctx.databases.names if name not in found]
