"""A worker is killed (SIGKILL) at each boundary of its commits; another takes over, and in the end nothing shows."""

from __future__ import annotations

import signal

import pytest

from tests.fixtures.engine import Rig, call, do, once, say
from tests.fixtures.story import DIED, assert_valid_requests, story

POINTS = [
    *(
        "after claim 2",
        "after claim 3",
        "after fork 1",
        "after start_calls 1",
        "after wait_begin 1",
        "after wait_take 1",
    ),
    *("after send 1", "after send 2", "after kill 1"),
    *(f"after begin_step {n}" for n in (1, 2, 3, 5, 7)),
    *(f"after finish_step {n}" for n in (1, 2, 3, 5, 7)),
    *(f"after finish_calls {n}" for n in (1, 2)),
    # Between two commits something was done that is nowhere yet: a model has answered, a tool has run.
    *(
        "before claim 2",
        "before finish_step 1",
        "before finish_step 5",
        "before finish_calls 1",
        "before finish_calls 2",
    ),
    *("before wait_take 1", "before send 2", "before kill 1"),
]
STORY = {
    "root": [
        "user: go",
        "says: fork",
        "fork → agent_id, name",
        "says: glob bash list_agents",
        "glob → files",
        "bash → exit_code, output",
        "list_agents → agents",
        "says: wait",
        "wait → complete: child received 'the report'",
        "says: send kill",
        "send → message_id, status, to",
        "kill → killed",
        "says: the end",
    ],
    "child": [
        "mail: work",
        "says: send",
        "send → message_id, status, to",
        "says: I have ended",
        "mail: thanks",
        "event: killed",
    ],
}


def script(rig: Rig) -> None:
    rig.script(
        "root",
        do(call("fork", name="child", prompt="work")),
        do(call("glob", pattern="*"), call("bash", command="echo ran >> log"), call("list_agents")),
        do(call("wait", timeout=60, from_agents=["child"])),
        once(
            lambda: rig.status("child") == "idle",
            do(call("send", to="child", message="thanks"), call("kill", agent_id="child")),
        ),
        say("the end"),
    )
    rig.script(
        "child",
        once(lambda: rig.waits("root"), do(call("send", to="parent", message="the report"))),
        say("I have ended"),
        once(lambda: rig.status("child") == "dead", say("never said")),
    )


def test_the_story_of_an_undisturbed_run(rig: Rig):
    script(rig)
    rig.worker()
    rig.run()
    assert {agent: story(rig, agent) for agent in STORY} == _with_mail_of_the_killed(rig)


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_repeats_and_loses_nothing(rig: Rig, point):
    script(rig)
    first = rig.process(point)
    rig.prompt()
    assert first.join() == -signal.SIGKILL
    rig.bury(first.worker_id)
    rig.worker()
    rig.rest()

    expected = _with_mail_of_the_killed(rig)
    (bash,) = rig.results("bash")
    ran = (rig.workdir / "log").read_text() if (rig.workdir / "log").exists() else ""
    if "error" in bash:
        assert bash["error"] == DIED
        expected["root"][5] = "bash → error, hint"
        assert ran in ("", "ran\n"), "it is not repeated"
    else:
        assert (bash["exit_code"], ran) == (0, "ran\n")
    assert {agent: sorted(story(rig, agent)) for agent in STORY} == {key: sorted(of) for key, of in expected.items()}
    assert rig.last()[0] == "the end"
    assert rig.one("select count(*) from agentmesh.agents") == 2
    assert rig.one("select count(*) from agentmesh.mail where read_at is not null and body <> 'thanks'") == 3
    for agent in STORY:
        assert_valid_requests(rig, agent)


def _with_mail_of_the_killed(rig: Rig) -> dict[str, list[str]]:
    """Return the story; whether the child has read the last message before it was killed is left to chance."""
    expected = {agent: list(lines) for agent, lines in STORY.items()}
    if "mail: thanks" not in story(rig, "child"):
        expected["child"].remove("mail: thanks")
    return expected
