"""The examples of docs/how-to/python.md do what the page says."""

from __future__ import annotations

import ast
import contextlib
import io
import re
from pathlib import Path
from typing import Any

import agentmesh
from agentmesh.llm.simulator.reply import ScriptedReply
from agentmesh.llm.simulator.request import ChatRequestView
from tests.fixtures.engine import Rig, call, do, say, who

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "python.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def answer(view: ChatRequestView) -> ScriptedReply:
    """What the model of the page says: by whose turn it is, and what was asked."""
    asked, used = view.input_text, view.step
    match who(view), asked:
        case "reader", text if "words" in text:
            return say("14 words")
        case "reader", _:
            return say("3 lines")
        case "teller", _:
            return say("Told.") if used else do(call("send", to="parent", message="14 words"))
        case "finder" | "scout", _:
            return do(call("report", file="poem.txt", line=used and 3))
        case ("clerk" | "look") as name, _:
            return say({"clerk": "Could I have a cake?", "look": "too long"}[name])
        case _, text if "Count" in text:
            return say("There are 3.") if used else do(call("bash", command="echo 3"))
        case _, text if "Make a file" in text:
            return say("I may not.") if used else do(call("bash", command="touch file"))
        case _, text if "cake" in text:
            return _shop(view) if used else do(call("opening_hours", shop="bakery"))
        case _, text if "criticised" in text:
            given = call("task", description="look", prompt="[look] Read it.", subagent_type="critic")
            return say(f"The critic says: {_result(view, 'task', 'result')}.") if used else do(given)
        case _:
            return say("Hello!")


def _shop(view: ChatRequestView) -> ScriptedReply:
    if view.step == 1:
        return do(call("reserve", shop="bakery", what="a cake"))
    opens, said = _result(view, "opening_hours", "opens"), _result(view, "reserve", "result")
    return say(f"It opens at {opens}, and they were asked: {said}")


def _result(view: ChatRequestView, tool: str, key: str) -> Any:
    found = view.last_result(tool)
    assert found is not None
    return found.result[key]


def test_every_example_prints_what_stands_below_it(rig: Rig, machine, monkeypatch):
    monkeypatch.setattr(rig.model, "_responder", answer)
    names: dict[str, Any] = {"__name__": "page"}
    blocks = BLOCK.findall(PAGE)
    assert len(blocks) == PAGE.count("```python\n") >= 10
    for number, (code, expected) in enumerate(blocks, 1):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(code, f"docs/how-to/python.md, example {number}", "exec"), names)
        assert out.getvalue() == expected, f"example {number}:\n{code}"


def test_what_is_exported_is_what_type_checkers_see():
    tree = ast.parse((ROOT / "agentmesh" / "__init__.py").read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == agentmesh._EXPORTS
    for name in seen:
        assert getattr(agentmesh, name) is not None
        assert name in dir(agentmesh)


def test_the_page_speaks_of_names_that_there_are():
    named = set(re.findall(r"agentmesh\.([A-Za-z_]+)", re.sub(r"agentmesh\.domain\S+", "", PAGE)))
    assert {name for name in named if not hasattr(agentmesh, name)} == set()
