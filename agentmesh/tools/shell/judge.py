"""Judge a shell command: its parts, and which of them are known to only read inside the working directory.

The result decides whether a person is asked. A command that nobody approved also runs behind a wall of the kernel. A
part that is not understood never counts as harmless.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from agentmesh.domain.shell import ShellPart, ShellReading
from agentmesh.tools.shell.commands import UNKNOWN, Commands
from agentmesh.tools.shell.conditions import double_bracket_objection, files_of
from agentmesh.tools.shell.git_content import objects_named, shows_unnamed_content
from agentmesh.tools.shell.hidden_commands import joined, other_texts
from agentmesh.tools.shell.parse import Parsed, parse
from agentmesh.tools.shell.paths import STREAMS, Paths
from agentmesh.tools.shell.pieces import Assignment, Other, Piece, Redirect, Simple, Test
from agentmesh.tools.shell.plain import plain_filter, plain_line, plain_redirect
from agentmesh.tools.shell.repository import own_objects
from agentmesh.tools.shell.table import READ_ONLY
from agentmesh.tools.shell.variables import Variables, setting_objection
from agentmesh.tools.shell.words import Word
from agentmesh.tools.shell.wrappers import inner, opaque, runs_unseen, script

_MAX_DEPTH = 4


def read_shell(command: str, workdir: Path, trees: Path | None = None) -> ShellReading:
    """Parse a command and judge its parts; never raises. ``trees`` holds the agents' own trees."""
    return _Reader(Paths(os.path.realpath(workdir), own_objects(workdir, trees))).read(command, 0)


class _Reader:
    """Judges the parts of one command line, one after another."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    def read(self, command: str, depth: int) -> ShellReading:
        """Return the reading of a command line."""
        parsed: Parsed = parse(command)
        variables = Variables(parsed.pieces, self._paths.dashed)
        commands = Commands(self._paths, variables)
        parts: list[ShellPart] = []
        problem = parsed.problem
        for piece in parsed.pieces:
            parts.append(self._part(piece, commands, variables))
            below = script(piece.words) if isinstance(piece, Simple) else None
            if below is not None and depth < _MAX_DEPTH:
                reading = self.read(below, depth + 1)
                parts += reading.parts
                problem = problem or reading.problem
            elif isinstance(piece, Simple) and (below is not None or opaque(piece.words)):
                problem = problem or f"what `{piece.words[0].text}` runs is not known"
        return ShellReading(command, tuple(parts), problem, plain=not problem and plain_line(command))

    def _part(self, piece: Piece, commands: Commands, variables: Variables) -> ShellPart:
        if isinstance(piece, Redirect):
            return self._redirect(piece)
        if isinstance(piece, Assignment):
            return _setting(piece.text, setting_objection(piece))
        if isinstance(piece, Test):
            return _setting(piece.text, self._condition(piece, variables))
        if isinstance(piece, Other):
            return _setting(piece.text, variables.objection(piece.text))
        return self._simple(piece, commands)

    def _simple(self, piece: Simple, commands: Commands) -> ShellPart:
        words = [word.text for word in piece.words]
        text = joined(words)
        runs_on = runs_unseen(words)
        also = [found for found in other_texts(words) if found != text or piece.assignments]
        within = inner(words) if not piece.assignments else None
        judged = piece.words
        if within is not None and not runs_unseen(within):
            # `timeout 9 ls` is as harmless as `ls`; rules see the inner command.
            also.append(text)
            judged = piece.words[len(words) - len(within) :]
            text, runs_on = joined(list(within)), False
        reason = commands.objection(judged, piece.assigned)
        return ShellPart(
            text=f"{piece.assignments} {text}".strip(),
            read_only=not reason,
            reason=f"`{_shown(text)}` {_complaint(reason)}" if reason else "",
            also=tuple(dict.fromkeys(also)),
            exact_only=runs_on or bool(piece.assignments),
            reads=self._reads(judged),
            hazard=bool(reason) and commands.hazard(judged),
            git_content=self._shows_git_content(judged),
            plain=not reason and not piece.assignments and plain_filter(piece.words[0].text, piece.source),
        )

    def _reads(self, words: Sequence[Word]) -> tuple[str, ...]:
        """Return the paths that the words name, or the directories that the command reads if they name none."""
        named = self._paths.named(words[1:])
        if _runs_git(words):
            texts = [word.text for word in words if word.known]
            named = tuple(dict.fromkeys((*named, *objects_named(texts, self._paths.bases))))
        spec = READ_ONLY.get(words[0].text)
        if spec is None or spec.recursive is None or not spec.recursive([word.text for word in words[1:]]):
            return named
        return (*named, *self._paths.bases)

    def _shows_git_content(self, words: Sequence[Word]) -> bool:
        """Return whether git may show content of files that the words do not name."""
        if words[0].text != "git":
            return _runs_git(words)
        masked = ["\0" if word.glob else word.masked for word in words[1:]]
        return shows_unnamed_content(masked, self._is_file)

    def _is_file(self, name: str) -> bool:
        return "\0" not in name and any(os.path.isfile(os.path.join(base, name)) for base in self._paths.bases)

    def _condition(self, piece: Test, variables: Variables) -> str:
        if outside := next((word for word in files_of(piece.words) if not self._fits(word)), None):
            return f"{outside.text} is outside the working directory"
        return double_bracket_objection(piece.words, variables)

    def _fits(self, word: Word) -> bool:
        return self._paths.inside(word) if word.known else self._paths.begins_inside(word)

    def _redirect(self, piece: Redirect) -> ShellPart:
        target = piece.target
        text = f"{piece.operator} {target.text}"
        if target.known and not target.glob and target.text in STREAMS:
            return ShellPart(text, True, plain=plain_redirect(piece.source))
        paths = tuple(os.path.join(base, target.text) for base in self._paths.bases) if target.known else ()
        if piece.operator == "<":
            fixed = not target.glob and self._fits(target)
            return ShellPart(text, fixed, "" if fixed else f"`{_shown(text)}` may read outside", reads=paths)
        return ShellPart(text, False, f"`{_shown(text)}` writes to a file", writes=paths)


def _runs_git(words: Sequence[Word]) -> bool:
    return any(word.text.rsplit("/", 1)[-1] == "git" for word in words)


def _setting(text: str, reason: str) -> ShellPart:
    shown = f"`{_shown(text)}` {_complaint(reason)}" if reason else ""
    return ShellPart(text, not reason, shown, exact_only=True)


def _complaint(reason: str) -> str:
    return f"is {UNKNOWN}" if reason == UNKNOWN else f"may do more than read: {reason}"


def _shown(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"
