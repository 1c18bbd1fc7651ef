"""The line below the input: the agent that a text with ``@`` goes to, and the files that it names."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual import work
from textual.content import Content

from agentmesh.domain.text import one_line
from agentmesh.tui.widgets.plain import Plain

if TYPE_CHECKING:
    from agentmesh.tui.commands.mentions import NamedFile
    from agentmesh.tui.session.state import AgentFace


class MentionLine(Plain):
    """One line, only there while the input has something to say with ``@``."""

    def __init__(
        self, agent: Callable[[str], AgentFace | None], is_type: Callable[[str], bool] = lambda _name: False
    ) -> None:
        """``agent`` returns the agent of a name; ``is_type`` whether there is an agent type of a name."""
        super().__init__(id="mention-line")
        self.display = False
        self.workdir: Path | None = None
        """Where files are looked for; None if they are on another machine."""
        self._agent, self._is_type = agent, is_type

    def look(self, text: str, *, capturing: bool) -> None:
        """Say what a text means; in a capture it goes to no agent."""
        if "@" not in text and not self.display:
            return
        self._look(text, capturing)

    @work(exclusive=True, group="mentions")
    async def _look(self, text: str, capturing: bool) -> None:
        from agentmesh.tui.commands.mentions import addressed, file_names, look_for  # not before the first frame

        said = addressed(text)
        face = self._agent(said.name) if said and not capturing else None
        kind = said.name if said and face is None and not capturing and self._is_type(said.name) else None
        names = () if text.lstrip().startswith(_NO_FILES) else file_names(text)[1 if face or kind else 0 :]
        files: Sequence[NamedFile] = ()
        if names and self.workdir is not None:
            files = await asyncio.to_thread(look_for, names, self.workdir)
        pieces = [_of_agent(face)] if face else []
        pieces += [Content.assemble("starts a sub-agent of type ", (kind, "bold $text-primary"))] if kind else []
        pieces += [_of_file(file) for file in sorted(files, key=lambda file: file.is_found)]  # a narrow line is cut
        self.display = bool(pieces)
        self.update(Content(" · ").join(pieces))


_NO_FILES = ("!", "/fork @", "/rewind @")
"""Beginnings of input in which ``@`` names no file: a shell command, or a row."""


def _of_agent(face: AgentFace) -> Content:
    if face.is_dead:
        return Content.styled(f"to {face.name}, which is dead", "$text-error")
    return Content.assemble("to ", (face.name, "bold $text-primary"))


def _of_file(file: NamedFile) -> Content:
    what = Content.styled(file.what, "$dim" if file.is_found else "$text-warning")
    return Content.assemble(f"@{one_line(file.name, 60)} ", what)
