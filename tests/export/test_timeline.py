"""The time line: what is read, where it stands, and what it looks like."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from agentmesh.export.axis import Axis
from agentmesh.export.cells import ASCII, UNICODE, draw, plain, signs_for, summary
from agentmesh.export.figures import lasting, tree
from agentmesh.store import board
from agentmesh.store.tx import Database
from tests.export.conftest import READER, ROOT, RUNNER
from tests.fixtures.mesh import Mesh

GOLDEN = """\
          ╷09:00:00              ╷09:00:30           ╷11:00:00
user      ▼                                         ⋮▼
root      ◆▒▒▒▒▒▒▼···············◆▒▒????????????█!!!⋮◆─▒▒▒▒▒▒▒▒▒▒▒▒▼▒  ○ idle
├─ reader        ◆▒▒▒▒███████▒▒▒▒▲──────────────────⋮──────────────◆─  ○ idle
└─ runner        ◆▒▒▒▒▒█████████████████████████✗   ⋮                  ✗ dead

▒ model call  █ tool  · waits for others  ? asks a person  ! failed call  ─ idle
▼▲ sends mail  ◆ gets mail  ✗ killed  ⋮ pause cut short"""

PLAIN = """\
          |09:00:00              |09:00:30           |11:00:00
user      v                                         :v
root      *======v...............*==????????????#!!!:*-============v=  idle
|- reader        *====#######====^------------------:--------------*-  idle
`- runner        *=====#########################x   :                  dead

= model call  # tool  . waits for others  ? asks a person  ! failed call  - idle
v^ sends mail  * gets mail  x killed  : pause cut short"""

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def drawn(timeline, width=80, signs=UNICODE, zone=UTC) -> str:
    return "\n".join(plain(line) for line in draw(timeline, width, signs, zone))


@pytest.mark.only_rows
def test_80_columns(fixed, timeline):
    found = timeline(fixed)
    assert drawn(found) == GOLDEN
    assert drawn(found, signs=ASCII) == PLAIN
    assert summary(found, UTC) == "2026-03-01 09:00:00 to 2026-03-01 11:00:20 (UTC), 2 h 00 min"


@pytest.mark.only_rows
@pytest.mark.parametrize("width", [10, 40, 41, 80, 133, 400])
def test_no_line_is_wider_than_it_may_be(fixed, timeline, width):
    lines = drawn(timeline(fixed), width).split("\n")
    assert max(map(len, lines)) <= max(width, 40)
    assert lines[2].startswith("root")
    assert lines[4].endswith("✗ dead")


@pytest.mark.only_rows
def test_one_agent_has_only_its_own_time(fixed, timeline):
    found = timeline(fixed, RUNNER)
    assert [lane.name for lane in found.lanes] == ["runner"]
    assert (found.began, found.ended) == (found.lanes[0].began, found.lanes[0].ended)
    assert found.ended - found.began == timedelta(seconds=40)
    assert [letter.recipient for letter in found.letters] == [RUNNER]
    assert drawn(found, 60).split("\n")[1] == "runner   ◆▒▒▒▒▒─████████████████████████████████✗  ✗ dead"


@pytest.mark.only_rows
def test_spans_have_their_true_beginnings(fixed, timeline):
    root, reader, _ = timeline(fixed).lanes
    clock = [(s.kind, s.name, f"{s.began:%H:%M:%S}", f"{s.ended:%H:%M:%S}") for s in root.spans if s.ended > s.began]
    assert (root.id, reader.id) == (ROOT, READER)
    assert sorted(clock, key=lambda one: (one[2], one[3], one[0] == "ask")) == [
        ("model", "p/m", "09:00:02", "09:00:10"),
        ("wait", "wait", "09:00:10", "09:00:30"),  # only its end was written
        ("model", "p/m", "09:00:31", "09:00:34"),
        ("tool", "bash", "09:00:34", "09:00:48"),
        ("ask", "bash", "09:00:34", "09:00:48"),
        ("tool", "kill", "09:00:48", "09:00:50"),  # when the call before it had its result
        ("model", "p/m", "09:00:51", "09:00:54"),
        ("model", "p/other", "11:00:02", "11:00:20"),
    ]
    assert [span.failed for span in root.spans if span.name == "p/m"] == [False, False, True]
    assert ("tool", "read") in {(span.kind, span.name) for span in reader.spans}


@pytest.mark.only_rows
def test_what_goes_on_reaches_until_now(mesh: Mesh, timeline):
    child = mesh.fork(mesh.root, "child", "work")
    (call,) = mesh.call(mesh.root, "wait")
    mesh.wait(mesh.root, child, lease=call)
    (bash,) = mesh.call(child, "bash")
    mesh.conn.execute(
        "update agentmesh.tool_calls set status = 'started', started_at = now() where agent_id = %s", [child]
    )
    found = timeline(mesh.session)
    lanes = {lane.name: lane for lane in found.lanes}
    (wait,) = [span for span in lanes["root"].spans if span.kind == "wait"]
    (tool,) = [span for span in lanes["child"].spans if span.kind == "tool"]
    assert (bash.agent_id, wait.open, tool.open) == (child, True, True)
    assert wait.ended == tool.ended == found.ended
    assert not any(lane.died for lane in found.lanes)


@pytest.mark.only_rows
def test_a_model_call_that_runs_is_drawn_until_now(mesh: Mesh, timeline, db: Database):
    child = mesh.fork(mesh.root, "child", "work")
    mesh.begin(child)
    found = timeline(mesh.session)
    (span,) = [span for lane in found.lanes for span in lane.spans]
    assert (span.kind, span.open, span.failed) == ("model", True, False)
    assert span.ended == found.ended
    assert [(one.id, one.ended) for one in db.run(board.ran, [mesh.root, child], 600)] == [(child, 0)]
    mesh.call(child, "bash")
    assert all(one.ended > 0 for one in db.run(board.ran, [mesh.root, child], 600))
    assert not any(span.kind == "model" and span.open for lane in timeline(mesh.session).lanes for span in lane.spans)


@pytest.mark.only_rows
def test_a_new_session_can_be_drawn(mesh: Mesh, timeline):
    found = timeline(mesh.session)
    assert [lane.name for lane in found.lanes] == ["root"]
    assert "root" in drawn(found)
    assert not found.has_user


@pytest.mark.only_rows
def test_what_no_drawing_can_part_is_one_span(mesh: Mesh, timeline):
    mesh.conn.execute(
        "insert into agentmesh.model_calls (agent_id, turn, model, latency_ms, ended_at)"
        " select %s, 1, 'm', 1, now() + n * interval '2 ms' from generate_series(1, 20000) n",
        [mesh.root],
    )
    mesh.send(None, mesh.root)
    mesh.conn.execute("update agentmesh.mail set sent_at = now() + interval '1 hour'")
    (lane,) = timeline(mesh.session).lanes
    assert sum(span.count for span in lane.spans) == 20_000
    assert len(lane.spans) <= 4_000


# The axis


def test_time_runs_evenly():
    axis = Axis.over(NOON, after(100), [(NOON, after(100))])
    assert [axis.place(after(s)) for s in (0, 25, 100)] == [0, 0.25, 1]
    assert list(axis.gaps()) == []
    assert axis.place(after(-5)) == 0
    assert axis.place(after(500)) == 1


def test_a_long_pause_is_cut_and_order_is_kept():
    axis = Axis.over(NOON, after(10_000), [(NOON, after(50)), (after(9_950), after(10_000))])
    ((began, ended, seconds),) = axis.gaps()
    assert seconds == pytest.approx(9_900)
    assert 0.4 < began < ended < 0.6
    places = [axis.place(after(s)) for s in (0, 49, 50, 100, 9_000, 9_950, 9_951, 10_000)]
    assert places == sorted(places)
    assert len(set(places)) == len(places)


@pytest.mark.parametrize(
    ("islands", "gaps"),
    [
        ([(0, 10), (60, 70)], 0),  # less than a minute
        ([(0, 2000), (2100, 4000)], 0),  # less than a tenth of what was done
        ([(0, 10), (200, 210), (500, 510)], 2),
        ([(0, 600), (10, 20), (900, 910)], 1),  # one inside another
        ([(i * 1000, i * 1000 + 1) for i in range(40)], 12),  # the longest dozen
    ],
)
def test_which_pauses_are_cut(islands, gaps):
    axis = Axis.over(NOON, after(islands[-1][1]), [(after(a), after(b)) for a, b in islands])
    assert len(list(axis.gaps())) == gaps


def test_ticks_are_even_times_of_the_zones_clock():
    axis = Axis.over(after(1), after(7201), [(NOON, after(7201))])
    labels = [label for _, label in axis.ticks(6, timezone(timedelta(hours=5, minutes=30)))]
    assert labels == ["17:30:01", "18:00", "18:30", "19:00", "19:30"]


def test_ticks_name_the_day_where_there_is_more_than_one():
    axis = Axis.over(NOON, after(86_460), [(NOON, after(30)), (after(86_430), after(86_460))])
    labels = [label for _, label in axis.ticks(2, UTC)]
    assert labels[0] == "03-01 12:00"
    assert "03-02 12:00:30" in labels


# Small things


@pytest.mark.parametrize(
    ("encoding", "signs"), [("utf-8", UNICODE), ("ascii", ASCII), ("latin-1", ASCII), (None, ASCII)]
)
def test_signs_are_those_that_the_terminal_has(encoding, signs):
    assert signs_for(encoding) is signs


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.26, "0.3 s"),
        (12.4, "12 s"),
        (245, "4 min 05 s"),
        (7620, "2 h 07 min"),
        (273_700, "3 d 4 h"),
        (59.7, "1 min 00 s"),
    ],
)
def test_how_long_it_took(seconds, words):
    assert lasting(seconds) == words


def test_a_tree_of_any_depth_has_its_lines():
    deep = [(n, n - 1 if n else None) for n in range(3000)]
    assert len(list(tree(deep, lambda one: one[0], lambda one: one[1]))) == 3000
    family = [(1, None), (2, 1), (3, 1), (4, 2), (5, 99)]
    lines = [guide + str(one[0]) for guide, one in tree(family, lambda one: one[0], lambda one: one[1])]
    assert lines == ["1", "├─ 2", "│  └─ 4", "└─ 3", "5"]
