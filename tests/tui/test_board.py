"""The board: all agents at a glance, and what keys do with one or several of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.content import Content
from textual.strip import Strip
from textual.widget import Widget

from agentmesh.domain.attention import Need
from agentmesh.domain.rows import Capability
from agentmesh.domain.states import AgentStatus, Kind
from agentmesh.store import capabilities, steps
from agentmesh.store.board import SESSIONS, Elsewhere, Ran
from agentmesh.store.tx import Database
from agentmesh.tui.board.board_rows import strip
from agentmesh.tui.board.board_screen import BoardScreen
from agentmesh.tui.board.board_table import BoardTable
from agentmesh.tui.commands.calls import SAY, Call
from agentmesh.tui.session.hints import StreamedPart
from agentmesh.tui.session.messages import DetailsRead, EverybodyRead, LinesStreamed
from agentmesh.tui.session.state import AgentFace, Details
from agentmesh.tui.session.watching import Watched, Watching
from agentmesh.tui.widgets import lines
from agentmesh.tui.widgets.confirm import Confirm
from agentmesh.tui.widgets.lines import plain
from tests.fixtures.mesh import MODEL, Mesh
from tests.tui.faces import SESSION, face, id_of, request
from tests.tui.piloting import Puppet, Show, asked, puppet
from tests.tui.posted import mesh_of


def team() -> tuple[AgentFace, ...]:
    """Return one agent of each kind, in an order that is not the board's."""
    return (
        face("gone", status="dead"),
        face("rests"),
        face("waits", status="running", activity="waiting"),
        face("works", status="running", activity="tool: bash"),
        face("has-done", unseen=True),
        face("broke", activity="failed", ended_with=Kind.ERROR),
        face("asking", status="running", activity="needs approval: bash", requests=(request("asking"),)),
    )


def details(said: str = "", since: float = 65.0, left: float | None = 0.61, calls: int = 12) -> Details:
    return Details(calls, since, said, left)


async def opened(show: Show, *faces: AgentFace) -> BoardScreen:
    await show.press("f12")
    await show.board(*(faces or team()))
    await show.press("home")
    screen = show.app.screen  # no dialog opens over it, though an agent asks
    assert isinstance(screen, BoardScreen)
    return screen


def names(show: Show) -> list[str]:
    """Return the agents of the board from the top."""
    table = show.app.screen.query_one(BoardTable)
    return [row.face.name for row in table._rows]


def hand(show: Show) -> Any:
    assert isinstance(show.app, Puppet)
    return show.app.hand


def test_who_needs_a_person_comes_first():
    async def scene(show: Show) -> None:
        await opened(show)
        assert names(show) == ["asking", "broke", "has-done", "works", "waits", "root", "rests", "gone"]
        for word in ("! asks", "▲ failed", "● done", "◐ running", "◐ waiting", "○ idle", "✗ dead"):
            assert word in show.text
        assert "8 agents  1 asks  1 failed  1 done  1 running  1 waiting  2 idle  1 dead" in show.text
        assert "git push" in show.text
        assert "runs bash" in show.text

    puppet(scene, size=(120, 24))


def test_the_help_opens_over_the_board_at_its_keys():
    async def scene(show: Show) -> None:
        board = await opened(show)
        assert show.lines[-1].startswith(" F1 help  letters find")
        await show.press("f1")
        await show.sees("Keys on the board", "Kill the selected agents")
        await show.press("escape")
        assert show.app.screen is board
        await show.press("f1", "f1")
        assert show.app.screen is board

    puppet(scene)


@pytest.mark.parametrize(
    ("status", "activity", "unseen", "asks", "need"),
    [
        ("dead", "", True, True, Need.DEAD),
        ("running", "needs approval: bash", False, True, Need.ASKS),
        ("idle", "holding mail", False, False, Need.ASKS),
        ("idle", "out of budget", True, False, Need.FAILED),
        ("idle", "failed", False, False, Need.FAILED),
        ("idle", "interrupted", False, False, Need.IDLE),
        ("idle", "", True, False, Need.DONE),
        ("running", "queued", True, False, Need.WAITING),
        ("running", "stopping", False, False, Need.RUNNING),
    ],
)
def test_the_need_of_an_agent_follows_from_its_state(status: str, activity: str, unseen: bool, asks: bool, need: Need):
    assert Need.of(AgentStatus(status), activity, unseen=unseen, asks=asks) is need


def test_enter_goes_to_the_agent_and_the_board_reads_no_more():
    async def scene(show: Show) -> None:
        await opened(show)
        await show.press("down", "down", "enter")
        assert not isinstance(show.app.screen, BoardScreen)
        assert show.in_view == "has-done"
        assert hand(show).watched[-1] == Watched()
        assert hand(show).seen == [id_of("has-done")]

    puppet(scene)


def test_what_is_in_view_counts_as_seen_only_when_the_board_does_not_cover_it():
    async def scene(show: Show) -> None:
        await opened(show)
        await show.board(face("root", None, unseen=True), *team())
        assert hand(show).seen == []
        await show.press("escape")
        assert hand(show).seen == [id_of("root")]

    puppet(scene)


def test_letters_find_agents_by_name_state_and_words_and_esc_shows_all_again():
    async def scene(show: Show) -> None:
        await opened(show)
        await show.type("push")
        assert names(show) == ["asking"]
        assert "find: push" in show.text
        await show.press("escape")
        assert len(names(show)) == 8
        await show.type("failed")
        assert names(show) == ["broke"]
        await show.press(*["backspace"] * 6)
        await show.type("nobody")
        assert "No agent fits" in show.text
        await show.press("enter", "space", "tab", "delete", "ctrl+x", "ctrl+s", "up", "pagedown", "end")
        assert asked(show) == []
        await show.press("escape")
        assert isinstance(show.app.screen, BoardScreen)
        await show.press("escape")
        assert not isinstance(show.app.screen, BoardScreen)

    puppet(scene)


def test_foreign_words_are_not_markup():
    async def scene(show: Show) -> None:
        await opened(show)
        await show.post(DetailsRead({id_of("rests"): details("[/x] [bold]so[/] \x1b[31m\u202egnp")}, None))
        assert "[/x] [bold]so[/]" in show.text
        assert "\x1b[31m" not in show.text

    puppet(scene, size=(120, 24))


def test_details_and_live_text_are_shown():
    async def scene(show: Show) -> None:
        await opened(show)
        await show.post(DetailsRead({id_of("works"): details("It counts."), id_of("rests"): details("All good.")}, {}))
        assert "runs bash · It counts." in show.text
        assert "1 min 05 s" in show.text
        assert "61% left" in show.text
        assert "12 calls" in show.text
        await show.post(LinesStreamed({id_of("works"): "Now it adds them up"}))
        assert "runs bash · Now it adds them up" in show.text
        assert "It counts." not in show.text

    puppet(scene, size=(140, 24))


def test_the_board_asks_for_the_agents_in_sight_only():
    async def scene(show: Show) -> None:
        await opened(show, *(face(f"helper-{n:03}") for n in range(300)))
        watched = hand(show).watched[-1]
        assert len(watched.agents) < 24
        await show.press("end")
        assert hand(show).watched[-1].agents[-1] == id_of("helper-299")
        assert "helper-299" in show.text
        await show.press("home")
        assert "root" in show.text

    puppet(scene)


def test_the_highlight_stays_on_its_agent_when_rows_change_places():
    async def scene(show: Show) -> None:
        screen = await opened(show, face("alpha"), face("beta"))
        await show.press("down", "down")
        assert screen._table.highlighted
        assert screen._table.highlighted.face.name == "beta"
        await show.board(face("alpha"), face("beta", activity="failed"))
        assert names(show) == ["beta", "root", "alpha"]
        assert screen._table.highlighted.face.name == "beta"

    puppet(scene)


def test_one_key_acts_on_all_selected():
    async def scene(show: Show) -> None:
        await opened(show)
        await show.type("s")  # finds asking, has-done, works, waits, rests ...
        await show.press("escape")
        await show.press("down", "down", "down", "space", "space")
        assert "+" in show.text
        await show.press("ctrl+x")
        assert [(call.name, agent) for call, agent in hand(show).asked] == [
            ("interrupt", id_of("works")),
            ("interrupt", id_of("waits")),
        ]

    puppet(scene)


def test_a_key_runs_the_failed_turns_of_the_selected_agents_again():
    async def scene(show: Show) -> None:
        broken = [face(name, activity="failed", ended_with=Kind.ERROR) for name in ("first", "second")]
        await opened(show, *broken, face("works", status="running"))
        await show.press("space", "space", "space", "ctrl+r")
        assert [(call.name, agent) for call, agent in hand(show).asked] == [
            ("retry", id_of("first")),
            ("retry", id_of("second")),
        ]
        await show.press("end", "ctrl+r")
        assert "None of these has failed" in show.text

    puppet(scene)


def test_what_a_key_says_stays_while_agents_change():
    async def scene(show: Show) -> None:
        await opened(show, face("rests"))
        await show.press("ctrl+x")
        assert "None of these runs" in show.text
        await show.board(face("rests"), face("another"))
        assert "another" in show.text
        assert "None of these runs" in show.text
        await show.until(lambda: "None of these runs" not in show.text)

    puppet(scene)


def test_a_kill_names_all_and_kills_once_what_lies_below_another():
    async def scene(show: Show) -> None:
        await opened(show, face("boss"), face("hand", "boss"), face("finger", "hand"), face("other"))
        await show.press("down", "space", "space", "delete")
        assert isinstance(show.app.screen, Confirm)
        assert "Kill 2 agents and the 1 below?" in show.text
        await show.press("y")
        assert isinstance(show.app.screen, Confirm), "keys count after half a second only"
        await show.pilot.pause(0.6)
        await show.press("y")
        assert asked(show) == [Call("kill", (str(id_of("boss")),))]

    puppet(scene)


def test_a_kill_of_the_root_and_others_says_that_the_root_stays():
    async def scene(show: Show) -> None:
        await opened(show, face("hand"))
        await show.press("space", "space", "delete")
        assert "Kill 1 agent?" in show.text
        assert "hand. A kill is for good. root stays: a root cannot be killed." in " ".join(show.text.split())

    puppet(scene)


def test_the_root_and_the_dead_are_not_killed():
    async def scene(show: Show) -> None:
        await opened(show, face("gone", status="dead"))
        await show.press("space", "space", "delete")
        assert isinstance(show.app.screen, BoardScreen)
        assert "None of these can be killed" in show.text

    puppet(scene)


def test_one_message_goes_to_all_selected_and_is_kept_when_left():
    async def scene(show: Show) -> None:
        await opened(show, face("alpha"), face("beta"), face("gone", status="dead"))
        await show.press("down", "space", "space", "space", "tab")
        assert "Message to alpha, beta" in show.text
        await show.type("stop [b]now[/b]")
        await show.press("escape")
        assert isinstance(show.app.screen, BoardScreen)
        assert asked(show) == []
        await show.press("tab", "enter")
        sent = "stop [b]now[/b]"
        assert hand(show).asked == [
            (Call(SAY, (sent,), sent), id_of("alpha")),
            (Call(SAY, (sent,), sent), id_of("beta")),
        ]

    puppet(scene)


def test_done_agents_are_marked_as_seen():
    async def scene(show: Show) -> None:
        await opened(show, face("alpha", unseen=True), face("beta", unseen=True), face("gamma"))
        await show.press("space", "space", "ctrl+s")
        assert hand(show).seen == [id_of("alpha"), id_of("beta")]
        await show.press("end", "ctrl+s")
        assert "None of these is done and unseen" in show.text

    puppet(scene)


def test_silent_agents_are_counted_found_by_letters_and_shown_by_a_key():
    async def scene(show: Show) -> None:
        quiet = (face("quiet", silent=True), face("hush", silent=True, status="running"))
        await opened(show, *quiet, face("loud"), face("broke", silent=True, activity="failed"))
        assert names(show) == ["broke", "root", "loud"]
        assert "3 agents  +2 silent" in show.text
        await show.press("h", "u", "s")
        assert names(show) == ["hush"]
        assert "silent" not in show.text.splitlines()[0]
        await show.press("escape", "ctrl+t")
        assert names(show) == ["broke", "hush", "root", "quiet", "loud"]
        assert "+2 silent" not in show.text
        await show.press("ctrl+t")
        assert names(show) == ["broke", "root", "loud"]

    puppet(scene, size=(120, 24))


def test_silent_agents_of_all_sessions_are_folded_away_too():
    async def scene(show: Show) -> None:
        await opened(show)
        await show.press("f12")
        far = face("far", None, session_id=id_of("another session"), silent=True).view
        near = face("near", None, session_id=SESSION).view
        await show.post(EverybodyRead([Elsewhere(near, "here", asks=False), Elsewhere(far, "far away", asks=False)]))
        assert names(show) == ["near"]
        assert "+1 silent" in show.text
        await show.press("ctrl+t")
        assert names(show) == ["near", "far"]

    puppet(scene, size=(120, 24))


def test_the_board_of_all_sessions_says_when_it_is_not_all():
    async def scene(show: Show) -> None:
        await opened(show)
        await show.press("f12")
        roots = [face("root", None, session_id=id_of(f"session {n}")).view for n in range(SESSIONS)]
        everybody = [Elsewhere(root, "far", asks=False) for root in roots]
        await show.post(EverybodyRead(everybody[1:]))
        assert f"all sessions · {SESSIONS - 1} agents  " in show.text
        await show.post(EverybodyRead(everybody))
        assert f"newest {SESSIONS} sessions · {SESSIONS} agents, some of many" in show.text

    puppet(scene, size=(120, 24))


def test_the_agents_of_all_sessions_are_shown_by_a_second_press():
    async def scene(show: Show) -> None:
        await opened(show)
        await show.press("f12")
        assert hand(show).watched[-1].everywhere
        assert "Reading all sessions" in show.text
        far = face("far", None, session_id=id_of("another session"), activity="failed").view
        near = face("near", None, session_id=SESSION).view
        await show.post(EverybodyRead([Elsewhere(near, "here", asks=False), Elsewhere(far, "far away", asks=False)]))
        assert names(show) == ["far", "near"]
        assert "far away" in show.text
        await show.press("ctrl+x")
        assert "another session: go there first" in show.text
        await show.press("down", "enter")
        assert not isinstance(show.app.screen, BoardScreen)

    puppet(scene, size=(120, 24))


def test_f2_leaves_the_board_for_what_agents_ask():
    async def scene(show: Show) -> None:
        await opened(show)
        await show.press("f2")
        assert not isinstance(show.app.screen, BoardScreen)
        assert "asking" in show.text

    puppet(scene)


@pytest.mark.parametrize("size", [(40, 10), (40, 12), (60, 20), (80, 24), (200, 50)])
def test_every_size_shows_names_states_and_keys(size: tuple[int, int]):
    async def scene(show: Show) -> None:
        await opened(show)
        await show.post(DetailsRead({one.id: details("Some words that are long enough.") for one in team()}, {}))
        for text in ("Board", "asking", "asks", "broke", "failed"):
            assert text in show.text
        assert "Enter" in show.lines[-1]
        assert all(len(line) <= size[0] for line in show.lines)

    puppet(scene, size=size)


def test_a_strip_fills_the_cells_in_which_the_agent_worked():
    line = strip("me", [Ran(id_of("me"), 600, 590), Ran(id_of("me"), 30, 0)], 600, 25, name_width=2)
    assert plain(line) == " me █" + "·" * 18 + "█"


def test_clicks_highlight_and_a_second_one_goes_there():
    async def scene(show: Show) -> None:
        await opened(show, face("alpha"), face("beta"))
        await show.pilot.click("#board-table", offset=(5, 2))
        assert isinstance(show.app.screen, BoardScreen)
        await show.pilot.click("#board-table", offset=(5, 20))  # outside of the rows
        await show.pilot.click("#board-table", offset=(5, 2))
        assert show.in_view == "beta"

    puppet(scene)


def test_one_line_is_highlighted_wherever_the_highlight_goes():
    async def scene(show: Show) -> None:
        await opened(show, *(face(f"agent-{n:02}") for n in range(40)))
        table = show.app.screen.query_one(BoardTable)
        await show.pilot.click("#board-table", offset=(5, 4))
        for key in ("down", "down", "up", "pagedown", "up", "end", "up", "home", "down", "space"):
            await show.press(key)
            assert table.highlighted
            marked = [line for line in show.lines if "▌" in line]
            assert len(marked) == 1, key
            assert table.highlighted.face.name in marked[0], key

    puppet(scene)


def test_a_move_draws_no_line_that_it_leaves_as_it_was(monkeypatch: pytest.MonkeyPatch):
    drawn: list[int] = []

    def draw(widget: Widget, content: Content, y: int) -> Strip:
        drawn.append(y)
        return lines.drawn(widget, content, y)

    monkeypatch.setattr("agentmesh.tui.board.board_table.drawn", draw)

    async def scene(show: Show) -> None:
        await opened(show, *(face(f"agent-{n:02}") for n in range(40)))
        await show.press("down")
        drawn.clear()
        await show.press("down")
        assert set(drawn) in ({2}, {1, 2})

    puppet(scene)


def test_lines_of_the_board_can_be_marked():
    async def scene(show: Show) -> None:
        await opened(show, face("alpha"), face("beta"))
        await show.pilot.mouse_down("#board-table", offset=(0, 1))
        await show.pilot.hover("#board-table", offset=(60, 2))
        await show.pilot.mouse_up("#board-table", offset=(60, 2))
        selected = show.app.screen.get_selected_text() or ""
        assert ("alpha" in selected, "beta" in selected) == (True, True)

    puppet(scene)


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (100, 30), (200, 50)])
def test_nothing_is_cut_within_a_word_and_the_edge_stays_free(size: tuple[int, int]):
    async def scene(show: Show) -> None:
        await opened(show, *(face(f"agent-{n}", activity="failed", unread=36, tokens=12_000) for n in range(40)))
        known = {id_of(f"agent-{n}"): details("Words. " * 30) for n in range(40)}
        await show.post(DetailsRead(known, {}))
        assert "…" not in show.lines[0] + show.lines[-1]
        assert show.lines[0].split()[-1] in ("agents", "failed", "idle")
        assert show.lines[-1].split()[-1] in (
            "find",
            "go",
            "back",
            "answer",
            "sessions",
            "select",
            "write",
            "seen",
            "agents",
            "kill",
        )
        assert all(len(line) < size[0] for line in show.lines[1:-1])

    puppet(scene, size=size)


def test_a_board_that_opens_in_the_middle_of_an_answer_shows_its_last_line():
    posted: list[LinesStreamed] = []
    agent = id_of("works")
    watching = Watching(None, posted.append)  # type: ignore[arg-type]
    watching.watch(Watched((agent,)))
    watching.stream({agent: [StreamedPart(1, 40, "the middle\nof an"), StreamedPart(1, 56, " answer")]})
    watching.stream({agent: [StreamedPart(1, 63, "\nand its end")]})
    assert [one.lines for one in posted] == [{agent: "of an answer"}, {agent: "and its end"}]


def test_an_open_board_shows_a_window_that_a_worker_learns_of(mesh: Mesh, db: Database, tmp_path: Path):
    usage = {"input_tokens": 1000, "output_tokens": 24, "model": "openai/unheard-of"}
    mesh.run(steps.finish_step, mesh.begin(mesh.root), {"text": "done"}, [], usage)
    mesh.conn.execute("update agentmesh.agents set model = 'openai/unheard-of' where id = %s", [mesh.root])
    posted: list[DetailsRead] = []
    watching = Watching(mesh_of(db, tmp_path, {"OPENAI_API_KEY": "x"}), posted.append)  # type: ignore[arg-type]
    watching.watch(Watched((mesh.root,)))
    watching.read(is_tick=True)
    found = Capability("openai", "https://api.openai.com/v1", "unheard-of", context_window=4096)
    mesh.run(capabilities.learn, found, "a worker")
    watching.read(is_tick=True)
    assert [one.details[mesh.root].context_left for one in posted] == [None, 0.75]


def test_an_open_board_looks_up_a_window_once_until_workers_learn_something(
    mesh: Mesh, db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A look-up may ask a model server that is down, and the feed waits for it."""
    ours, asked = mesh_of(db, tmp_path), []
    monkeypatch.setattr(ours.models, "context_window", lambda model, learned: asked.append((model, list(learned))))
    watching = Watching(ours, lambda _read: None)
    watching.watch(Watched((mesh.root,)))
    for _ in range(2):
        watching.read(is_tick=True)
    found = Capability("far", "http://far/v1", "m", context_window=4096)
    mesh.run(capabilities.learn, found, "a worker")
    for _ in range(2):
        watching.read(is_tick=True)
    assert asked == [(MODEL, []), (MODEL, [found])]
