"""One file that defines a type of sub-agent: ours, or one of Claude Code, whose names are translated."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from agentmesh.config import documents, front_matter, rules
from agentmesh.config.agent_types import AgentType
from agentmesh.config.documents import Problem
from agentmesh.config.folders import Folder
from agentmesh.config.forms import BadValue, integer, matching
from agentmesh.config.front_matter import FrontMatter, Value
from agentmesh.domain.permissions import Decision, Rule
from agentmesh.domain.shape import EFFORTS
from agentmesh.domain.text import one_line, printable
from agentmesh.domain.tool_names import MCP_PREFIX

MAX_BYTES: Final = 131_072
"""Size limit, in bytes, of a file that defines a type."""
INHERIT: Final = "inherit"
"""The model's name that means the parent's model."""

_KEYS: Final = (
    "name",
    "description",
    "model",
    "effort",
    "tools",
    "disallowed_tools",
    "permissions",
    "max_steps",
    "hidden",
    "workspace",
    "guide",
    "halt",
    "silent",
)
_MOST_STEPS: Final = 10_000
_DESCRIPTION: Final = 1000
_NAME: Final = matching(r"[a-z0-9][a-z0-9_.-]{0,63}", "should be of a-z, 0-9, '.', '_' and '-', at most 64")

_CLAUDE_KEYS: Final = {
    **{key: key for key in ("name", "description", "model", "tools")},
    "disallowedTools": "disallowed_tools",
    "maxTurns": "max_steps",
    "isolation": "workspace",
}
_CLAUDE_UNUSED: Final = ("permissionMode", "hooks", "mcpServers")
"""Keys there that change what an agent may do, or where, and that have no counterpart here."""
_CLAUDE_MODELS: Final = frozenset({"sonnet", "opus", "haiku"})
_CLAUDE_TOOLS: Final = {
    "Agent": "task",
    "AskUserQuestion": "ask_user",
    "Bash": "bash",
    "Edit": "edit",
    "Glob": "glob",
    "Grep": "grep",
    "MultiEdit": "edit",
    "Read": "read",
    "Skill": "skill",
    "Task": "task",
    "TodoWrite": "todo_write",
    "WebFetch": "web_fetch",
    "Write": "write",
}


class _Drawback(Exception):
    """Like BadValue, but only for a part, which is left out."""


def read(file: Path, folder: Folder, aliases: Mapping[str, str]) -> tuple[AgentType | None, list[Problem]]:
    """Return the type that a file defines, None for a broken one, and the problems to report."""

    def broken(words: str, line: int | None = None) -> tuple[None, list[Problem]]:
        return None, [Problem(str(file), words, line, broken=not folder.claude)]

    try:
        text, left_out = documents.read(file, MAX_BYTES, below=folder.project)
        if left_out:
            return broken(f"is larger than {MAX_BYTES} bytes")
        matter = front_matter.parse(text)
    except FileNotFoundError:
        return broken("is gone, or a link to nothing")
    except documents.Unreadable as error:
        return broken(str(error))
    except front_matter.BadFrontMatter as error:
        return broken(str(error), error.line)
    try:
        reading = _Reading(file, folder, aliases, matter)
        return reading.type(), reading.notes
    except BadValue as error:
        key = error.key[0] if error.key else ""
        return broken(f"{'.'.join(error.key)} {error.complaint}".strip(), matter.lines.get(key))


class _Reading:
    """Builds a type from one file's front matter; ``notes`` collects remarks about parts that were left out."""

    def __init__(self, file: Path, folder: Folder, aliases: Mapping[str, str], matter: FrontMatter) -> None:
        self.notes: list[Problem] = []
        self._file = file
        self._folder = folder
        self._aliases = aliases
        self._matter = matter
        self._values = self._translated() if folder.claude else self._checked()

    def type(self) -> AgentType:
        """Return the type; raise BadValue."""
        if not self._matter.body:
            raise BadValue("has no text below the front matter, which would be the system prompt")
        tools, allowing = self._tools("tools", Decision.ALLOW)
        disallowed, denying = self._tools("disallowed_tools", Decision.DENY)
        return AgentType(
            name=self._name(),
            description=self._description(),
            system_prompt=printable(self._matter.body),
            model=self._model(),
            effort=self._effort(),
            tools=None if tools is None or "*" in tools else tools,
            disallowed_tools=disallowed or (),
            rules=(*allowing, *denying, *self._rules()),
            max_steps=self._max_steps(),
            workspace=self._workspace(),
            guide=self._guide(),
            source=str(self._file),
            trusted=self._folder.project is None and not self._folder.claude,
            hidden=self._is("hidden"),
            halt=self._is("halt"),
            silent=self._is("silent"),
        )

    def _checked(self) -> Mapping[str, Value]:
        for key in self._matter.values:
            if key not in _KEYS:
                meant = _CLAUDE_KEYS.get(key) or next(iter(difflib.get_close_matches(key, _KEYS, n=1)), None)
                raise BadValue(f"is not a known key{f'; did you mean {meant}?' if meant else ''}", (one_line(key, 40),))
        return self._matter.values

    def _translated(self) -> Mapping[str, Value]:
        for key in _CLAUDE_UNUSED:
            if key in self._matter.values:
                self._note(key, f"{key} is ignored: agents here have nothing of that kind")
        return {ours: self._matter.values[key] for key, ours in _CLAUDE_KEYS.items() if key in self._matter.values}

    def _note(self, key: str, words: str) -> None:
        claude = next((theirs for theirs, ours in _CLAUDE_KEYS.items() if ours == key), key)
        line = self._matter.lines.get(key, self._matter.lines.get(claude))
        self.notes.append(Problem(str(self._file), words, line))

    def _text(self, key: str) -> str:
        value = self._values.get(key, "")
        if not isinstance(value, str):
            raise BadValue("should be text", (key,))
        return value.strip()

    def _name(self) -> str:
        text = self._text("name") or self._file.stem
        try:
            return str(_NAME("-".join(text.lower().split())))
        except BadValue as error:
            raise error.below("name") from error

    def _description(self) -> str:
        text = one_line(self._text("description").replace("\\n", " "), _DESCRIPTION)
        if not text:
            raise BadValue("is missing: it tells agents what the type is for", ("description",))
        return text

    def _model(self) -> str | None:
        name = self._text("model")
        meant = self._aliases.get(name)
        if meant is None and (self._folder.claude or name in _CLAUDE_MODELS) and name not in ("", INHERIT):
            shown = one_line(name, 60)
            self._note(
                "model", f"model {shown} is not a model alias, so the parent's is used; [model_aliases] defines some"
            )
            return None
        model = meant if meant is not None else name
        return None if model in ("", INHERIT) else model

    def _effort(self) -> str | None:
        text = self._text("effort").lower()
        if text and text not in EFFORTS:
            raise BadValue(f"should be one of {', '.join(EFFORTS)}", ("effort",))
        return text or None

    def _tools(self, key: str, effect: Decision) -> tuple[tuple[str, ...] | None, list[Rule]]:
        """Return names of tools, and a rule for each tool with a pattern: ``bash(git log *)``."""
        if key not in self._values:
            return None, []
        value = self._values[key]
        if isinstance(value, dict):
            raise BadValue("should be a list of tools", (key,))
        names: list[str] = []
        narrowed: list[Rule] = []
        for entry in _entries(value):
            try:
                rule = self._tool(entry, effect)
            except BadValue as error:
                raise error.below(key) from error
            except _Drawback as drawback:
                self._note(key, str(drawback))
                continue
            if rule.pattern == "*":
                names.append(rule.tool)
            else:
                narrowed.append(rule)
        if effect is Decision.ALLOW:
            narrowed = [rule for rule in narrowed if rule.tool not in names]  # the whole tool is listed too
            names += [rule.tool for rule in narrowed]
        return tuple(dict.fromkeys(names)), narrowed

    def _tool(self, entry: str, effect: Decision) -> Rule:
        """Return a tool as a rule; raise BadValue or _Drawback."""
        if entry == "*":
            return Rule(effect, "*")
        if not self._folder.claude:
            rule = rules.parsed(effect, entry)
            if effect is Decision.ALLOW and rule.tool == "task" and rule.pattern != "*":
                raise BadValue("cannot choose among types: deny the others under permissions, as in task(explore)")
            return rule
        theirs, _, pattern = entry.partition("(")
        ours = _CLAUDE_TOOLS.get(theirs.strip()) or _of_server(theirs.strip())
        if ours is None:
            raise _Drawback(f"the tool {one_line(theirs, 60)} is unknown here, and left out")
        # `Bash(git log:*)` there is `bash(git log *)` here.
        return rules.parsed(effect, f"{ours}({pattern.replace(':*)', ' *)')}" if pattern else ours)

    def _rules(self) -> list[Rule]:
        value = self._values.get("permissions", {})
        if not isinstance(value, dict):
            raise BadValue("should have the keys deny, ask and allow, each with a list of rules", ("permissions",))
        found = []
        for effect, texts in value.items():
            if effect not in tuple(Decision):
                raise BadValue(
                    "is not a known key; there are deny, ask and allow", ("permissions", one_line(effect, 40))
                )
            try:
                found += [rules.parsed(Decision(effect), text) for text in _entries(texts)]
            except BadValue as error:
                raise error.below(effect).below("permissions") from error
        return found

    def _max_steps(self) -> int | None:
        text = self._text("max_steps")
        try:
            return integer(ge=1, le=_MOST_STEPS)(text) if text else None
        except BadValue as error:
            raise error.below("max_steps") from error

    def _workspace(self) -> str | None:
        text = self._text("workspace")
        if self._folder.claude and text:
            if text != "worktree":
                self._note(
                    "workspace", f"isolation {one_line(text, 40)} is ignored: agents here have nothing of that kind"
                )
            return "own" if text == "worktree" else None
        if text not in ("", "own", "shared"):
            raise BadValue("should be own or shared", ("workspace",))
        return text or None

    def _guide(self) -> str | None:
        text = self._text("guide")
        try:
            return str(_NAME(text.lower())) if text else None
        except BadValue as error:
            raise error.below("guide") from error

    def _is(self, key: str) -> bool:
        found = front_matter.switch(self._text(key) or "false")
        if found is None:
            raise BadValue("should be true or false", (key,))
        return found


def _of_server(name: str) -> str | None:
    """Return the name of an MCP server's tool, which is the same here; a server's name alone means all of its tools."""
    if not name.startswith(MCP_PREFIX):
        return None
    return name if "__" in name.removeprefix(MCP_PREFIX) else f"{name}__*"


def _entries(value: str | Iterable[str]) -> list[str]:
    """Return the entries of a list, or of a comma-separated text."""
    texts = [value] if isinstance(value, str) else value
    return [entry for text in texts for entry in rules.split(text) if entry]
