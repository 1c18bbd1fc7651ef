"""Rules bind every tool that a call reaches: what may not be read is not found either, and redirects are judged."""

from __future__ import annotations

import pytest
from psycopg.types.json import Jsonb

from agentmesh.config.schema import Web
from agentmesh.domain.permissions import Decision, Permissions, Rule
from agentmesh.domain.states import PermissionMode
from agentmesh.store import requests
from agentmesh.tools.web_fetch import WebFetch
from tests.fixtures.engine import Rig, call, do
from tests.tools.web_server import answer, moved, serving


def _give(rig: Rig, *texts: str) -> None:
    rules = Permissions.of(Rule(Decision(text.split(" ", 2)[0]), *text.split(" ", 2)[1:]) for text in texts)
    rig.conn.execute("update agentmesh.agents set permissions = %s where id = %s", [Jsonb(rules.to_json()), rig.root])


@pytest.mark.parametrize(
    ("mode", "rule", "is_found"),
    [
        (PermissionMode.ASK, "deny read *.pem", False),
        (PermissionMode.ALL, "deny read *.pem", False),
        (PermissionMode.PLAN, "deny read keys/**", False),
        (PermissionMode.ASK, "ask read *.pem", False),
        (PermissionMode.EDITS, "ask read *.pem", False),
        (PermissionMode.ALL, "ask read *.pem", True),
        (PermissionMode.ASK, "deny read *.key", True),
    ],
)
def test_a_file_that_may_not_be_read_is_not_found(rig: Rig, mode: PermissionMode, rule: str, is_found: bool):
    (rig.workdir / "keys").mkdir()
    (rig.workdir / "keys" / "a.pem").write_text("needle")
    rig.root = rig.session(mode=mode)
    _give(rig, rule, "allow read *")
    rig.script("root", do(call("grep", pattern="needle"), call("glob", pattern="**/*.pem")))
    rig.worker()
    rig.run()
    (grep,), (glob,) = rig.results("grep"), rig.results("glob")
    assert ([match["path"] for match in grep["matches"]], glob["files"]) == (
        (["keys/a.pem"], ["keys/a.pem"]) if is_found else ([], [])
    )
    assert ("left out" in grep.get("note", ""), "left out" in glob.get("note", "")) == (not is_found, not is_found)


def test_a_person_who_allows_a_search_allows_what_rules_ask_about(rig: Rig):
    (rig.workdir / "notes").mkdir()
    (rig.workdir / "notes" / "a.env").write_text("needle")
    rig.root = rig.session(mode=PermissionMode.ASK)
    _give(rig, "ask read notes", "deny read *.pem")
    (rig.workdir / "notes" / "b.pem").write_text("needle")
    rig.script("root", do(call("grep", pattern="needle", path="notes")))
    rig.worker()
    rig.prompt()
    session = rig.one("select session_id from agentmesh.agents where id = %s", rig.root)
    (request,) = rig.until(lambda: rig.db.run(requests.pending, session), "a request")
    rig.db.run(requests.answer, request.id, {"decision": "once"}, "a person")
    rig.rest()
    (result,) = rig.results("grep")
    assert [match["path"] for match in result["matches"]] == ["notes/a.env"]
    assert "1 file is left out" in result["note"]


@pytest.mark.parametrize(
    ("mode", "rules", "to", "is_followed"),
    [
        (PermissionMode.ASK, ["allow web_fetch {site}/docs/*"], "/docs/b", True),
        (PermissionMode.ASK, ["allow web_fetch {site}/docs/*"], "/admin", False),
        (PermissionMode.ASK, ["allow web_fetch {site}/docs/*"], "/docs/../admin", False),
        (PermissionMode.ASK, ["allow web_fetch *", "ask web_fetch {site}/admin"], "/admin", False),
        (PermissionMode.ALL, ["deny web_fetch {site}/admin"], "/admin", False),
        (PermissionMode.ALL, ["deny web_fetch {site}/admin"], "/x/..//%61dmin/", False),
        (PermissionMode.ALL, ["deny web_fetch {site}/admin"], "/docs/b", True),
    ],
)
def test_a_redirect_is_followed_only_where_rules_let_the_call_go(
    rig: Rig, mode: PermissionMode, rules: list[str], to: str, is_followed: bool
):
    pages = {"/docs/a": moved(to), to: answer("the page")}
    with serving(pages) as server:
        rig.root = rig.session(mode=mode)
        _give(rig, *(rule.format(site=server.url) for rule in rules))
        parts = rig.worker()
        parts.tools["web_fetch"] = WebFetch(Web(allow_private=(server.url.partition("://")[2],)))
        rig.script("root", do(call("web_fetch", url=f"{server.url}/docs/a")))
        rig.run()
    (result,) = rig.results("web_fetch")
    assert ("content" in result, "redirect" in result) == (is_followed, not is_followed), result
