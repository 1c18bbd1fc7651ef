"""Shows the feed's messages: rows and live text, problems, and news of agents out of view."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from textual.notifications import SeverityLevel

from agentmesh.tui.session import messages

if TYPE_CHECKING:
    from agentmesh.tui.board.board_screen import BoardScreen
    from agentmesh.tui.screen import MainScreen

STYLES: Mapping[SeverityLevel, str] = MappingProxyType(
    {"information": "$foreground", "warning": "$text-warning", "error": "$text-error"}
)
"""How the last line writes a notice."""


async def show(main: MainScreen, message: messages.FromFeed) -> None:
    """Show a message of the feed on the screen, or on the board that covers it."""
    match message:
        case messages.BoardChanged(board=board):
            main.show_board(board)
        case messages.LinkChanged(sentence=sentence):
            main.show_trouble(sentence)
        case messages.Noticed() if message.agent_id != main.navigation.in_view:
            main.tell(message.text, STYLES[message.severity])
        case messages.Missed():
            main.navigation.missed(message.agent_id, message.name)
            main.composer.missed(message.agent_id)
        case messages.RequestSettled(request=request):
            main.presenter.settled(request)
        case _:
            await _show_conversation(main, message)
            if main.boards.shown:
                _show_on(main.boards.shown, message)


async def _show_conversation(main: MainScreen, message: messages.FromFeed) -> None:
    match message:
        case messages.RowsArrived():
            await main.take_rows(message)
        case messages.OlderRows():
            await main.views.prepend(message.agent_id, message.rows, message.more)
        case messages.TextStreamed():
            main.views.stream(message.agent_id, message.text, anew=message.anew)
        case messages.OutputShown():
            main.views.show_output(message.agent_id, message.key, message.text)


def _show_on(board_screen: BoardScreen, message: messages.FromFeed) -> None:
    match message:
        case messages.DetailsRead():
            board_screen.show_details(message.details, message.ran)
        case messages.EverybodyRead(agents=agents, missing=missing):
            board_screen.show_everybody(agents, missing)
        case messages.LinesStreamed(lines=lines):
            board_screen.show_lines(lines)
