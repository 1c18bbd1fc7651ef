"""The page: one file, nothing leaves it, foreign text is text, and a real browser shows and searches it."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from queue import SimpleQueue

import pytest

from agentmesh.export import svg
from tests.export.conftest import HOSTILE, ROOT, RUNNER, patient, played
from tests.fixtures.engine import Rig, call, do, say
from tests.fixtures.mesh import Mesh

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")
VOID = {"meta", "input"}
IMPLIED = {"th", "td"}
"""Tags that HTML ends by itself."""


class Page(HTMLParser):
    """Reads a page: elements, links, texts, and whether all that was opened is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID | IMPLIED:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in IMPLIED:
            assert self.open.pop() == tag, f"</{tag}> closes something else"

    def values(self, name: str) -> list[str]:
        return [value or "" for _, attributes in self.elements for key, value in attributes.items() if key == name]


def visible(text: str) -> str:
    """Return what a page shows, its folds open."""
    text = re.sub(r"<head>.*</head>|<script>.*</script>", "", text, flags=re.DOTALL)
    return re.sub(r"<[^>]*>", "", text)


@pytest.fixture
def browse(tmp_path: Path) -> Callable[..., str]:
    """``browse(page, "#find=word")`` returns the document as a browser has it after the page's script has run."""

    def dump(text: str, fragment: str = "", *options: str) -> str:
        file = tmp_path / "page.html"
        file.write_text(text, encoding="utf-8")
        command = [BROWSER or "", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        command += [f"--user-data-dir={tmp_path / 'profile'}", "--no-first-run", "--disable-background-networking"]
        command += ["--disable-component-update", "--disable-sync", "--virtual-time-budget=2000", *options]
        done = subprocess.run(
            [*command, "--dump-dom", f"{file.as_uri()}{fragment}"],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return dump


@pytest.fixture
def listener() -> Iterator[tuple[str, SimpleQueue[bytes]]]:
    """An address, and all that was sent to it, in order."""
    heard: SimpleQueue[bytes] = SimpleQueue()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hear() -> None:
            while True:
                try:
                    conn, _ = server.accept()
                except OSError:
                    return
                with conn:
                    heard.put(conn.recv(1000))

        thread = threading.Thread(target=hear, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}", heard
        server.shutdown(socket.SHUT_RDWR)
        thread.join(10)


@pytest.mark.only_rows
def test_the_page_is_whole_and_refers_to_nothing_outside(fixed, exported):
    text = exported(fixed, "html")
    page = Page(text)
    assert page.open == []
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    links = [*page.values("href"), *page.values("src"), *page.values("action")]
    assert {link[0] for link in links} == {"#"}
    assert {link[1:] for link in links} <= set(ids)
    assert not {"link", "img", "iframe", "object", "base", "form"} & {tag for tag, _ in page.elements}
    assert not [key for _, attributes in page.elements for key in attributes if key.startswith("on") or key == "style"]
    (policy,) = [found for found in page.values("content") if "default-src" in found]
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    assert "unsafe" not in policy


@pytest.mark.only_rows
def test_it_tells_what_the_session_is(fixed, exported):
    text = visible(exported(fixed, "html"))
    for words in ("Count *things*", "3 (2 idle, 1 dead)", "$0.0183 + ?", "p/other", "root/runner", "killed by root"):
        assert words in text
    assert "calls of models whose price is not known, 1 here" in text
    assert "nothing happened for 1 h 59 min" in text
    assert "Later." in text


@pytest.mark.only_rows
def test_the_drawing_has_a_lane_for_each_agent_and_an_arrow_for_each_message(fixed, exported, timeline):
    found = timeline(fixed)
    text = "".join(svg.draw(found))
    assert text.count('marker-end="url(#head)"') == len(found.letters) == 6
    assert text.count('class="life"') == 4
    assert "root asks a person" not in text
    assert "root: asks a person: bash, " in text
    assert "runner was killed at" in text
    page = Page(text)
    assert page.open == []
    heights = [float(value) for value in page.values("y")]
    assert max(heights) <= svg.TOP + 4 * svg.ROW


@pytest.mark.only_rows
def test_foreign_text_is_never_markup(mesh: Mesh, exported):
    attack = f'{HOSTILE} </pre></script></style><img src=x onerror=alert(1)> "\'><a href="javascript:x">'
    mesh.conn.execute(
        "update agentmesh.sessions set title = %s, workdir = %s where id = %s", [attack, attack, mesh.session]
    )
    mesh.send(None, mesh.root, attack)
    calls = mesh.call(mesh.root, "bash", "bash", text=attack)
    mesh.conn.execute("update agentmesh.tool_calls set name = %s", [attack])
    mesh.finish(calls[0], {attack: attack, "error": attack})
    mesh.ask(mesh.fork(mesh.root, "asking", attack))
    mesh.conn.execute("update agentmesh.agents set model = %s, subagent_type = %s", [attack, attack])
    mesh.conn.execute("update agentmesh.model_calls set model = %s", [attack])
    mesh.fork(mesh.root, "lazy", attack)
    text = exported(mesh.session, "html")
    page = Page(text)
    assert page.open == []
    assert [tag for tag, _ in page.elements if tag in ("script", "style", "img")] == ["style", "script"]
    assert {link[0] for link in page.values("href")} == {"#"}
    assert not [key for _, attributes in page.elements for key in attributes if key.startswith("on")]
    assert not {"\x1b", "\u202e"} & set(text)
    assert "&lt;script&gt;alert(" in text


@pytest.mark.only_rows
def test_a_cost_of_which_nothing_is_known_is_the_same_everywhere(mesh: Mesh, exported):
    mesh.conn.execute(
        "insert into agentmesh.model_calls (agent_id, turn, model, cost_usd, ended_at) select %s, 1, 'm', c, now()"
        " from unnest('{0,null}'::numeric[]) c",
        [mesh.root],
    )
    mesh.conn.execute("update agentmesh.agents set unpriced_calls = 1")
    page = exported(mesh.session, "html")
    assert "<li>cost <b>?</b>" in page
    assert page.count('<td class="n">?') == 3, "of the agent, of its model, and of all"
    assert "$0.00" not in page + exported(mesh.session, "md")


@needs_browser
@patient
def test_a_played_session_in_a_browser(rig: Rig, exported, browse):
    rig.script(
        "root",
        do(call("fork", name="reader", prompt="read the needle in the haystack"), call("glob", pattern="*.txt")),
        do(call("wait", timeout=20, from_agents=["reader"])),
        say("all done"),
    )
    rig.script("reader", do(call("send", to="parent", message="the report")), say("bye"))
    rig.worker()
    text = exported(played(rig, "begin"), "html")
    shown = browse(text)
    assert re.search(r'<div class="find">', shown), "the script ran: the search is there"
    assert shown.count('<div class="row') == text.count('<div class="row')
    assert "away" not in {name for found in Page(shown).values("class") for name in found.split()}

    searched = browse(text, "#find=NEEDLE%20hay")
    rows = [names.split() for names in Page(searched).values("class") if names.startswith("row")]
    kept = [names for names in rows if "away" not in names]
    assert len(rows) == text.count('<div class="row')
    assert 0 < len(kept) < len(rows)
    found = re.search(r'<output aria-live="polite">(\d+) found</output>', searched)
    assert found is not None
    assert int(found[1]) == len(kept)
    assert "<details open" in searched, "what is found in a fold is unfolded"
    assert "<details open" not in shown


@needs_browser
@patient
@pytest.mark.only_rows
def test_a_browser_runs_nothing_foreign_and_asks_nobody(mesh: Mesh, exported, browse, listener):
    address, heard = listener
    attack = (
        f"<script>document.title='owned'</script><img src=http://{address}/guarded onerror=\"document.title='owned'\">"
    )
    mesh.send(None, mesh.root, attack)
    mesh.answer(mesh.root, attack)
    text = exported(mesh.session, "html")
    shown = browse(text)
    assert "<title>owned" not in shown
    assert "<img" not in shown

    # Were the escaping to fail, the page's policy would still stop it; without the policy it would happen.
    planted = text.replace("</h1>", f"</h1>{attack}", 1)
    assert "<title>owned" not in browse(planted)
    unguarded = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", planted).replace(
        "/guarded", "/unguarded"
    )
    assert "<title>owned" in browse(unguarded), "the check can turn red"
    assert heard.get(timeout=20).startswith(b"GET /unguarded "), "and nothing was asked for before"


@needs_browser
@patient
@pytest.mark.only_rows
def test_a_link_to_a_message_opens_what_it_is_folded_in(fixed, exported, browse):
    text = exported(fixed, "html")
    unfolded = browse(text, f"#row-{RUNNER}-1")
    assert re.search(rf'<details class="agent" id="agent-{RUNNER}" open="">', unfolded)
    assert re.search(rf'<details class="agent" id="agent-{RUNNER}">', browse(text))
    assert re.search(rf'<details class="agent" id="agent-{ROOT}" open="">', browse(text))
