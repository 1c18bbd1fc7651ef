"""Carries out commands that change or show settings of an agent or of the session."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentmesh.domain.errors import UnknownAgent, UsageError
from agentmesh.domain.states import PermissionMode
from agentmesh.domain.text import one_line, printable
from agentmesh.store import agents, person, reader, sessions
from agentmesh.tui.commands.calls import Done, ModelList
from agentmesh.tui.commands.catalog import MODES
from agentmesh.tui.commands.context import CommandContext

if TYPE_CHECKING:
    from agentmesh.app import Mesh


def mode(ctx: CommandContext, wanted: str | None = None) -> Done:
    """Show or change what tools may do without asking."""
    if wanted is None:
        now = ctx.run_idempotent(sessions.get, ctx.session.id).permission_mode
        return Done(f"Mode {now}: {MODES[now]}. Others: {', '.join(one for one in MODES if one != now)}.")
    ctx.run_idempotent(sessions.set_mode, ctx.session.id, PermissionMode(wanted))
    return Done(f"Mode {wanted}: {MODES[wanted]}.")


def model(ctx: CommandContext, wanted: str | None = None) -> Done:
    """Show or change the model of the agent in view."""
    me = ctx.run_idempotent(agents.get, ctx.in_view)
    if wanted is None:
        if offered := ctx.mesh.models.offered():
            return Done(models=ModelList(me.model, offered))
        providers = ", ".join(sorted(ctx.mesh.models.providers())) or "demo"
        return Done(f"{me.name} has the model {me.model}. Providers: {providers}.")
    name = ctx.mesh.models.name(wanted)
    if name == me.model:
        return Done(f"{me.name} has the model {name} already.")
    ctx.run(person.set_model, ctx.in_view, name)
    provider, _, model = name.partition("/")
    return Done(f"The server of {provider} does not list {one_line(model, 60)}." if ctx.mesh.models.lacks(name) else "")


def system(ctx: CommandContext, text: str | None = None) -> Done:
    """Show or change the system prompt of the agent in view."""
    if text is None:
        me = ctx.run_idempotent(agents.get, ctx.in_view)
        return Done(printable(ctx.run_idempotent(agents.settings, me.settings_id).system_prompt))
    what = f"system prompt: {one_line(text, 200)}"
    ctx.run(person.set_settings, ctx.in_view, system_prompt=text, what=what)
    return Done()


def tools(ctx: CommandContext, *changes: str) -> Done:
    """Show or change the tools of the agent in view."""
    now = ctx.run_idempotent(agents.settings, ctx.run_idempotent(agents.get, ctx.in_view).settings_id).tools
    chosen = {_name(tool): tool for tool in now}
    if not changes:
        listed = [f"{name}: {_first_line(tool)}" for name, tool in chosen.items()] or ["It has no tools."]
        return Done("\n".join([*listed, *_servers(ctx, chosen)]))
    known = chosen | _all_tools(ctx.mesh)
    if any(change.startswith("+mcp__") for change in changes):  # their servers are asked
        known |= {_name(tool): tool for tool in ctx.mesh.mcp.definitions(Path(ctx.session.workdir))}
    for change in _each(changes, known):
        sign, name = change[0], change[1:]
        if name not in known:
            close = difflib.get_close_matches(name, known, n=3)
            raise UsageError(
                f"there is no tool {one_line(name, 40)}", hint=f"Tools: {', '.join(close or sorted(known))}."
            )
        if sign == "+":
            chosen.setdefault(name, known[name])
        else:
            chosen.pop(name, None)
    if chosen.keys() == {_name(tool) for tool in now}:
        return Done("It has just these tools already.")
    ordered = [chosen[name] for name in sorted(chosen)]
    what = f"tools: {', '.join(sorted(chosen)) or 'none'}"
    ctx.run(person.set_settings, ctx.in_view, tools=ordered, what=what)
    return Done()


def title(ctx: CommandContext, text: str) -> Done:
    """Give the session a title."""
    ctx.run_idempotent(person.rename_session, ctx.session.id, text)
    return Done()


def new(ctx: CommandContext) -> Done:
    """Begin another session in the same directory, with the same model, also after a session that was deleted."""
    try:
        model = ctx.run_idempotent(agents.get, ctx.session.root_id).model
    except UnknownAgent:
        model = ctx.last_model
    if not model:
        return Done("A new session.", session=ctx.mesh.start_session(Path(ctx.session.workdir)))
    provider, _, name = model.partition("/")
    # A provider's name that models' names may begin with themselves is no prefix: OPENAI_BASE_URL moved it.
    is_prefix = provider == "demo" or provider in ctx.mesh.settings.provider_prefixes
    session = ctx.mesh.start_session(Path(ctx.session.workdir), model=model if is_prefix else name)
    return Done("A new session. /sessions leads back.", session=session)


def sql(ctx: CommandContext, query: str) -> Done:
    """Ask the views, as a role that can change nothing."""
    return Done(table=reader.query(ctx.mesh.reader_url(), query))


def _name(tool: Mapping[str, Any]) -> str:
    return one_line(str(tool.get("function", {}).get("name", "?")), 60)


def _first_line(tool: Mapping[str, Any]) -> str:
    return one_line(str(tool.get("function", {}).get("description", "")).partition("\n")[0], 100)


def _servers(ctx: CommandContext, tools: Mapping[str, Any]) -> list[str]:
    """Return a line for each MCP server of the session's directory, and one for each that has a problem."""
    workdir = Path(ctx.session.workdir)
    lines = []
    for slug, server in ctx.mesh.mcp_servers(workdir).servers.items():
        count = sum(name.startswith(f"mcp__{slug}__") for name in tools)
        lines.append(f"MCP server {server.name}: {count or 'none'} of these; +mcp__{slug}__* adds all that it has")
    return ["", *lines, *map(str, ctx.mesh.mcp_problems(workdir))] if lines else []


def _each(changes: Sequence[str], known: Mapping[str, Any]) -> list[str]:
    """Return changes by name, where some are patterns of names."""
    found = []
    for change in changes:
        matching = fnmatch.filter(known, change[1:]) if "*" in change else []
        found += [change[0] + name for name in matching] or [change]
    return found


def _all_tools(mesh: Mesh) -> dict[str, dict[str, Any]]:
    from agentmesh.tools import toolset

    return {_name(tool): tool for tool in toolset.definitions(toolset.builtin(mesh.database))}
