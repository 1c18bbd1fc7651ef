"""Shows the outcome of a call: a sentence in the last line, a page, or a list to choose from."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from agentmesh.tui.commands.calls import SAY, Call, Done, Failed, Question, Review
from agentmesh.tui.commands.messages import CallRequested

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agentmesh.domain.ids import AgentId, SessionId
    from agentmesh.store.search import Hit
    from agentmesh.store.travel import Point
    from agentmesh.tui.screen import MainScreen

_LINE = 240
"""Characters that the last line may say."""


def show_failure(screen: MainScreen, call: Call, agent_id: AgentId, failed: Failed) -> None:
    """Say why a call was refused, and give back what was typed for it."""
    screen.say(f"✗ {failed.text.rstrip('.')}. {failed.hint}".rstrip(), "$text-error")
    screen.answered(call, agent_id, failed=True, goto=None)
    if failed.typed:
        screen.finished_calls.give_back(failed.typed, agent_id)


def show(screen: MainScreen, call: Call, agent_id: AgentId, done: Done) -> None:
    """Show the outcome of a call. Pages are imported when they open, and wait until the input is at rest."""
    asked_at = screen.pending_calls.since(call, agent_id)
    if done.text and not _is_long(done.text):
        screen.say(done.text, "$foreground", screen.interrupt_key.offer() if call == Call("interrupt") else None)
    if call.typed and done == Done():
        _show_newest(screen, agent_id, asked_at)  # new rows are the outcome, and the person may be far above them
    if page := _page(screen, call, agent_id, done):
        screen.quiet.open(page, f"/{call.name}", asked_at)


def _show_newest(screen: MainScreen, agent_id: AgentId, asked_at: float | None) -> None:
    """Scroll down in the conversation that a call was for, if it is in view and was not scrolled since."""
    shown = screen.views.current
    if shown and agent_id == screen.navigation.in_view and (asked_at is None or shown.scrolled_at <= asked_at):
        shown.page("bottom")


def _page(screen: MainScreen, call: Call, agent_id: AgentId, done: Done) -> Callable[[], object] | None:
    """Return a function that opens the page or list of an outcome; None if it has none."""
    if done.table:
        from agentmesh.tui.board.table import TablePage

        return partial(screen.app.push_screen, TablePage(" ".join(call.args) or f"/{call.name}", done.table))
    if done.timeline:
        from agentmesh.tui.board.timeline import TimelinePage

        return partial(screen.app.push_screen, TimelinePage(done.timeline))
    if done.hits:
        from agentmesh.tui.board.row_choosers import hit_chooser

        go = partial(_go_to_hit, screen, done.databases or {})

        return partial(screen.app.push_screen, hit_chooser(done.hits, done.databases), go)
    if done.models:
        from agentmesh.tui.board.model_chooser import model_chooser

        return partial(screen.app.push_screen, model_chooser(done.models), partial(_use_model, screen, agent_id))
    if done.review:
        return partial(_review, screen, done.review)
    if done.points:
        return partial(_pick_point, screen, done.points, agent_id, call)
    if done.question:
        return partial(_ask, screen, done.question, call, agent_id)
    if _is_long(done.text):
        from agentmesh.tui.widgets.page import Page

        return partial(screen.app.push_screen, Page(f"/{call.name}", done.text))
    return None


def _use_model(screen: MainScreen, agent_id: AgentId, name: str | None) -> None:
    if name is not None:
        screen.post_message(CallRequested(Call("model", (name,)), agent_id))


def _go_to_hit(screen: MainScreen, databases: Mapping[SessionId, str], hit: Hit | None) -> None:
    """Bring a hit of a search into view, at its row; if need be in its own session."""
    board = screen.navigation.board
    if hit is None or board is None:
        return
    if hit.session_id != board.session.id:
        from agentmesh.tui.board.board_screen import BoardScreen

        database = databases.get(hit.session_id, "")
        screen.app.post_message(BoardScreen.Went(hit.session_id, hit.agent_id, hit.name, database, hit.seq))
        return
    if hit.seq is not None and (board.get(hit.agent_id) or not board.is_whole):
        screen.views.seek(hit.agent_id, hit.seq)
    screen.navigation.go(hit.agent_id, hit.name)


def _review(screen: MainScreen, review: Review) -> None:
    """Show changes; notes on them go to their agent as one message."""
    from agentmesh.tui.review.notes import Notes
    from agentmesh.tui.review.page import ReviewPage

    if screen.notes is None:
        screen.notes = Notes()

    def send(text: str) -> None:
        screen.app.post_message(CallRequested(Call(SAY, (text,), text), review.agent.id))

    screen.app.push_screen(ReviewPage(review, screen.notes, send))


def _ask(screen: MainScreen, question: Question, call: Call, agent_id: AgentId) -> None:
    """Ask before something is done, and go on after a yes."""
    from agentmesh.tui.widgets.confirm import Confirm

    def answered(yes: bool | None) -> None:
        if yes:
            again = Call(question.command, question.args, call.typed)
            screen.app.post_message(CallRequested(again, agent_id))
        else:
            screen.say(question.refused)

    screen.app.push_screen(Confirm(question.text, question.detail), answered)


def _pick_point(screen: MainScreen, points: Sequence[Point], agent_id: AgentId, call: Call) -> None:
    """Let a person pick where a fork begins, or what to rewind to, and do that."""
    from agentmesh.tui.board.row_choosers import point_chooser

    def picked(row: int | None) -> None:
        if row is not None:
            flags = [one for one in call.args if one != "@"]
            args = (*flags, f"@{row}")
            typed = " ".join([f"/{call.name}", *args])
            screen.app.post_message(CallRequested(Call(call.name, args, typed), agent_id))

    title = "Rewind to where?" if call.name == "rewind" else "Fork from where?"
    screen.app.push_screen(point_chooser(points, title), picked)


def _is_long(text: str) -> bool:
    """Whether a text needs a page of its own: the last line has no room for it."""
    return "\n" in text or len(text) > _LINE
