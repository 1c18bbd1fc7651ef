"""Make the message of a custom command: run its commands and read its files, under the permissions of an agent.

A template may be a project's, so nothing in it is trusted. Each command is judged as if the agent called `bash`, each
file as if it called `read`, and both run by these tools, with the same walls and limits. All are judged before the
first one runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentmesh.config.rules import rule_text
from agentmesh.config.templates import PieceKind, TemplatePiece
from agentmesh.domain.cancel import Cancel
from agentmesh.domain.errors import UsageError
from agentmesh.domain.images import SUFFIXES
from agentmesh.domain.permissions import Decision, Rule, Verdict, refusal
from agentmesh.domain.rows import Allowance
from agentmesh.domain.text import fence, one_line, visible
from agentmesh.engine.tool import Rights, ToolContext, ToolError
from agentmesh.store import agents, requests, sessions, workspaces
from agentmesh.tools.bash import Bash, BashArgs
from agentmesh.tools.gate import ToolGate
from agentmesh.tools.guarded_run import Spawner
from agentmesh.tools.read import Read, ReadArgs

if TYPE_CHECKING:
    from agentmesh.app.mesh import Mesh
    from agentmesh.config.custom_commands import CustomCommand
    from agentmesh.domain.ids import AgentId

_MOST: Final = 20
"""Commands and files of one message."""
_TOOLS: Final = {PieceKind.COMMAND: "bash", PieceKind.FILE: "read"}
_SHOWN: Final = 200


class MessageText(NamedTuple):
    """The text of a message."""

    text: str
    words: str
    """The same without what commands print and files hold: only here a name after ``@`` is meant as an image."""
    missing: Sequence[str] = ()
    """Names after ``@`` that are no files of text: the message has only the names."""


@dataclass(frozen=True, slots=True)
class _Action:
    """A command or a file of a template, as it was judged."""

    piece: TemplatePiece
    verdict: Verdict

    @property
    def tool(self) -> str:
        return _TOOLS[self.piece.kind]

    @property
    def shown(self) -> str:
        what = self.piece.text if self.piece.kind is PieceKind.COMMAND else self.piece.path
        return f"{self.tool} {one_line(visible(what), _SHOWN)}"


class CustomMessage:
    """One message to be made of a custom command, for one agent."""

    def __init__(
        self, mesh: Mesh, agent: AgentId, command: CustomCommand, arguments: str, *, is_here: bool = True
    ) -> None:
        """Judge what the command would run and show. Raise UsageError if a part of it is denied or cannot be judged.

        Unless the session's files are here, names of files stay words, and commands are refused.
        """
        self._mesh, self._command = mesh, command
        self._text = command.expand(arguments)
        self._pieces: Sequence[TemplatePiece] = ()
        self._actions: Mapping[int, _Action] = {}
        if not command.has_actions:
            return
        self._pieces = command.pieces(arguments)
        if not is_here:
            if any(one.kind is PieceKind.COMMAND for one in self._pieces):
                hint = "Open the session there."
                raise UsageError(f"/{command.name} runs commands where the session's files are: not here.", hint=hint)
            self._pieces = ()
            return
        self._agent = mesh.database.run(agents.get, agent, idempotent=True)
        self._root = mesh.workspaces.root_of(mesh.database.run(workspaces.of_agent, agent, idempotent=True))
        self._rights = self._read_rights()
        self._gate = ToolGate(walls=mesh.walls)
        named = [n for n, one in enumerate(self._pieces) if one.kind is PieceKind.COMMAND or self._is_there(one)]
        if len(named) > _MOST:
            raise UsageError(
                f"/{command.name} has {len(named)} commands and files, and {_MOST} are the most.",
                hint="Let a script print what belongs together.",
            )
        self._actions = {n: self._judged(self._pieces[n]) for n in named}

    @property
    def asks(self) -> Sequence[str]:
        """The commands and files that a person must agree to first, each with the reason."""
        asking = (one for one in self._actions.values() if one.verdict.decision is Decision.ASK)
        return [f"{one.shown}: {one.verdict.reason}" for one in asking]

    @property
    def rules(self) -> Sequence[str]:
        """The rules that would allow it without asking, as people write them."""
        found: list[Rule] = [rule for one in self._actions.values() for rule in one.verdict.always]
        return [rule_text(rule) for rule in dict.fromkeys(found)]

    @property
    def digest(self) -> str:
        """A hash of all that would run: a yes holds for it only, so a file that changes later needs another yes."""
        what = [[one.tool, one.piece.text, one.piece.path] for one in self._actions.values()]
        return hashlib.sha256(json.dumps([str(self._command.source), what]).encode()).hexdigest()[:16]

    def run(self, *, agreed: bool = False, cancel: Cancel | None = None) -> MessageText:
        """Run the commands in their order, read the files, and return the message.

        ``agreed``: a person has agreed to what asks. Raise UsageError if something that asks was not agreed to, or if a
        command or a file fails: then nothing should be sent.
        """
        if self.asks and not agreed:
            raise UsageError(f"/{self._command.name} needs permission: {self.asks[0]}.")
        missing = [one.path for one in self._pieces if one.path and not self._is_there(one)]
        if not self._actions:
            return MessageText(self._text, self._text, missing)
        said: list[str] = []
        files: list[str] = []
        for n, piece in enumerate(self._pieces):
            action = self._actions.get(n)
            if action is None or piece.kind is PieceKind.FILE:
                said.append(piece.text)
            if action is not None and piece.kind is PieceKind.COMMAND:
                said.append(self._output(action, cancel or Cancel(), said))
            elif action is not None and not piece.path.lower().endswith(SUFFIXES):  # an image is attached
                files.append(self._content(action, cancel or Cancel()))
        text = "\n\n".join(["".join(said).strip(), *dict.fromkeys(files)])
        words = "".join(one.text for one in self._pieces if one.kind is not PieceKind.COMMAND)
        return MessageText(text, words, missing)

    def _read_rights(self) -> Rights:
        database, session = self._mesh.database, self._agent.session_id
        mode = database.run(sessions.get, session, idempotent=True).permission_mode
        allowed = database.run(requests.rules, session, idempotent=True)
        return Rights(self._agent.permissions, Allowance(mode, allowed, attended=True))

    def _judged(self, piece: TemplatePiece) -> _Action:
        is_command = piece.kind is PieceKind.COMMAND
        given = {"command": piece.text} if is_command else {"path": piece.path}
        tool, own = _TOOLS[piece.kind], self._root.own
        if own and (misplaced := self._gate.misplaced(tool, given, own)):
            raise UsageError(f"/{self._command.name}: {misplaced}", hint=misplaced.hint)
        verdict = self._gate.judge(tool, given, self._rights, self._root.path, self._project)
        action = _Action(piece, verdict)
        if verdict.decision is Decision.DENY:
            words = refusal(verdict, action.shown).message
            raise UsageError(f"/{self._command.name}: {words}", hint="`agentmesh doctor` shows the rules.")
        return action

    @property
    def _project(self) -> Path:
        return self._root.own.project if self._root.own else self._root.path

    def _is_there(self, piece: TemplatePiece) -> bool:
        """Whether a piece names a file that is there; otherwise its name stays words."""
        try:
            return piece.kind is PieceKind.FILE and (self._root.path / piece.path).is_file()
        except (OSError, ValueError):
            return False

    def _context(self, action: _Action, cancel: Cancel) -> ToolContext:
        verdict = action.verdict
        agreed = verdict.decision is Decision.ASK
        approved = verdict.approved or agreed
        # As in the engine: read shows a file that a rule asks about only after a person's yes.
        waives = approved if action.piece.kind is PieceKind.COMMAND else agreed
        return ToolContext(
            agent_id=self._agent.id,
            session_id=self._agent.session_id,
            workdir=self._root.path,
            cancel=cancel,
            own=self._root.own,
            outside=verdict.outside,
            approved=approved,
            judged=verdict.place,
            withheld=self._gate.withheld(action.tool, self._rights, self._project, approved=waives),
        )

    def _output(self, action: _Action, cancel: Cancel, before: Sequence[str]) -> str:
        """Return the output of a command in a fence, because foreign text must not pass for the person's words."""
        bash = Bash(Spawner(self._mesh.walls.home), self._mesh.walls)
        args, context = BashArgs(command=action.piece.text), self._context(action, cancel)
        found = self._tried(action, lambda: bash.run(args, context))
        if found.get("timed_out") or found.get("interrupted"):
            how = "took too long" if found.get("timed_out") else "was interrupted"
            raise UsageError(f"/{self._command.name}: {action.shown} {how}; nothing was sent.")
        code, output = found["exit_code"], str(found["output"]).rstrip("\n")
        ended = f" (exit code {code})" if code else ""
        if "\n" not in output and len(output) <= _SHOWN:
            return f"{_inline(output or 'no output')}{ended}"
        is_inside = bool(before) and not before[-1].endswith("\n")
        return f"{'' if not is_inside else chr(10)}{_fenced(output)}{ended}"

    def _content(self, action: _Action, cancel: Cancel) -> str:
        """Return a file with its name, fenced."""
        path = action.piece.path
        found = self._tried(action, lambda: Read().run(ReadArgs(path=path), self._context(action, cancel)))
        note = f" ({found['note']})" if found.get("note") else ""
        return f"{one_line(visible(path), _SHOWN)}{note}:\n\n{_fenced(str(found['content']))}"

    def _tried(self, action: _Action, run: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        try:
            return run()
        except ToolError as error:
            raise UsageError(f"/{self._command.name}: {action.shown}: {error}", hint=error.hint) from error
        except OSError as error:
            raise UsageError(f"/{self._command.name}: {action.shown}: {error.strerror or error}") from error


def _fenced(text: str) -> str:
    """Return a text between backticks that it cannot close early."""
    ticks = fence(text)
    return f"{ticks}\n{text}\n{ticks}"


def _inline(text: str) -> str:
    ticks = fence(text, least=1)
    gap = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{gap}{text}{gap}{ticks}"
