"""What the calls do that change settings of an agent or of the session, or only ask."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from agentmesh.domain.errors import UsageError
from agentmesh.domain.states import PermissionMode
from agentmesh.domain.text import one_line, printable
from agentmesh.store import agents, person, reader, sessions
from agentmesh.tui.commands.calls import Done
from agentmesh.tui.commands.context import Doing

if TYPE_CHECKING:
    from agentmesh.app import Mesh

_MODES: Mapping[str, str] = MappingProxyType(
    {
        PermissionMode.ASK: "reading is allowed; writing and other commands ask",
        PermissionMode.EDITS: "files in the working directory may be changed without asking",
        PermissionMode.ALL: "nothing asks; what a rule denies stays denied",
        PermissionMode.PLAN: "reading only",
    }
)


def mode(doing: Doing, wanted: str | None = None) -> Done:
    """Show or change what tools may do without asking."""
    if wanted is None:
        now = doing.read(sessions.get, doing.session.id).permission_mode
        return Done(f"Mode {now}: {_MODES[now]}. Others: {', '.join(one for one in _MODES if one != now)}.")
    doing.read(sessions.set_mode, doing.session.id, PermissionMode(wanted))
    return Done(f"Mode {wanted}: {_MODES[wanted]}.")


def model(doing: Doing, wanted: str | None = None) -> Done:
    """Show or change the model of the agent in view."""
    me = doing.read(agents.get, doing.in_view)
    if wanted is None:
        providers = ", ".join(sorted(doing.mesh.models.providers())) or "demo"
        return Done(f"{me.name} has the model {me.model}. Providers: {providers}.")
    name = doing.mesh.models.name(wanted)
    if name == me.model:
        return Done(f"{me.name} has the model {name} already.")
    doing.run(person.set_model, doing.in_view, name)
    return Done()


def system(doing: Doing, text: str | None = None) -> Done:
    """Show or change the system prompt of the agent in view."""
    if text is None:
        me = doing.read(agents.get, doing.in_view)
        return Done(printable(doing.read(agents.settings, me.settings_id).system_prompt))
    what = f"system prompt: {one_line(text, 200)}"
    doing.run(person.set_settings, doing.in_view, system_prompt=text, what=what)
    return Done()


def tools(doing: Doing, *changes: str) -> Done:
    """Show or change the tools of the agent in view."""
    now = doing.read(agents.settings, doing.read(agents.get, doing.in_view).settings_id).tools
    chosen = {_name(tool): tool for tool in now}
    if not changes:
        listed = [f"{name}: {_first_line(tool)}" for name, tool in chosen.items()] or ["It has no tools."]
        return Done("\n".join([*listed, *_servers(doing, chosen)]))
    known = chosen | _all_tools(doing.mesh)
    if any(change.startswith("+mcp__") for change in changes):  # their servers are asked
        known |= {_name(tool): tool for tool in doing.mesh.mcp.definitions(Path(doing.session.workdir))}
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
    doing.run(person.set_settings, doing.in_view, tools=ordered, what=what)
    return Done()


def rename(doing: Doing, title: str) -> Done:
    """Give the session a title."""
    doing.read(person.rename_session, doing.session.id, title)
    return Done()


def new(doing: Doing) -> Done:
    """Begin another session in the same directory, with the same model."""
    model = doing.read(agents.get, doing.session.root_id).model
    provider, _, name = model.partition("/")
    # A provider's name that models' names may begin with themselves is no prefix: OPENAI_BASE_URL moved it.
    is_prefix = provider == "demo" or provider in doing.mesh.settings.provider_prefixes
    session = doing.mesh.start_session(Path(doing.session.workdir), model=model if is_prefix else name)
    return Done("A new session. /sessions leads back.", session=session)


def sql(doing: Doing, query: str) -> Done:
    """Ask the views, as a role that can change nothing."""
    mesh = doing.mesh
    if mesh.settings.reader_url:
        url = mesh.settings.reader_url
    else:
        url = mesh.server.url(role=reader.READER) if mesh.server else reader.reader_url(mesh.database.url)
    return Done(table=reader.query(url, query))


def _name(tool: Mapping[str, Any]) -> str:
    return one_line(str(tool.get("function", {}).get("name", "?")), 60)


def _first_line(tool: Mapping[str, Any]) -> str:
    return one_line(str(tool.get("function", {}).get("description", "")).partition("\n")[0], 100)


def _servers(doing: Doing, tools: Mapping[str, Any]) -> list[str]:
    """Return a line for each MCP server of the session's directory, and one for each that has a problem."""
    workdir = Path(doing.session.workdir)
    lines = []
    for slug, server in doing.mesh.mcp_servers(workdir).servers.items():
        count = sum(name.startswith(f"mcp__{slug}__") for name in tools)
        lines.append(f"MCP server {server.name}: {count or 'none'} of these; +mcp__{slug}__* adds all that it has")
    return ["", *lines, *map(str, doing.mesh.mcp_problems(workdir))] if lines else []


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
