"""Presents requests to the person: in a dialog, or in a line while a dialog would take their keys.

A dialog opens by itself if the input is empty, no key was pressed for a second, and no other dialog is open. Until then
a line above the input says which agent asks, and a key opens the dialog. The bell rings for each new request.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from agentmesh.domain.states import PermissionMode
from agentmesh.tui.board.navigation import Navigation
from agentmesh.tui.commands.calls import ANSWER, Call
from agentmesh.tui.commands.messages import CallRequested
from agentmesh.tui.input.keys import Keymap
from agentmesh.tui.input.quiet_input import LOOK, QuietInput
from agentmesh.tui.requests.key_guard import GRACE
from agentmesh.tui.requests.queue import RequestQueue
from agentmesh.tui.requests.replies import Reply
from agentmesh.tui.requests.request_text import banner, settled_text
from agentmesh.tui.widgets.lines import Lines

if TYPE_CHECKING:
    from textual.screen import Screen

    from agentmesh.domain.rows import Request
    from agentmesh.tui.requests.dialog import RequestDialog
    from agentmesh.tui.requests.request_list import RequestList
    from agentmesh.tui.session.state import Board


class RequestPresenter:
    """Presents the requests of one session on one screen; used in the app's loop only."""

    def __init__(
        self,
        screen: Screen[None],
        keymap: Keymap,
        navigation: Navigation,
        quiet: QuietInput,
        *,
        tell: Callable[[str, str], None],
        remember: Callable[[str], None],
        type_on: Callable[[str], None],
    ) -> None:
        """``tell`` says in the last line what happened; ``remember`` keeps a draft in the history of the input.

        ``type_on`` puts words that were typed into a dialog into the input.
        """
        self._screen, self._keymap, self._navigation, self._quiet = screen, keymap, navigation, quiet
        self._tell, self._remember, self._type_on = tell, remember, type_on
        self.banner = Lines(id="request-banner")
        self.requests = RequestQueue()
        self._left_at = float("-inf")
        self.rings = True
        """Whether the terminal's bell rings when an agent asks."""
        self.opens_dialogs = True
        """Whether a dialog opens by itself; otherwise only its key opens one."""
        self.is_held = False
        """Whether dialogs wait: a person is to pick another session first."""
        self.has_files = False
        """Whether the session's files are on this host."""
        self._dialog: RequestDialog | RequestList | None = None
        self._looks = False

    def show(self, board: Board) -> None:
        """Take the open requests: close a dialog whose request is settled, ring for a new request."""
        new = self.requests.show(board.requests)
        if self._dialog and not self._dialog.show_queue(self.requests):
            self.close()
        if new:
            self._ring()
        self.offer()

    def offer(self) -> None:
        """Open a dialog if one is due and the input is at rest; else look again in a moment."""
        waiting = self.requests.held_back if self.opens_dialogs else []
        if waiting and self._dialog is None and not self.is_held and self._quiet.is_at_rest:
            self._open(waiting[0])
        elif waiting and self._dialog is None and not self._looks:
            self._looks = True
            self._screen.set_timer(LOOK, self._look)
        self._show_banner()

    def open(self) -> bool:
        """Open a dialog because a person wants to; return whether anything waits."""
        first = self.requests.first(self._navigation.in_view)
        self.requests.take_up()
        if first is not None and self._dialog is None:
            if len(self.requests.waiting) > 1:
                self._list(first)
            else:
                self._open(first)
            self._show_banner()
        return first is not None

    def settled(self, request: Request) -> None:
        """Tell the outcome of a request, unless it was answered here."""
        if not self.requests.was_answered_here(request.id):
            self._tell(settled_text(request), "$text-warning")

    def answer_failed(self, call: Call) -> None:
        """Take back that a request is answered."""
        for request in call.args[0].split():
            self.requests.answer_failed(UUID(request))
        self._show_banner()

    def close(self) -> None:
        """Close the dialog; keep what was typed in it in the history."""
        if self._dialog is None:
            return
        dialog, self._dialog = self._dialog, None
        if dialog.draft:
            self._remember(dialog.draft)
        dialog.close()

    def _look(self) -> None:
        self._looks = False
        self.offer()

    def _open(self, request: Request) -> None:
        from agentmesh.tui.requests.dialog import RequestDialog
        from agentmesh.tui.requests.proposals import proposal

        board = self._navigation.board
        workdir = Path(board.session.workdir) if board else Path("/")
        place, draft = self.requests.place(request.id), self.requests.draft(request.id)
        shown = proposal(request, workdir if self.has_files else None)
        dialog = RequestDialog(request, shown, place, self._keymap, workdir=workdir, draft=draft, type_on=self._type_on)
        self._push(dialog, request)

    def _list(self, first: Request) -> None:
        """Open the list of all that wait, at this one."""
        from agentmesh.tui.requests.request_list import RequestList

        self._push(RequestList(self.requests.waiting, first, self._keymap, self._type_on), first)

    def _push(self, dialog: RequestDialog | RequestList, request: Request) -> None:
        """Open a dialog; when it is left, do what the person chose."""
        self._dialog = dialog

        def left(reply: Reply | None) -> None:
            self._left_at = time.monotonic()
            if self._dialog is dialog:
                self._dialog = None
            if reply is not None:
                self._take(request, reply)
            self._screen.call_later(self._go_on, request, reply)  # when it has gone

        self._screen.app.push_screen(dialog, left)

    def was_just_left(self) -> bool:
        """Return whether a dialog was left a moment ago: a further press of that key means nothing else yet."""
        return time.monotonic() - self._left_at < GRACE

    def _take(self, request: Request, reply: Reply) -> None:
        if reply.draft:
            self.requests.keep_draft(request.id, reply.draft)
        match reply.action:
            case "answer" | "edits":
                self._answer(reply.requests or (request,), reply)
            case "go":
                self.requests.put_aside()
                self._navigation.go(request.agent_id, request.name)
            case "later":
                self.requests.put_aside()

    def _answer(self, requests: tuple[Request, ...], reply: Reply) -> None:
        """Have requests answered, all with the same words."""
        for one in requests:
            self.requests.answer(one.id)
        ids = " ".join(str(one.id) for one in requests)
        asker = requests[0].agent_id
        self._screen.post_message(CallRequested(Call(ANSWER, (ids, json.dumps(dict(reply.words)))), asker))
        if reply.action == "edits":
            self._screen.post_message(CallRequested(Call("mode", (PermissionMode.EDITS.value,)), asker))

    def _go_on(self, left: Request, reply: Reply | None) -> None:
        """Open what the person chose to see next, or a request that is due."""
        following = None
        if reply and reply.action == "next":
            following = self.requests.after(left.id)
        elif reply and reply.action == "open":
            following = next((one for one in reply.requests if self.requests.waits(one.id)), None)
        if self._dialog is None and self._screen.app.screen is self._screen:
            if following is not None:
                self._open(following)
            elif reply and reply.action == "list" and self.requests.waiting:
                self._list(left)
        self.offer()

    def _show_banner(self) -> None:
        waiting = [] if self._dialog else self.requests.held_back
        key = self._keymap.label("requests.answer")
        if self.banner.is_attached:  # not while the screen is being made
            self.banner.show(lambda width: banner(waiting, width, key))

    def _ring(self) -> None:
        """Ring the terminal's bell, unless the configuration says otherwise."""
        if self.rings:
            self._screen.app.bell()
