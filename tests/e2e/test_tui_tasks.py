"""Tasks in a terminal: seen from their parent while they run, one key away, and gone from the rotation afterwards."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

from tests.fixtures.engine import Rig, call, do, say, when
from tests.fixtures.terminal import Desk


def task(description: str, **more: Any) -> Any:
    """Return a call of task; its sub-agent is scripted by the name that it gets."""
    return call("task", description=description, prompt=f"[{description.replace(' ', '-')}] Do it.", **more)


def seen(pattern: str) -> Callable[[str], object]:
    """Return whether a line is on the screen."""
    return lambda text: re.search(pattern, text, re.MULTILINE)


def test_tasks_are_followed_from_their_parent_and_in_their_own_view(desk: Desk, rig: Rig):
    looked, counted = threading.Event(), threading.Event()
    rig.script(
        "root",
        do(task("look around", subagent_type="explore"), task("count files"), text="Two tasks."),
        say("Both are done."),
    )
    rig.script("look-around", do(call("glob", pattern="*")), when(looked, say("Nothing is there.")))
    rig.script("count-files", when(counted, say("There are none.")))
    rig.worker(concurrency=4)
    shown = desk.open()
    shown.enter("look at it")
    shown.until(
        seen(r"▸ task  look around +◐ running"),
        seen(r"↳ look-around \(explore\) · .*1 tool call · "),
        seen(r"▸ task  count files +◐ running"),
        seen(r"^ +look-around +◐ running +1 call "),
        seen(r"^ +count-files +◐ running +0 calls"),
        "▸ 2 children",
    )
    shown.press("f3")
    shown.until("root › count-files", "[count-files] Do it.")
    counted.set()
    shown.until("There are none.", "root › count-files", "look-around ›")
    shown.press("ctrl+up")
    shown.until(
        "Message root",
        seen(r"▸ task  count files +✓ completed"),
        "· There are none.",
        seen(r"^ +count-files +✓ completed"),
        seen(r"^ +look-around +◐ running"),
        "▸ 1 child",
    )
    looked.set()
    shown.until("Both are done.", lambda text: "◐" not in text and "below" not in text)
    shown.press("ctrl+down")
    shown.until("It has no children", "Message root")
    shown.press("ctrl+p")
    shown.until(seen(r"○ look-around +task done"), seen(r"○ count-files +task done"))
    shown.type("loo")
    shown.press("enter")
    shown.until("root › look-around", "Nothing is there.")
    rig.rest()
