"""``agentmesh doctor --model``: what a model server can, said and remembered."""

from __future__ import annotations

from typing import Any

from agentmesh.domain.rows import Capability
from agentmesh.store import capabilities
from tests.llm.misbehaving import error, misbehaving, plain
from tests.llm.test_probe import PROPS, Model

CONFIG = """
[providers.acme]
base_url = "{url}"
{more}
"""


def test_it_says_what_a_server_can_and_remembers_it(am, mesh, here):
    with misbehaving(Model(streams=False)) as server:
        server.documents["/props"] = plain(PROPS)
        am.configure(CONFIG.format(url=server.url, more="stream = true"))
        done = am("doctor", "--model", "acme/m-1")
        assert done.code == 0, done.err
        told = am("doctor", "--model", "acme/m-1", "--json").data
    assert f"acme/m-1 at {server.url}\n" in done.out
    assert "  slots           2 (/props)\n" in done.out
    assert "  context window  4,096 tokens (/props)\n" in done.out
    assert "the whole answer is not (the configuration says stream = true)\n" in done.out
    assert "All workers know it now." in done.out
    facts: dict[str, Any] = {
        "streams": False,
        "needs_choice": False,
        "forced_calls": "tool_choice",
        "slots": 2,
        "context_window": 4096,
    }
    assert told["found"] == {**facts, "caches": True}
    assert (told["configured"], told["remembered"]) == ({"streams": True}, True)
    found = Capability("acme", server.url, "m-1", caches=True, **facts)
    assert mesh.run(capabilities.current) == [found]


def test_a_server_that_does_not_answer(am, mesh, here):
    with misbehaving(error(401, "no")) as server:
        am.configure(CONFIG.format(url=server.url, more=""))
        done = am("doctor", "--model", "acme/m-1")
    assert (done.code, "wants an API key" in done.err) == (1, True)
    assert mesh.run(capabilities.current) == []


def test_what_cannot_be_remembered_is_still_said(lonely):
    with misbehaving(Model()) as server:
        lonely.configure(CONFIG.format(url=server.url, more=""))
        nowhere = ("--database-url", "postgresql://x@127.0.0.1:1/x")
        done = lonely("doctor", "--model", "acme/m-1", *nowhere)
    assert "  streams         yes, also with tools\n" in done.out
    assert "It is not remembered." in done.out
    assert (done.code, "what was found out is not remembered" in done.err) == (1, True)


def test_what_makes_no_sense_is_refused(lonely):
    assert lonely("doctor", "--model", "demo").code == 2
    assert lonely("doctor", "--model", "x/y", "--deep").code == 2
    assert lonely("doctor", "--model", "x").code != 0
