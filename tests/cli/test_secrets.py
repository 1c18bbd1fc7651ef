"""No secret of the worker's environment reaches a command, a row or what is printed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agentmesh.llm.simulator.reply import Fault, FaultKind, ScriptedCall, ScriptedReply
from agentmesh.llm.simulator.request import ChatRequestView
from agentmesh.llm.simulator.server import Simulator
from tests.tools.web_server import answer, serving

CANARY = "canary-5f0c1b"
LOOKING = "for each in /proc/[0-9]*/environ; do tr '\\0' '\\n' < $each; done 2>&1 | grep -a OPENAI_API; env; echo end"
ROWS = """
    select row_to_json(t)::text from agentmesh.transcript t
    union all
    select row_to_json(w)::text from agentmesh.workers w
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the environment of other processes in /proc")
def test_a_command_finds_no_key_in_its_own_or_its_parents_environment(am, mesh):
    done = am("run", "--model", "demo", "--permission-mode", "all", f"run {LOOKING}", OPENAI_API_KEY=CANARY)
    assert done.code == 0, done.err
    (result,) = mesh.column("select content ->> 'result' from agentmesh.transcript where kind = 'tool_result'")
    assert "AGENTMESH_AGENT=" in result, "the command ran, and saw its environment"
    assert CANARY not in done.out + done.err + result
    assert "AGENTMESH_DATABASE_URL" not in result
    assert not [row for row in mesh.column(ROWS) if CANARY in row]


def test_no_key_reaches_a_page_a_row_or_a_word_of_an_error(am, mesh, database_url):
    """A whole run: pages fetched and refused, a command, and a model server that repeats the key in its error."""
    with serving({"/": answer("a page"), "/gone": answer(status="404 Not Found")}) as web:

        def reply(view: ChatRequestView) -> ScriptedReply:
            if view.steps_since(-1) > 0:
                return ScriptedReply(fault=Fault(FaultKind.STATUS, 400, message=f"bad request with key {CANARY}"))
            urls = [f"{web.url}/", f"{web.url}/gone", "http://127.0.0.2/"]
            fetches = [ScriptedCall("web_fetch", {"url": url}) for url in urls]
            look = ScriptedCall("bash", {"command": "env; tr '\\0' '\\n' < /proc/$PPID/environ"})
            return ScriptedReply(tool_calls=(*fetches, look))

        config = Path(am.environ["XDG_CONFIG_HOME"]) / "agentmesh" / "config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(f'[web]\nallow_private = ["{web.url.removeprefix("http://")}"]\n')
        with Simulator(reply) as model:
            environ = {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": CANARY, "AWS_SECRET_ACCESS_KEY": CANARY}
            done = am("run", "--model", "m", "--permission-mode", "all", "go", **environ)
            asked = [request.headers for request in model.requests]
    results = mesh.column("select content ->> 'result' from agentmesh.transcript where kind = 'tool_result'")
    assert ["a page" in result for result in results].count(True) == 1, results
    assert any("AGENTMESH_AGENT=" in result for result in results), "the command ran, and saw its environment"
    assert any(CANARY in str(headers) for headers in asked), "the model server got the key"
    assert len(web.requests) == 2
    assert CANARY not in "".join(web.requests)
    assert done.code == 1
    assert CANARY not in done.out + done.err
    assert not [row for row in mesh.column(ROWS) if CANARY in row]
