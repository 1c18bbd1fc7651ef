"""Search: which rows and mail hold the words, whatever they are; and nothing that is written is too large for it."""

from __future__ import annotations

import json
import uuid

import psycopg
import pytest

from agentmesh.domain.errors import BadArgument, Timeout, UnknownAgent
from agentmesh.domain.ids import AgentId
from agentmesh.store import context, person, search, sessions, steps
from agentmesh.store.search import Hit
from tests.fixtures.mesh import Mesh

pytestmark = pytest.mark.only_rows

NASTY = "\x1b[31m<script>alert</script> needle [/x] \u202e«quoted» %s %(x)s 'it''s' \\n back\\slash"


def found(mesh: Mesh, words: str, **more: object) -> list[str]:
    """Return where the words stand, the newest first."""
    return [hit.where for hit in mesh.run(search.search, words, mesh.session, **more)]  # type: ignore[arg-type]


def one(mesh: Mesh, words: str) -> Hit:
    (hit,) = mesh.run(search.search, words, mesh.session)
    return hit


def append(mesh: Mesh, agent: AgentId, kind: str, **content: object) -> int:
    return int(mesh.one("select agentmesh.append(%s, %s, %s)", agent, kind, json.dumps(content)))


def test_every_kind_of_row_is_searched_by_what_people_see_of_it(mesh: Mesh):
    mesh.send(None, mesh.root, "the prompt mentions apples")
    (call,) = mesh.call(mesh.root, "bash", text="I think of oranges")
    mesh.finish(call, {"output": "pears\nplums", "exit_code": 0, "list": ["quinces"]})
    mesh.answer(mesh.root, "lemons")
    append(mesh, mesh.root, "capture", text="mangos")
    append(mesh, mesh.root, "error", error="it failed for want of figs", hint="buy dates")
    append(mesh, mesh.root, "command", command="!ls", output="kiwis")
    append(mesh, mesh.root, "summary", text="melons", upto=0)
    wanted = {"apples": 1, "oranges": 2, "plums": 3, "quinces": 3, "lemons": 4, "mangos": 5, "figs": 6, "dates": 6}
    wanted |= {"kiwis": 7, "melons": 8}
    assert {word: found(mesh, word) for word in wanted} == {word: [f"root:{seq}"] for word, seq in wanted.items()}


def test_arguments_of_calls_are_searched_past_their_escapes(mesh: Mesh):
    lease = mesh.begin(mesh.root)
    arguments = json.dumps({"command": "grep -rn\nneedle\tsrc/parser.py", "path": "a\\nb"})
    asked = {"name": "bash", "arguments": arguments}
    said = {"text": "", "calls": [{"id": "1", **asked}]}
    mesh.run(steps.finish_step, lease, said, [{"call_id": "1", **asked}], {})
    assert found(mesh, "needle") == ["root:2"]
    assert found(mesh, '"needle src"') == ["root:2"]
    assert found(mesh, "bash") == ["root:2"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("look at src/store/parser.py now", "parser.py"),
        ("look at src/store/parser.py now", "/store/"),
        ("look at src/store/parser.py now", "parser"),
        ("self.name = foo_bar(x)", "name foo"),
        ("self.name = foo_bar(x)", "foo_bar"),
        ("Vec<String> and <b>bold</b>", "string bold"),
        ("mail me@example.org or https://example.org/a?b=c", "example.org/a"),
        ("take --force-with-lease", "--force-with-lease"),
        ("a NEEDLE in Hay", "needle hay"),
        ("on 2026-11-22 at 05:30", "2026-11-22"),
        ("Grüße aus Köln", "Köln"),
        ("don't panic", "don't"),
        ("one two three", '"two three"'),
        ("one two three", "nothing or three"),
        ("one two three", "one -four"),
        ("don't", "don't or 'x'; drop table agentmesh.mail --"),
    ],
)
def test_words_are_found_wherever_they_stand(mesh: Mesh, text: str, words: str):
    append(mesh, mesh.root, "capture", text=text)
    assert found(mesh, words) == ["root:1"]


@pytest.mark.parametrize("words", ['"three two"', "one four", "one -two", "thre", "o_e", "%"])
def test_what_does_not_stand_there_is_not_found(mesh: Mesh, words: str):
    append(mesh, mesh.root, "capture", text="one two three 100")
    if words == "%":
        with pytest.raises(BadArgument, match="no word to look for"):
            found(mesh, words)
    else:
        assert found(mesh, words) == []


@pytest.mark.parametrize("words", ["", "  ", "-only", "one or -two", '""', "<->", "'"])
def test_a_search_for_no_word_is_refused(mesh: Mesh, words: str):
    with pytest.raises(BadArgument, match="no word to look for") as refused:
        mesh.run(search.search, words)
    assert "a phrase" in refused.value.hint


def test_too_many_words_and_an_unknown_agent_are_refused(mesh: Mesh):
    with pytest.raises(BadArgument, match="1001 bytes"):
        mesh.run(search.search, "x" * 1001)
    with pytest.raises(UnknownAgent):
        mesh.run(search.search, "x", None, AgentId(uuid.uuid4()))


def test_mail_is_found_once_unread_in_the_mailbox_and_read_in_its_row(mesh: Mesh):
    mail = mesh.send(None, mesh.root, "a needle")
    hit = one(mesh, "needle")
    assert (hit.kind, hit.seq, hit.mail_id, hit.where) == ("unread", None, mail, "root")
    mesh.begin(mesh.root)
    hit = one(mesh, "needle")
    assert (hit.kind, hit.seq, hit.mail_id) == ("user", 1, None)
    second = mesh.send(None, mesh.root, "withdrawn pin")
    mesh.run(person.take_back, second)
    assert one(mesh, "pin").kind == "withdrawn"


def test_rows_that_are_not_sent_any_more_are_found(mesh: Mesh):
    mesh.send(None, mesh.root, "needle")
    mesh.answer(mesh.root)
    mesh.run(context.mark, mesh.root)
    mesh.send(None, mesh.root, "pin")
    mesh.answer(mesh.root)
    mesh.run(context.rewind, mesh.root)
    mesh.run(context.clear, mesh.root)
    assert mesh.context(mesh.root) == []
    assert (found(mesh, "needle"), found(mesh, "pin")) == (["root:1"], ["root:4"])


def test_one_session_all_sessions_and_one_agent(mesh: Mesh):
    other = mesh.new_session()
    child = mesh.fork(mesh.root, "child")
    for agent in (mesh.root, child, other):
        append(mesh, agent, "capture", text="a needle")
    assert found(mesh, "needle") == ["child:1", "root:1"]
    everywhere = mesh.run(search.search, "needle")
    assert [hit.agent_id for hit in everywhere] == [other, child, mesh.root], "the newest session first"
    assert [hit.agent_id for hit in mesh.run(search.search, "needle", None, child)] == [child]
    assert len(mesh.run(search.search, "needle", None, None, 1)) == 1
    assert mesh.run(search.reach) == search.Reach(2, 2)


def test_a_search_of_all_goes_as_far_as_it_may_and_says_so(mesh: Mesh):
    for _ in range(3):
        agent = mesh.new_session()
        append(mesh, agent, "capture", text="x")
        append(mesh, agent, "capture", text="x")
    reached = mesh.column("select agentmesh.search_reach(3)")
    newest = mesh.column("select id from agentmesh.sessions order by created_at desc, id")
    assert reached == newest[:2], "until the rows are spent"


def test_a_snippet_marks_the_words_and_is_cut_around_them(mesh: Mesh):
    text = "x " * 300 + "look at the «needle», the Needle\nand the needles of src/parser.py" + " y" * 300
    append(mesh, mesh.root, "capture", text=text)
    snippet = one(mesh, "needle parser.py").snippet
    assert snippet.startswith("… x ")
    assert snippet.endswith(" …")
    assert '"«needle»", the «Needle» and the needles of src/«parser.py» y' in snippet
    assert len(snippet) < 300


def test_foreign_text_is_only_text(mesh: Mesh):
    append(mesh, mesh.root, "capture", text=NASTY)
    snippet = one(mesh, "needle").snippet
    assert "<script>alert</script> «needle» [/x]" in snippet
    assert '"quoted"' in snippet, "only words that were looked for stand between the marks"
    for words in ("script", "s", "it's", "slash"):
        assert "«" in one(mesh, words).snippet


MEGABYTE = 1 << 20
HUGE = {
    "many different words": " ".join(f"{n:x}" for n in range(150_000)),
    "short words of wide letters": " ".join(chr(0x4E00 + n % 20000) + chr(0x4E00 + n // 20000) for n in range(120_000)),
    "one word": "x" * MEGABYTE,
    "one wide word": "é" * (MEGABYTE // 2),
    "addresses": " ".join(f"http://h{n:x}.example.org/p{n:x}/q{n:x}?r={n:x}" for n in range(20_000)),
    "hyphens": "-".join(f"w{n:x}" for n in range(160_000)),
    "tags": "<a b='c'>" * 110_000,
    "quotes and backslashes": "\\'\"" * 350_000,
    "blanks": " " * MEGABYTE,
}


@pytest.mark.slow
@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE)
def test_no_text_is_too_large_to_be_written_or_searched(mesh: Mesh, text: str):
    mesh.finish(mesh.call(mesh.root, "bash")[0], {"output": f"{text} needle {text[:1000]} end"})
    mesh.answer(mesh.root, text)
    hit = one(mesh, "absent or needle")
    assert "«needle»" in hit.snippet
    assert found(mesh, '"end"') == ["root:3"]


def test_a_word_at_the_seam_of_two_pieces_is_found(mesh: Mesh):
    for shift in (0, 3, 5, 8):
        append(mesh, mesh.root, "capture", text="x" + " " * (49_990 + shift) + f"needle{shift} eye" + " x" * 100)
    assert [found(mesh, f'"needle{shift} eye"') for shift in (0, 3, 5, 8)] == [[f"root:{n}"] for n in (1, 2, 3, 4)]


def test_the_newest_come_first_and_no_more_than_asked_for(mesh: Mesh):
    for n in range(5):
        append(mesh, mesh.root, "capture", text=f"needle {n}")
    assert found(mesh, "needle", most=2) == ["root:5", "root:4"]


def test_a_search_that_takes_too_long_says_how_to_look_into_less(mesh: Mesh):
    mesh.conn.execute(
        "insert into agentmesh.transcript (agent_id, seq, kind, content)"
        " select %s, n, 'capture', jsonb_build_object('text', repeat('hay needles ', 1000))"
        " from generate_series(1, 3000) n",
        [mesh.root],
    )
    with pytest.raises(Timeout, match=r"not done after 0\.01 s") as late:
        mesh.run(search.search, '"needles needles"', mesh.session, patience=0.01)
    assert "one agent" in late.value.hint
    assert mesh.one("show statement_timeout") != "10ms"


def test_the_reader_may_search_and_see_no_table(mesh: Mesh):
    append(mesh, mesh.root, "capture", text="needle")
    mesh.conn.execute("set session authorization agentmesh_reader")
    snippets = mesh.column("select snippet from agentmesh.search('needle', %s)", mesh.session)
    assert snippets == ["«needle»"]
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        mesh.conn.execute("select from agentmesh.transcript")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        mesh.conn.execute("select agentmesh.fork_session(%s, 0)", [mesh.root])
    mesh.conn.execute("reset session authorization")


def test_a_deleted_session_is_found_no_more(mesh: Mesh):
    append(mesh, mesh.root, "capture", text="needle")
    mesh.run(sessions.end_session, mesh.session)
    assert found(mesh, "needle") == ["root:1"]
    mesh.run(sessions.delete_session, mesh.session)
    assert mesh.run(search.search, "needle") == []
