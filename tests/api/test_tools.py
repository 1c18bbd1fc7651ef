"""Plain functions as tools: what a model is told, what it may give, and what comes back."""

from __future__ import annotations

import asyncio
import math
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel

import agentmesh
from agentmesh.llm.simulator.reply import ScriptedCall
from agentmesh.store import workers
from tests.api.conftest import InThread, Open
from tests.fixtures.engine import Rig, call, do, say, until, when


class Unit(StrEnum):
    CELSIUS = "celsius"
    KELVIN = "kelvin"


@dataclass
class Weather:
    city: str
    degrees: float
    day: date


@dataclass
class Owner:
    lock: Any


def weather(city: str, day: date = date(2026, 1, 1), unit: Unit = Unit.CELSIUS, *, days: int = 1) -> Weather:
    """Look up the weather of a city.

    Knows two of them.

    Args:
        city: Name of the city,
            in English.
        days (int): How many days ahead.

    Returns:
        What it is like.
    """
    if city not in ("Oslo", "Rome"):
        raise agentmesh.ToolError(f"{city} is not known", "Try Oslo or Rome.")
    return Weather(city, 3.5 * days + (273 if unit is Unit.KELVIN else 0), day)


def results(session: agentmesh.Session, who: str = "root") -> list[Any]:
    found = session.agent(who).conversation()
    return [row.content["result"] for row in found if row.kind == agentmesh.Kind.TOOL_RESULT]


def told(rig: Rig, name: str) -> dict[str, Any]:
    """What the model was told of a tool."""
    (found,) = [tool for tool in rig.requests()[-1].body["tools"] if tool["function"]["name"] == name]
    function: dict[str, Any] = found["function"]
    return function


def ask(rig: Rig, mesh: agentmesh.Mesh, *calls: ScriptedCall, mode: str = "all", **options: Any) -> list[Any]:
    """Let the root make these calls in one step; return their results."""
    rig.script("root", do(*calls), say("done"))
    session = mesh.start_session(permission_mode=mode)
    with mesh.worker(**options):
        assert session.run("go") == "done"
    return results(session)


def test_a_model_is_told_what_hints_and_docstring_say(rig: Rig, open_mesh: Open):
    ask(rig, open_mesh(tools=[weather]), call("weather", city="Oslo"))
    known = told(rig, "weather")
    assert known["description"] == "Look up the weather of a city.\n\nKnows two of them."
    fields = known["parameters"]["properties"]
    assert known["parameters"]["required"] == ["city"]
    assert fields["city"] == {"type": "string", "description": "Name of the city, in English."}
    assert fields["days"] == {"type": "integer", "default": 1, "description": "How many days ahead."}
    assert (fields["day"]["format"], fields["unit"]["enum"]) == ("date", ["celsius", "kelvin"])
    names = [tool["function"]["name"] for tool in rig.requests()[-1].body["tools"]]
    assert names == sorted(names), "one list with the others"


def test_arguments_arrive_as_their_types_with_defaults(rig: Rig, open_mesh: Open):
    calls = [
        call("weather", city="Oslo"),
        call("weather", city="Rome", day="2026-03-01", unit="kelvin", days="2"),
        call("weather", city="Oslo", dayz=3),
    ]
    first, second, third = ask(rig, open_mesh(tools=[weather]), *calls)
    assert first == {"city": "Oslo", "degrees": 3.5, "day": "2026-01-01"}
    assert second == {"city": "Rome", "degrees": 280.0, "day": "2026-03-01"}
    assert "did you mean 'day'" in third["note"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "city: field required"),
        ({"city": "Oslo", "days": "many"}, "days: input should be a valid integer"),
        ({"city": "Oslo", "unit": "feet"}, "'celsius' or 'kelvin'"),
        ({"city": "Bern"}, "Bern is not known"),
    ],
)
def test_bad_arguments_are_results_with_advice(rig: Rig, open_mesh: Open, given: dict[str, Any], words: str):
    (result,) = ask(rig, open_mesh(tools=[weather]), call("weather", **given))
    assert words in result["error"]
    assert result["hint"]


def test_an_exception_is_a_result_without_a_traceback(rig: Rig, open_mesh: Open, caplog):
    def broken() -> None:
        """Fail."""
        raise KeyError("missing")

    def leaving() -> None:
        """Leave the program."""
        raise SystemExit("gone")

    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("nothing to say")

    def mute() -> None:
        """Fail, and fail to say why."""
        raise Mute

    mesh = open_mesh(tools=[broken, leaving, mute])
    failed, left, unsaid = ask(rig, mesh, call("broken"), call("leaving"), call("mute"))
    assert unsaid == {"error": "mute failed: Mute"}
    assert failed == {"error": "broken failed: KeyError: 'missing'"}
    assert left == {"error": "leaving failed: SystemExit: gone"}
    assert "the tool broken failed" in caplog.text, "the log has the traceback"


@pytest.mark.parametrize("effect", ["read", "write"])
@pytest.mark.parametrize("error", [asyncio.CancelledError, KeyboardInterrupt, GeneratorExit])
def test_whatever_a_tool_raises_its_agent_goes_on(rig: Rig, open_mesh: Open, effect, error):
    def cancelled() -> None:
        """Be cancelled."""
        raise error

    mesh = open_mesh(tools=[agentmesh.tool(effect=effect)(cancelled)])
    assert ask(rig, mesh, call("cancelled")) == [{"error": f"cancelled failed: {error.__name__}"}]


def test_progress_that_is_no_text_is_told_as_text(rig: Rig, open_mesh: Open):
    def count(context: agentmesh.ToolContext) -> None:
        """Count."""
        context.progress(1)  # type: ignore[arg-type]
        until(lambda: rig.one("select activity from agentmesh.activity") == "1")

    assert ask(rig, open_mesh(tools=[agentmesh.tool(effect="read")(count)]), call("count")) == [{"result": None}]


def test_what_a_tool_returns_is_json(rig: Rig, open_mesh: Open):
    mesh = open_mesh(settings={"tool_output_bytes": 1024})

    @mesh.tool
    def give(what: Literal["none", "text", "list", "dict", "object", "lock", "late", "long", "longtext"]) -> Any:
        """Give something."""
        things: dict[str, Any] = {
            "none": None,
            "text": "x",
            "list": [1, date(2026, 1, 1)],
            "dict": {"a": {"b": Unit.KELVIN}},
        }
        things |= {"lock": Owner(threading.Lock()), "late": (things[key] for key in ("none", "missing"))}
        return {**things, "object": object(), "long": list(range(9999)), "longtext": "z" * 9999}[what]

    kinds = ("none", "text", "list", "dict", "object", "lock", "late", "long", "longtext")
    none, text, many, nested, thing, lock, late, long, longtext = ask(
        rig, mesh, *(call("give", what=kind) for kind in kinds)
    )
    assert (none, text, many) == ({"result": None}, {"result": "x"}, {"result": [1, "2026-01-01"]})
    assert nested == {"a": {"b": "kelvin"}}
    assert "give has run, but its return value is not JSON" in thing["error"]
    assert "give has run, but its return value is not JSON" in lock["error"]
    assert "give has run, but its return value is not JSON: KeyError: 'missing'" in late["error"]
    assert len(long["result"]) < 2000
    assert "middle is missing" in long["note"]
    assert len(longtext["result"]) < 2000


@pytest.mark.parametrize("effect", ["read", "write"])
def test_a_number_that_json_does_not_have_is_a_result_like_others(rig: Rig, open_mesh: Open, effect):
    def mean() -> dict[str, Any]:
        """Return the mean of nothing."""
        return {"mean": math.nan, "most": -math.inf}

    mesh = open_mesh(tools=[agentmesh.tool(effect=effect)(mean)])
    assert ask(rig, mesh, call("mean")) == [{"mean": "NaN", "most": "-Infinity"}]
    assert '"mean": "NaN"' in rig.requests()[-1].body["messages"][-1]["content"]


def test_a_number_that_json_does_not_have_can_be_asked_about(rig: Rig, open_mesh: Open):
    def scale(by: float) -> str:
        """Scale."""
        return f"by {by}"

    mesh = open_mesh(tools=[scale])
    rig.script("root", do(ScriptedCall("scale", '{"by": 1e999}')), say("done"))
    session = mesh.start_session(attended=True)
    with mesh.worker():
        session.send("go")
        (asked,) = until(session.requests)
        assert asked.arguments == {"by": "Infinity"}
        session.answer(asked, "once")
        session.wait()
    assert results(session) == [{"result": "by inf"}]


def test_a_program_answers_before_many_agents_start(rig: Rig, open_mesh: Open):
    mesh = open_mesh(settings={"ask_agents": 2})
    rig.script("root", do(*[call("task", description=f"part {n}", prompt=f"[t{n}] look") for n in (1, 2)]), say("ok"))
    session = mesh.start_session(attended=True, permission_mode="all")
    with mesh.worker():
        session.send("go")
        (asked,) = until(session.requests)
        assert asked.agents == 2
        assert asked.reason.startswith("starts 2 agents on openai/scripted, reserves up to ")
        session.answer(asked, "no", reason="one is enough")
        session.wait()
    assert [one["error"] for one in results(session)] == ["the user refused to start 2 agents: one is enough"] * 2


@pytest.mark.slow
def test_reads_that_hang_do_not_keep_their_program_from_ending(rig: Rig, machine):
    rig.script("root", do(call("hang"), call("hang")), say("done"))
    program = """
import threading
import agentmesh
from agentmesh.engine import worker

worker._STOP_SECONDS = 0.1
hanging = threading.Event()

@agentmesh.tool(effect="read")
def hang() -> None:
    \"\"\"Hang.\"\"\"
    hanging.set()
    threading.Event().wait()

with agentmesh.open(background_workers=False, tools=[hang]) as mesh:
    session = mesh.start_session(permission_mode="all")
    with mesh.worker():
        session.send("go")
        assert hanging.wait(20)
"""
    ended = subprocess.run([sys.executable, "-c", program], timeout=30, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "did not stop: agent-0" in ended.stderr


def test_a_function_stays_a_function(mesh: agentmesh.Mesh):
    @mesh.tool(effect="read", name="add-up")
    def add(a: int, b: int = 2) -> int:
        """Add."""
        return a + b

    assert add(1) == 3
    assert "add-up" in mesh.core.tool_names()


def test_one_with_effects_is_asked_about_and_one_that_reads_is_not(rig: Rig, open_mesh: Open):
    @agentmesh.tool(effect="read")
    def look() -> str:
        """Look."""
        return "seen"

    @agentmesh.tool
    def change() -> str:
        """Change."""
        return "changed"

    mesh = open_mesh(tools=[look, change])
    seen, refused = ask(rig, mesh, call("look"), call("change"), mode="ask")
    assert seen == {"result": "seen"}
    assert (refused["refused"], refused["allow_with"]) == (True, "--permission-mode all")


def test_rules_of_the_configuration_hold_for_own_tools(rig: Rig, open_mesh: Open, tmp_path: Path):
    config = tmp_path / "home" / "config.toml"
    config.parent.mkdir(exist_ok=True)
    config.write_text('[permissions]\ndeny = ["look"]\nallow = ["change"]\n')

    @agentmesh.tool(effect="read")
    def look() -> str:
        """Look."""
        return "seen"

    def change() -> str:
        """Change."""
        return "changed"

    denied, done = ask(rig, open_mesh(tools=[look, change]), call("look"), call("change"), mode="ask")
    assert "a rule denies" in denied["error"]
    assert done == {"result": "changed"}


def undocumented(a: int) -> int:
    return a


def untyped(a):
    """Do."""


def starred(*many: int) -> None:
    """Do."""


async def asynchronous(a: int) -> None:
    """Do."""


def generated(a: int) -> Iterator[int]:
    """Do."""
    yield a


def contextual(one: agentmesh.ToolContext, two: agentmesh.ToolContext) -> None:
    """Do."""


def unserializable(a: threading.Event) -> None:
    """Do."""


def hidden(_a: int) -> None:
    """Do."""


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (undocumented, "no docstring"),
        (untyped, "a has no type"),
        (starred, "many cannot be given by name"),
        (asynchronous, "is async"),
        (generated, "it yields"),
        (int, "Python does not know its parameters"),
        (contextual, "one and two both take the context"),
        (unserializable, "JsonSchema|arbitrary|schema"),
        (hidden, "cannot be called _a"),
        (lambda: 1, "its name should be"),
    ],
)
def test_what_no_tool_can_be_made_of_is_refused(machine, function: Any, why: str):
    with pytest.raises(agentmesh.UsageError, match=why) as caught:
        agentmesh.open(tools=[function])
    assert caught.value.hint


def test_a_name_that_is_taken_and_a_tool_that_comes_too_late_are_refused(mesh: agentmesh.Mesh):
    with pytest.raises(agentmesh.UsageError, match="a tool bash already"):
        mesh.tool(name="bash")(weather)
    mesh.tool(name="weather")(weather)
    with mesh.worker(), pytest.raises(agentmesh.UsageError, match="too late"):
        mesh.tool(name="later")(weather)
    with pytest.raises(agentmesh.UsageError, match="effect 'sideways'"):
        agentmesh.tool(effect="sideways")  # type: ignore[call-overload]


def test_annotated_words_and_sphinx_fields_describe_too(rig: Rig, mesh: agentmesh.Mesh):
    @mesh.tool
    def find(pattern: Annotated[str, "What to look for."], copy: bool = False, limit: int | None = None) -> str:
        """Find it.

        :param copy: Whether to copy
            what was found.
        :returns: a text
        """
        return f"{pattern} {copy} {limit}"

    assert ask(rig, mesh, call("find", pattern="x", copy="true")) == [{"result": "x True None"}]
    fields = told(rig, "find")["parameters"]["properties"]
    assert fields["pattern"]["description"] == "What to look for."
    assert fields["copy"]["description"] == "Whether to copy what was found."
    assert told(rig, "find")["description"] == "Find it."


def test_a_tool_forks_and_waits_also_in_the_only_place_of_its_worker(rig: Rig, mesh: agentmesh.Mesh):
    @mesh.tool(effect="read")
    def research(topic: str, context: agentmesh.ToolContext) -> dict[str, Any]:
        """Have a sub-agent look into a topic."""
        context.progress(f"looking into {topic}")
        child = context.fork("researcher", f"look into {topic}")
        context.wait(child)
        return {"by": context.agent.name, "found": child.output(), "in": context.workdir.name}

    rig.script("researcher", say("it is about agents"))
    rig.script("researcher-2", say("it is about mail"))
    calls = [call("research", topic="agentmesh"), call("research", topic="mail")]
    found = ask(rig, mesh, *calls, concurrency=1)
    assert sorted(one["found"] for one in found) == ["it is about agents", "it is about mail"]
    assert all(one["by"] == "root" and one["in"] == "work" for one in found)
    assert "context" not in told(rig, "research")["parameters"]["properties"]


def test_an_interrupt_ends_a_tools_wait(rig: Rig, mesh: agentmesh.Mesh):
    go = threading.Event()
    ended: list[str] = []

    @mesh.tool
    def delegate(context: agentmesh.ToolContext) -> str:
        """Have somebody work."""
        child = context.fork("slow", "work")
        try:
            child.wait()
        except agentmesh.Interrupted as error:
            ended.append(error.message)
            assert context.cancelled
            with pytest.raises(agentmesh.Interrupted):
                context.check()
            raise
        return "not reached"

    rig.script("root", do(call("delegate")), say("done"))
    rig.script("slow", when(go, say("late")))
    session = mesh.start_session(permission_mode="all")
    with mesh.worker():
        session.send("go")
        rig.until_asked("slow")
        assert [ref.name for ref in session.interrupt("root")] == ["root"]
        assert session.wait("root").outcome == "complete"
        assert ended == ["the tool was stopped"]
        go.set()
        assert session.wait("slow").results[0].output == "late", "its sub-agent goes on"


def test_a_killed_agents_tool_is_told(rig: Rig, mesh: agentmesh.Mesh):
    started, told_to_stop = threading.Event(), threading.Event()

    @mesh.tool
    def sleep(context: agentmesh.ToolContext) -> str:
        """Sleep."""
        started.set()
        if context.cancel.wait(20):
            told_to_stop.set()
        return "woken"

    rig.script("child", do(call("sleep")), say("late"))
    session = mesh.start_session(permission_mode="all")
    with mesh.worker():
        child = session.fork("child", "go")
        assert started.wait(20)
        child.kill()
        assert told_to_stop.wait(20)
        assert child.wait().status == "dead"
    assert results(session, str(child.id)) == [{"error": "killed"}]


def test_only_workers_that_have_its_tools_run_a_session(rig: Rig, open_mesh: Open):
    rig.script("root", do(call("weather", city="Oslo")), say("cold"))
    mine, other = open_mesh(tools=[weather]), open_mesh()
    session = mine.start_session(permission_mode="all")
    assert list(session.needs) == ["tool weather"]
    with other.worker():
        session.send("go")
        (worker,) = rig.db.run(workers.alive)
        assert rig.db.run(workers.claimable, worker["id"], 10) is False
        assert rig.db.run(workers.serving, session.id, "openai") is False
        with pytest.raises(agentmesh.UsageError, match="needs: tool weather") as caught:
            session.wait()
        assert "mesh.worker()" in caught.value.hint
        with pytest.raises(agentmesh.UsageError, match="needs: tool weather"):
            other.resume_session(session.id).wait()
        assert session.root.status == "running", "its prompt waits for a worker that can"
        why = "select why from agentmesh.v_stuck where problem = 'no worker'"
        assert "tool weather): start the Python program" in rig.one(why)
        with mine.worker():
            assert session.wait("root").results[0].output == "cold"
    assert results(session)[0]["degrees"] == 3.5


def test_a_program_with_a_tool_of_that_name_goes_on_with_a_session(rig: Rig, open_mesh: Open):
    rig.script("root", do(call("weather", city="Oslo")), say("cold"))
    session = open_mesh(tools=[weather]).start_session(permission_mode="all")
    session.send("go")

    later = open_mesh(tools=[agentmesh.tool(weather)])
    with later.worker():
        assert later.resume_session(session.id).root.wait().output == "cold"


def test_the_command_line_refuses_a_session_that_it_cannot_run(rig: Rig, open_mesh: Open):
    from agentmesh.cli.serving import require_provider

    mesh = open_mesh(tools=[weather])
    session = mesh.start_session()
    row = mesh.core.find_session(session=str(session.id), workdir=Path.cwd())
    with pytest.raises(agentmesh.UsageError, match="parts of a Python program: tool weather"):
        require_provider(open_mesh().core, row)
    assert not mesh.start_background_worker(session), "that would have none of them"


def test_a_type_of_the_programs_own_has_its_tools_and_words(rig: Rig, open_mesh: Open):
    forecaster = agentmesh.AgentType("forecaster", "Knows the weather.", "You forecast.", tools=("weather",))
    task = call("task", description="look outside", prompt="[look] Oslo?", subagent_type="forecaster")
    rig.script("look", do(call("weather", city="Oslo")), say("3.5"))
    mesh = open_mesh(tools=[weather], agent_types=[forecaster])
    (result,) = ask(rig, mesh, task)
    assert (result["status"], result["result"], result["tool_calls"]) == ("completed", "3.5", 1)
    request = rig.requests("look")[0].body
    assert [tool["function"]["name"] for tool in request["tools"]] == ["weather"]
    assert "You forecast." in request["messages"][0]["content"]
    assert "- forecaster: Knows the weather." in told(rig, "task")["description"]


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (agentmesh.AgentType("No Name", "x", "y"), "cannot be called"),
        (agentmesh.AgentType("empty", "", "y"), "needs a description"),
        (agentmesh.AgentType("odd", "x", "y", tools=("whether",)), "unknown tools: whether"),
    ],
)
def test_a_type_that_cannot_be_is_refused(mesh: agentmesh.Mesh, kind: agentmesh.AgentType, why: str):
    with pytest.raises(agentmesh.UsageError, match=why):
        mesh.add_agent_type(kind)


def test_a_worker_that_leaves_does_not_wait_for_ever_for_a_tool(rig: Rig, mesh: agentmesh.Mesh):
    @mesh.tool(effect="read")
    def patient(context: agentmesh.ToolContext) -> str:
        """Wait for somebody who never comes."""
        context.fork("never", "work").wait()
        return "not reached"

    go = threading.Event()
    rig.script("root", do(call("patient")), say("done"))
    rig.script("never", when(go, say("late")))
    session = mesh.start_session(permission_mode="all")
    with mesh.worker():
        session.send("go")
        rig.until_asked("never")
        closing = InThread(mesh.close)
        closing.result()
        go.set()
    until(lambda: rig.one("select count(*) from agentmesh.agents where worker_id is not null") == 0)


class Node(BaseModel):
    value: int
    children: list[Node] = []


def test_a_type_may_hold_itself(open_mesh: Open):
    def total(node: Node) -> int:
        """Add the values of a tree."""
        return node.value + sum(total(child) for child in node.children)

    mesh = open_mesh(tools=[total])
    mesh.start_session()
    defined = [tool["function"] for tool in mesh.core.tool_definitions(Path.cwd(), "openai/scripted")]
    (made,) = [one for one in defined if one["name"] == "total"]
    inner = made["parameters"]["properties"]["node"]["properties"]["children"]["items"]
    assert inner == {"type": "object"}
