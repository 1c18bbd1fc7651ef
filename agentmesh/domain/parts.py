"""The parts of one tool call that permission rules are compared with: a path, a URL, each command of a command line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from agentmesh.domain.shell import ShellReading
from agentmesh.domain.urls import canonical

GENERAL_PURPOSE = "general-purpose"
"""The type of a sub-agent whose task names no type."""
SEARCHING = frozenset({"glob", "grep"})
"""Tools whose path is a directory; that of grep may be a file."""
READING = SEARCHING | {"read"}
WRITING = frozenset({"write", "edit"})
COMMANDS = frozenset({"bash", "merge"})
"""Tools that run a command line: a merge runs its check."""
_FREE = frozenset(
    {
        "fork",
        "send",
        "wait",
        "kill",
        "interrupt",
        "list_agents",
        "peek",
        "task",
        "report",
        "ask_user",
        "process",
        "todo",
        "todo_write",
        "skill",
    }
)
_BASH = frozenset({"bash"})
_CHECKED = frozenset({"fork", "task"})
"""Tools that make an agent whose report a command may check."""


@dataclass(frozen=True, slots=True)
class CallPart:
    """One thing that a call does, as rules see it."""

    tools: frozenset[str]
    """Names that rules use for it."""
    text: str
    """The text that patterns of rules are compared with."""
    also: tuple[str, ...] = ()
    """Further texts that deny and ask rules are compared with."""
    absolute: str = ""
    """The absolute path of a path inside the working directory, for rules whose patterns are absolute."""
    path: bool = False
    free: bool = False
    """Changes nothing outside the mesh: allowed in every mode unless a rule covers it."""
    plain: bool = False
    """A simple filter in a wholly simple command line: it may run approved beside commands that a rule allows."""
    hazard: bool = False
    """A reading command with an option that makes it do more: only a rule that names the option allows it."""
    exact: bool = False
    """May run programs that its words do not show: only a rule for everything or for exactly these words allows it."""
    opaque: bool = False
    """Not understood: deny rules cannot be compared with it."""
    only_restricts: bool = False
    """Stands for a side of another part: deny and ask rules count, nothing else."""
    why: str = ""
    """Why it is not free."""
    outside: bool = False
    own_tree: bool = False
    """Changes files only in a working tree that is the agent's own."""

    @property
    def edits(self) -> bool:
        """Whether it only edits files that the agent may edit, in its working directory or by a merge into its tree."""
        return self.own_tree or (self.tools == WRITING and not self.outside and not self.only_restricts)


def parts_of(
    tool: str,
    arguments: Mapping[str, Any],
    shell: Callable[[str], ShellReading],
    locate: Callable[[str], str],
    root: str,
    free: Collection[str] = (),
    *,
    own_tree: bool = False,
) -> list[CallPart]:
    """Return the parts of a call.

    ``root`` is the working directory, and ``own_tree`` says that it is the agent's own. ``free`` are further tools that
    change nothing.
    """
    if tool in READING or tool in WRITING:
        return [_file_part(tool, str(arguments.get("path") or "."), locate, root)]
    if tool == "bash":
        return _shell_parts(shell(str(arguments.get("command") or "")), locate, root)
    if tool == "web_fetch":
        url = str(arguments.get("url") or "")
        return [
            CallPart(frozenset({tool}), url, (canonical(url),), free=tool in free, why="it reaches into the network")
        ]
    if tool == "merge":
        return [_merge_part(arguments, own_tree=own_tree), *_check_parts(arguments, shell, locate, root)]
    checks = _check_parts(arguments, shell, locate, root) if tool in _CHECKED else []
    if tool == "task":
        text = _task_type(arguments)
    elif tool == "skill":
        text = str(arguments.get("name") or "").strip().lower()
    else:
        text = json.dumps(dict(arguments), sort_keys=True, default=str, ensure_ascii=False)
    is_free = tool in _FREE or tool in free
    # Beside its check it is no further command: a rule for the command is enough.
    part = CallPart(frozenset({tool}), text, free=is_free, plain=bool(checks), why="no rule allows this tool")
    kind = str(arguments.get("type") or "").strip().lower() if tool == "fork" else ""
    typed = [CallPart(frozenset({"task"}), kind, free=True)] if kind else []  # a fork of a type, as a task of it
    return [part, *typed, *checks]


def absolute_path(root: str, path: str) -> str:
    """Return a path of the working directory as an absolute one; "" if it is already absolute."""
    if not root or path.startswith("/"):
        return ""
    return root if path == "." else f"{root.rstrip('/')}/{path}"


def _file_part(tool: str, given: str, locate: Callable[[str], str], root: str) -> CallPart:
    path = locate(given)
    outside = path.startswith("/")
    if "\0" in path:
        why = "no file can have this path"
    else:
        why = f"{path} is outside the working directory" if outside else f"it changes {path}"
    return CallPart(
        WRITING if tool in WRITING else frozenset({tool, "read"}),
        path,
        _as_named(given, path),
        absolute=absolute_path(root, path),
        path=True,
        free=tool in READING and not outside,
        why=why,
        outside=outside,
    )


def _as_named(given: str, path: str) -> tuple[str, ...]:
    """Return the path as the call names it, if links lead elsewhere: a rule may forbid the name."""
    named = os.path.normpath(given)
    return () if named == path or "\0" in given else (named,)


def _merge_part(arguments: Mapping[str, Any], *, own_tree: bool) -> CallPart:
    agent = str(arguments.get("agent") or "").strip()
    where = "its own working tree" if own_tree else "the session's directory"
    why = f"it changes files of {where}"
    return CallPart(frozenset({"merge"}), agent, free=bool(arguments.get("preview")), why=why, own_tree=own_tree)


def _check_parts(
    arguments: Mapping[str, Any], shell: Callable[[str], ShellReading], locate: Callable[[str], str], root: str
) -> list[CallPart]:
    """Return the parts of the command that checks a merge or a report; it is judged as ``bash`` judges it."""
    command = str(arguments.get("check") or "")
    return _shell_parts(shell(command), locate, root) if command.strip() else []


def _task_type(arguments: Mapping[str, Any]) -> str:
    """Return the type of a task's sub-agent; none if a sub-agent continues, because it was judged when it began."""
    named = str(arguments.get("subagent_type") or "").strip().lower()
    return named or ("" if arguments.get("agent_id") else GENERAL_PURPOSE)


def _shell_parts(reading: ShellReading, locate: Callable[[str], str], root: str) -> list[CallPart]:
    parts: list[CallPart] = []
    for found in reading.parts:
        parts.append(
            CallPart(
                _BASH,
                found.text,
                found.also,
                free=found.read_only,
                plain=found.plain and reading.plain,
                hazard=found.hazard,
                exact=found.exact_only,
                why=found.reason,
            )
        )
        for names, paths in ((frozenset({"read"}), found.reads), (WRITING, found.writes)):
            parts += [_side(names, locate(path), root) for path in paths]
    if reading.problem:
        parts.append(CallPart(_BASH, reading.command, exact=True, opaque=True, why=reading.problem))
    return parts


def _side(names: frozenset[str], path: str, root: str) -> CallPart:
    """Return the part that stands for a file that a command names."""
    return CallPart(names, path, absolute=absolute_path(root, path), path=True, free=True, only_restricts=True)
