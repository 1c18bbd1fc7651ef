"""Completes at the cursor of the input: slash commands and their arguments, agents and files after ``@``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentmesh.config.agent_types import AgentType
    from agentmesh.config.custom_commands import CustomCommand
    from agentmesh.tui.commands.complete import Completion
    from agentmesh.tui.input.files import Files
    from agentmesh.tui.session.state import Board


class Completer:
    """Completes for one screen; ``workdir`` is where the files are."""

    def __init__(self, workdir: Path, list_again: Callable[[], object]) -> None:
        """``list_again`` is called while the first list of files is being made: then there is more to complete."""
        self.workdir = workdir
        self._list_again = list_again

    def complete(
        self,
        text: str,
        cursor: int,
        board: Board | None,
        custom: Callable[[], Mapping[str, CustomCommand]],
        types: Callable[[], Mapping[str, AgentType]] = dict,
    ) -> Sequence[Completion]:
        """Return the completions at the cursor, best first; none before there is a board."""
        if board is None:
            return ()
        from agentmesh.tui.commands.complete import Completion, agents, completions, typed  # after the first frame
        from agentmesh.tui.input.files import mention, written
        from agentmesh.tui.widgets.fuzzy import best

        if asked := mention(text, cursor):
            if not self.files.is_complete:
                self._list_again()
            known = [Completion(f"{written(path)} ", asked.start, path) for path in self.files.matches(asked.fragment)]
            if not text[: asked.start].strip():
                known = best(
                    asked.fragment,
                    [
                        *agents(asked.fragment, asked.start, board),
                        *typed(asked.fragment, asked.start, types()),
                        *known,
                    ],
                    lambda one: one.text[1:].rstrip(),
                )
            return known
        return completions(text, cursor, board, custom() if text.startswith("/") else {}, types)

    @cached_property
    def files(self) -> Files:
        """The files of the session's directory, which is known when this is first asked for."""
        from agentmesh.tui.input.files import Files

        return Files(self.workdir)
