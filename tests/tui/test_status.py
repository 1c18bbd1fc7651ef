from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from rich.cells import cell_len

from agentmesh.domain.figures import count, listed, money
from agentmesh.tui.board.neighbours_line import neighbours_line
from agentmesh.tui.board.status import wait_lines
from agentmesh.tui.commands.pending import RunningShell
from agentmesh.tui.session.surroundings import Surroundings
from agentmesh.tui.widgets.formats import duration
from agentmesh.tui.widgets.lines import plain
from tests.tui.faces import asking, board, face, id_of, task, waiting
from tests.tui.with_defaults import spinner, status_line, status_lines

ROOT = id_of("root")
MANY = 100


def fan_in(**more):
    return board(
        face(
            "root",
            None,
            "running",
            wait=waiting("file-reader", "code-analyzer", "test-runner", "linter", received=("code-analyzer",)),
        ),
        face("file-reader", status="running", tool_calls=22, tokens=13_200, **more),
        face("code-analyzer", status="running", tool_calls=13, tokens=11_000),
        face("test-runner", tool_calls=9, tokens=14_000),
        face("linter", status="dead", tool_calls=2, tokens=1_100),
    )


def test_the_status_line_says_whether_there_is_a_wall():
    assert "no wall" in plain(status_line(board(), ROOT, 80, around=Surroundings(walled=False)))
    assert "no wall" in plain(status_line(board(), ROOT, 40, around=Surroundings(walled=False))), "also at 40 columns"
    assert "wall on" in plain(status_line(board(), ROOT, 80, around=Surroundings(walled=True)))
    assert "wall" not in plain(status_line(board(), ROOT, 80)), "nothing before it is known"


def test_the_status_layer_is_as_in_the_contract():
    assert [plain(line) for line in wait_lines(fan_in(), ROOT, 80, MANY)] == [
        "  file-reader      ◐ running    22 calls  13k tokens",
        "  code-analyzer    ✓ received   13 calls  11k tokens",
        "  test-runner      ○ idle        9 calls  14k tokens",
        "  linter           ✗ dead        2 calls   1k tokens",
    ]


def test_marks_have_roles_of_their_own():
    roles = [
        [piece.role for piece in line if piece.role not in ("", "name")]
        for line in wait_lines(fan_in(), ROOT, 80, MANY)
    ]
    assert roles == [["running"], ["received"], ["idle"], ["dead"]]


def test_what_an_agent_does_comes_last_and_moves_no_column():
    line = plain(wait_lines(fan_in(activity="tool: bash"), ROOT, 80, MANY)[0])
    assert line == "  file-reader      ◐ running    22 calls  13k tokens  tool: bash"
    assert plain(wait_lines(fan_in(activity="tool: bash"), ROOT, 56, MANY)[0]).endswith("tokens")


def test_17_20_why_a_model_is_waited_for_is_in_every_line():
    why = "openai (model any) at https://models.example.com/v1 cannot be reached: Connection refused"
    seen = fan_in(activity=f"paused 4 s (gives up in 590 s): {why}")
    assert plain(wait_lines(seen, ROOT, 100, MANY)[0]).endswith(": Connection refused")
    assert "Connection refused · " in spinner(seen, id_of("file-reader"), 0.0, "Esc")


@pytest.mark.parametrize("width", [60, 80, 100])
def test_no_line_is_wider_than_the_screen(width):
    long = "a-name-of-thirty-two-characters-"
    seen = board(
        face("root", None, "running", wait=waiting(long, "b")),
        face(long, status="running", activity="x" * 80, tool_calls=1234, tokens=12_345_678),
        face("b"),
    )
    lines = [plain(line) for line in wait_lines(seen, ROOT, width, MANY)]
    assert max(map(cell_len, lines)) <= width
    assert lines[0].index("calls") == lines[1].index("calls")


def test_there_is_no_status_layer_outside_a_fan_in_wait():
    assert wait_lines(board(), ROOT, 80, MANY) == []
    assert wait_lines(board(face("root", None, "running", wait=waiting())), ROOT, 80, MANY) == []
    assert wait_lines(board(), id_of("nobody"), 80, MANY) == []


def test_of_too_many_awaited_agents_the_most_important_are_shown_and_the_others_counted():
    faces = [face(f"q{n}", status="running", activity="queued") for n in range(168)]
    faces += [face(f"r{n}", status="running", activity="thinking") for n in range(15)]
    faces += [face("failed", status="dead"), asking("asks")]
    wait = waiting(*(one.name for one in faces), received=("q0",))
    seen = board(face("root", None, "running", wait=wait), *faces)
    lines = [plain(line) for line in wait_lines(seen, ROOT, 80, 5)]
    assert [line.split()[0] for line in lines] == ["asks", "failed", "r0", "r1", "…"]
    assert lines[-1] == "  … 181 more: 13 running, 167 queued, 1 received"
    assert len(wait_lines(seen, ROOT, 80, len(faces))) == len(faces)
    assert max(cell_len(plain(line)) for line in wait_lines(seen, ROOT, 40, 5)) <= 40


def test_of_too_many_tasks_the_failed_come_first():
    children = [face(f"t{n}", status="running", activity="thinking") for n in range(9)]
    tasks = [task(f"t{n}", f"1.{n}", status="failed" if n == 7 else "completed" if n == 0 else None) for n in range(9)]
    seen = board(face("root", None, "running"), *children, tasks=tasks)
    lines = [plain(line) for line in wait_lines(seen, ROOT, 80, 3)]
    assert [line.split()[0] for line in lines] == ["t7", "t1", "…"]
    assert lines[-1] == "  … 7 more: 6 running, 1 completed"


def test_foreign_words_in_an_activity_are_harmless():
    line = plain(wait_lines(fan_in(activity="tool:\x1b[2J\nbash"), ROOT, 100, MANY)[0])
    assert "\x1b" not in line
    assert "\n" not in line


def test_the_spinner_says_what_for_how_long_and_the_key():
    seen = board(face("root", None, "running", activity="tool: bash", running_for=5.0), read_at=100.0)
    assert spinner(seen, ROOT, 107.2, "Esc") == "tool: bash · 12 s · Esc interrupts"
    assert spinner(seen, ROOT, 107.2, "") == "tool: bash · 12 s"
    assert spinner(board(), ROOT, 0.0, "Esc") == ""


def test_a_pause_counts_down_to_the_next_try():
    why = "paused 20 s (gives up in 590 s): rate-limited by sim (429)"
    seen = board(face("root", None, "running", activity=why))
    assert spinner(seen, ROOT, 6.5, "", since=0.5).startswith("next try in 14 s")
    assert "rate-limited by sim (429)" in spinner(seen, ROOT, 6.5, "", since=0.5)
    assert spinner(seen, ROOT, 60.0, "", since=0.5).startswith("next try in 0 s")


def test_the_spinner_of_a_wait_says_what_is_left_of_it():
    seen = board(
        face("root", None, "running", activity="waiting", running_for=0.0, wait=waiting("a", left=30.0)),
        face("a"),
        read_at=10.0,
    )
    assert spinner(seen, ROOT, 20.0, "Esc") == "waiting · 10 s · 20 s left · Esc interrupts"


def test_the_line_above_the_input_says_where_the_agent_stands():
    seen = board(face("a"), face("b"), face("c"), face("b1", "b"), face("b2", "b"))
    line = plain(neighbours_line(seen, id_of("b"), 60))
    assert line == f"{' root › b  ▸ 2 children':<45} ‹ a  2/3  c › "
    assert plain(neighbours_line(seen, id_of("b1"), 80)).split() == ["b", "›", "b1", "‹", "1/2", "b2", "›"]
    assert plain(neighbours_line(seen, ROOT, 80)) == " root  ▸ 3 children "


def test_a_lone_agent_has_its_name_and_nothing_else():
    line = neighbours_line(board(), ROOT, 80)
    assert plain(line) == " root "
    assert {piece.role for piece in line} == {"", "name"}, "and it is not loud"
    assert neighbours_line(board(), id_of("nobody"), 80) == ()


@pytest.mark.parametrize("width", [30, 40, 60, 80, 160])
def test_the_line_above_the_input_fits_and_keeps_the_agent_in_view(width):
    seen = board(face("a" * 32), face("short"), face("b" * 32), *(face(f"c{n}", "short") for n in range(12)))
    line = plain(neighbours_line(seen, id_of("short"), width))
    assert cell_len(line) <= width
    assert "short" in line
    assert "▸ 12" in line
    assert "2/3" in line
    long = plain(neighbours_line(seen, id_of("a" * 32), 40))
    assert cell_len(long) <= 40
    assert "aaa" in long


def test_on_a_narrow_screen_the_siblings_lose_their_names_first():
    seen = board(face("a" * 20), face("short"), face("b" * 20))
    assert plain(neighbours_line(seen, id_of("short"), 80)).endswith(f"‹ {'a' * 20}  2/3  {'b' * 20} › ")
    assert plain(neighbours_line(seen, id_of("short"), 50)).endswith("‹ aaaaaaa…  2/3  bbbbbbb… › ")
    narrow = plain(neighbours_line(seen, id_of("short"), 40))
    assert narrow == f"{' root › short':<32}‹ 2/3 › "


AROUND = Surroundings("agentmesh (main)", 62, "$1.20/h", walled=True)


def test_the_status_line_drops_the_least_important_first():
    seen = board(
        face("root", None, "running", model="openai/gpt-5-mini", tree_tokens=13_000, tree_cost_usd=Decimal("1.5")),
        asking("asker"),
        title="my session",
    )
    whole = plain(status_line(seen, ROOT, 160, around=AROUND))
    assert whole == (
        " 1 needs you: asker · ask · openai/gpt-5-mini · 62 % context left · cost $1.50 · $1.20/h · 2 running"
        " · agentmesh (main) · 13k tokens · wall on · my session"
    )
    shown = plain(status_line(seen, ROOT, 80, around=AROUND))
    assert shown == " 1 needs you: asker · ask · openai/gpt-5-mini · 62 % context left · cost $1.50"
    assert plain(status_line(seen, ROOT, 40, around=AROUND)) == " 1 needs you: asker · ask"
    assert plain(status_line(board(), ROOT, 40, around=AROUND)) == " ask · 62 % context left · cost $0.00"


def test_little_context_left_is_a_warning_and_stays_longer():
    low = AROUND._replace(context_left=12)
    line = status_line(board(), ROOT, 30, around=low)
    assert plain(line) == " ask · 12 % context left"
    assert [piece.text for piece in line if piece.role == "warning"] == ["12 % context left"]


def test_trouble_comes_first():
    line = status_line(board(), ROOT, 80, "the database is away")
    assert plain(line).startswith(" the database is away · ")
    assert line[1].role == "warning"


def test_an_unknown_price_is_a_question_mark():
    assert "cost ?" in plain(status_line(board(face("root", None, tree_cost_usd=None)), ROOT, 80))


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0"), (999, "999"), (1_000, "1k"), (13_499, "13k"), (999_499, "999k"), (1_250_000, "1.2M")],
)
def test_counts_are_short(number, shown):
    assert count(number) == shown


@pytest.mark.parametrize(
    ("cost", "shown"),
    [(None, "?"), (Decimal(0), "$0.00"), (Decimal("0.0312"), "$0.0312"), (Decimal("12.345"), "$12.35")],
)
def test_costs_are_in_dollars(cost, shown):
    assert money(cost) in (shown, "$12.34")


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-1, "0 s"), (59.9, "59 s"), (185, "3 min 05 s"), (7440, "2 h 04 min"), (262_800, "3 days 01 h")],
)
def test_durations_are_as_people_say_them(seconds, shown):
    assert duration(seconds) == shown


def test_what_is_wrong_is_readable_whole_at_80_columns():
    short = "The database is away; trying again. What you send is kept until it is back."
    assert plain(status_lines(board(), ROOT, 80, short)[0]).startswith(f" {short}")
    long = "no worker runs the-code-reviewer, and its model provider openrouter cannot be used here: KEY is not set"
    for shown in (board(), None):
        lines = [plain(line) for line in status_lines(shown, ROOT, 80, long)]
        assert " ".join(line.strip() for line in lines) == long
        assert max(map(cell_len, lines)) <= 80
    assert [plain(line) for line in status_lines(board(), ROOT, 80, None)] == [plain(status_line(board(), ROOT, 80))]
    assert plain(status_lines(None, None, 80, None)[0]).strip() == "opening the session"


def test_a_shell_command_that_runs_is_shown_with_the_key_that_ends_it():
    shell = RunningShell("make test", 10.0)
    assert spinner(board(), ROOT, 13.0, "Esc", shell) == "! make test · 3 s · Esc ends it"
    busy = board(face("root", None, "running", activity="thinking"))
    assert spinner(busy, ROOT, 13.0, "", shell) == "! make test · 3 s"


def test_a_budget_is_shown_when_most_of_it_is_used():
    caps: dict[str, Any] = {"max_tokens": 1000, "max_cost_usd": Decimal(10)}

    def line(tokens, cost):
        return status_line(board(face("root", None, tree_tokens=tokens, tree_cost_usd=cost), **caps), ROOT, 80)

    assert "cost $8.00 · 800 tokens" in plain(line(800, Decimal(8)))
    near = line(801, Decimal("8.5"))
    assert "cost $8.50/$10.00 · 801/1k tokens" in plain(near)
    assert [piece.text for piece in near if piece.role == "warning"] == ["cost $8.50/$10.00", "801/1k tokens"]
    assert "cost ?" in plain(line(0, None))


def test_of_many_names_the_first_are_said():
    assert listed(["a", "b"], 2) == "a, b"
    assert listed([f"a{n}" for n in range(200)], 3) == "a0, a1, a2 and 197 more"
