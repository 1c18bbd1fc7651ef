"""Writes docs/pictures: ten scenes of the screen at three sizes, of real runs; only the model is scripted.

Run it in the project's folder, with the environment that ``make`` makes: ``.venv/bin/python -m scripts.pictures``.
Names of scenes after it draw only those.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest.mock import patch

from textual.app import App
from textual.pilot import Pilot

from agentmesh.config.settings import load
from agentmesh.domain.states import PermissionMode
from agentmesh.llm.simulator.reply import Fault, FaultKind, Responder, ScriptedCall, ScriptedReply
from agentmesh.llm.simulator.request import ChatRequestView
from agentmesh.tui.setup import SetupApp
from scripts.frames import still
from scripts.stage import PATIENCE, ROOT, opened, report, until

SIZES = ((80, 24), (120, 40), (200, 50))
FOLDER = ROOT / "docs" / "pictures"
ANSWER = """\
## What `slugify` gets wrong

It drops every letter that is not ASCII, so `Übergröße` becomes `bergre`:

1. `normalize` is never called, so accents stay on their letters.
2. The pattern removes what it does not know, instead of replacing it.

```python
def slugify(title: str) -> str:
    plain = unicodedata.normalize("NFKD", title)
    ascii_only = plain.encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", ascii_only.lower()).strip("-")
```

| title | before | after |
|---|---|---|
| Übergröße | bergre | ubergroe |
| Hello, World | hello-world | hello-world |

I write the tests first, then the change, then I run"""
"""Streams, and is not at its end when the picture is taken."""
SLUG = '''\
"""Names of pages."""

import re


def slugify(title: str) -> str:
    """Return a title as a part of a URL."""
    return re.sub(r"[^a-z0-9 ]", "", title.lower()).replace(" ", "-")


def is_slug(text: str) -> bool:
    return text == slugify(text)
'''
EDIT = {
    "path": "slugs.py",
    "old": '    return re.sub(r"[^a-z0-9 ]", "", title.lower()).replace(" ", "-")\n',
    "new": '    plain = unicodedata.normalize("NFKD", title)\n'
    '    ascii_only = plain.encode("ascii", "ignore").decode()\n'
    '    return re.sub(r"[^a-z0-9]+", "-", ascii_only.lower()).strip("-")\n',
}
LOOK = ScriptedCall("read", {"path": "slugs.py"})
ROLES = ("reader", "tester", "linter", "writer", "checker")
PARTS = ("api", "cli", "docs", "store", "tools", "engine", "export", "screen", "config", "models")
HANGS = ScriptedReply(first_byte_delay=PATIENCE * 10)
"""An answer that does not come while pictures are taken."""


class Scene(NamedTuple):
    """One thing to see."""

    says: str
    """What a person sees in it."""
    stage: Callable[[], AbstractContextManager[App[Any]]]
    play: Callable[[Pilot[Any]], Awaitable[None]]
    """Leads the app to the scene."""


@contextmanager
def project(model: Responder, mode: PermissionMode | None = None, look: str = "dark") -> Iterator[App[Any]]:
    """Yield the screen on a small project whose agents this model plays."""
    with TemporaryDirectory(prefix="agentmesh-") as folder:
        workdir = Path(folder) / "pages"
        workdir.mkdir()
        Path(folder).chmod(0o755)
        (workdir / "slugs.py").write_text(SLUG, encoding="utf-8")
        with opened(model, workdir=workdir, mode=mode, look=look, title="") as app:
            yield app


@contextmanager
def without_model() -> Iterator[App[Any]]:
    """Yield the first screen of somebody who has not set up a model."""
    with TemporaryDirectory(prefix="agentmesh-") as folder:
        environ = {"HOME": folder}
        local = {"http://localhost:11434/v1": "Ollama"}
        with patch("agentmesh.app.model_list.local_servers", lambda: local):  # the same on every machine
            yield SetupApp(load({"data_dir": folder}, environ, Path(folder)), environ)


def says(pilot: Pilot[Any], text: str) -> Awaitable[None]:
    """Type a text and send it."""
    return pilot.press(*(("space" if letter == " " else letter) for letter in text), "enter")


def streams(view: ChatRequestView) -> ScriptedReply:
    """Look at the file, then explain it; the end of the explanation never comes."""
    if view.step == 0:
        return ScriptedReply("I look at the function first.", tool_calls=(LOOK,))
    size = 32
    fault = Fault(FaultKind.HANG_STREAM, after=len(ANSWER) // size + 3)
    return ScriptedReply(ANSWER + " the suite.", chunk_size=size, chunk_delay=0.01, fault=fault)


def fork(name: str, prompt: str) -> ScriptedCall:
    """Return the call that makes a child."""
    return ScriptedCall("fork", {"name": name, "prompt": prompt})


def wait(*names: str) -> ScriptedReply:
    """Return the answer that waits for these."""
    call = ScriptedCall("wait", {"timeout": 600, "from_agents": list(names)})
    return ScriptedReply("Each reports to me when it has an answer.", tool_calls=(call,))


def waits_for(names: list[str], child: Callable[[ChatRequestView, int], ScriptedReply]) -> Responder:
    """Return a model whose root forks children in sixteens and waits for all; ``child`` plays the n-th of them."""
    batches = [names[at : at + 16] for at in range(0, len(names), 16)]

    def model(view: ChatRequestView) -> ScriptedReply:
        if view.agent != "root":
            return child(view, names.index(view.agent))
        if view.step >= len(batches):
            return wait(*names)
        calls = tuple(fork(name, f"Look at {name.partition('-')[0]}.") for name in batches[view.step])
        return ScriptedReply(f"{len(calls)} questions at once." if not view.step else "", tool_calls=calls)

    return model


def of_twenty(view: ChatRequestView, number: int) -> ScriptedReply:
    """Report (most), fail (one), or go on working."""
    if number == 7:
        return ScriptedReply(fault=Fault(FaultKind.STATUS, status=401, message="Incorrect API key provided."))
    if view.step == 0:
        return ScriptedReply(tool_calls=(LOOK,) * (1 + number % 3))
    return HANGS if number % 4 == 1 else report("Nothing is wrong here.") if view.step == 1 else ScriptedReply("Done.")


def of_fifty(view: ChatRequestView, number: int) -> ScriptedReply:
    """Ask, fail, go on working, or report: each of them on the board."""
    match number % 12:
        case 0:
            return ScriptedReply(
                "All tests pass.", tool_calls=(ScriptedCall("bash", {"command": f"git push origin {view.agent}"}),)
            )
        case 5:
            return ScriptedReply(fault=Fault(FaultKind.STATUS, status=401, message="Incorrect API key provided."))
        case 3 | 8:
            return HANGS if view.step else ScriptedReply("I read the names first.", tool_calls=(LOOK,))
    steps = (ScriptedReply(tool_calls=(LOOK,)), report("Nothing is wrong here."))
    return steps[view.step] if view.step < 2 else ScriptedReply("I have sent my report: nothing is wrong here.")


def edits(view: ChatRequestView) -> ScriptedReply:
    """Change the function."""
    if view.step == 0:
        return ScriptedReply("I look at the function first.", tool_calls=(LOOK,))
    if view.step == 1:
        return ScriptedReply(
            "Accents are lost because nothing decomposes them.", tool_calls=(ScriptedCall("edit", EDIT),)
        )
    return ScriptedReply("`slugify` keeps letters with accents now: **Übergröße** becomes `ubergroe`.")


def has_a_failure(view: ChatRequestView) -> ScriptedReply:
    """Wait for three children, one of which fails."""
    names = ("reader", "tester", "writer")
    if view.agent == "root":
        return wait(*names) if view.step else ScriptedReply(tool_calls=tuple(fork(n, "Look at slugs.") for n in names))
    if view.agent == "tester" and view.step:
        return ScriptedReply(fault=Fault(FaultKind.STATUS, status=401, message="Incorrect API key provided."))
    if view.step == 0:
        return ScriptedReply("I look at the function first.", tool_calls=(LOOK,))
    return report("Accents are lost.") if view.agent == "reader" and view.step == 1 else HANGS


def has_a_tree(view: ChatRequestView) -> ScriptedReply:
    """Fork two levels of agents that work."""
    below = {"root": ("backend", "frontend", "docs"), "backend": ("schema", "queries"), "frontend": ("forms", "styles")}
    names = below.get(view.agent, ())
    if names and view.step == 0:
        return ScriptedReply(f"{len(names)} parts.", tool_calls=tuple(fork(n, f"Do the {n}.") for n in names))
    if names:
        return wait(*names)
    if view.step == 0:
        return ScriptedReply("I look at the files first.", tool_calls=(LOOK,))
    return report("Done.") if view.agent in ("schema", "docs") and view.step == 1 else HANGS


async def plays_first_start(pilot: Pilot[Any]) -> None:
    """Wait for the list of servers."""
    await until(pilot.app, "Another server")


async def plays_streaming(pilot: Pilot[Any]) -> None:
    """Ask, and see half of the answer."""
    await says(pilot, "What is wrong with slugify?")
    await until(pilot.app, "ubergroe")


async def plays_fan_in(pilot: Pilot[Any]) -> None:
    """Wait for twenty."""
    await says(pilot, "Look at every part")
    await until(pilot.app, r"(?s)▲ failed.*◐ running")
    await until(pilot.app, "5 running|6 running")


async def plays_board(pilot: Pilot[Any]) -> None:
    """Open the board of fifty."""
    pilot.app.main.presenter.opens_dialogs = False  # type: ignore[attr-defined]
    await says(pilot, "Look at every part, and push what is ready")
    await until(pilot.app, "5 need")
    await pilot.press("f12")
    await until(pilot.app, r"5 asks +4 failed")


async def plays_dialog(pilot: Pilot[Any]) -> None:
    """Be asked for an edit."""
    await says(pilot, "Keep letters with accents")
    await until(pilot.app, "a key chooses")


async def plays_failed_child(pilot: Pilot[Any]) -> None:
    """Go to the child that failed."""
    await says(pilot, "Look at slugs with three helpers")
    await until(pilot.app, "▲ failed")
    await until(pilot.app, "✓ received")
    await pilot.press("ctrl+down", "ctrl+left")
    await until(pilot.app, "› tester")
    await until(pilot.app, "refused the API key")


async def plays_diff(pilot: Pilot[Any]) -> None:
    """See what was changed."""
    await says(pilot, "Keep letters with accents")
    await until(pilot.app, "becomes")


async def plays_tree(pilot: Pilot[Any]) -> None:
    """Show the tree of two levels."""
    await says(pilot, "Build it in parts")
    await pilot.press("ctrl+t")
    await until(pilot.app, r"(?s)├.*└ ◐ queries.*└ ◐ styles")
    await until(pilot.app, r"(?s)docs.*✓ received")


async def plays_help(pilot: Pilot[Any]) -> None:
    """Press F1."""
    await pilot.press("f1")
    await until(pilot.app, "Commands")


TWENTY = [f"{part}-{role}" for part in PARTS for role in ROLES][:40:2]
FIFTY = [f"{part}-{role}" for part in PARTS for role in ROLES][1:]
SCENES = {
    "first-start": Scene("The first start without a model", without_model, plays_first_start),
    "streaming": Scene("An answer streams", lambda: project(streams), plays_streaming),
    "fan-in": Scene("The root waits for twenty agents", lambda: project(waits_for(TWENTY, of_twenty)), plays_fan_in),
    "board": Scene("The board of fifty agents", lambda: project(waits_for(FIFTY, of_fifty)), plays_board),
    "dialog": Scene("An agent asks whether it may change a file", lambda: project(edits), plays_dialog),
    "failed-child": Scene("A child has failed", lambda: project(has_a_failure), plays_failed_child),
    "diff": Scene(
        "What an edit changed, side by side where there is room",
        lambda: project(edits, PermissionMode.EDITS),
        plays_diff,
    ),
    "tree": Scene("The tree beside the conversation", lambda: project(has_a_tree), plays_tree),
    "help": Scene("Help", lambda: project(streams), plays_help),
    "light": Scene("The light theme", lambda: project(edits, PermissionMode.EDITS, "light"), plays_diff),
}


def main() -> None:
    """Draw the scenes, and the page that shows them."""
    FOLDER.mkdir(exist_ok=True)
    for name in sys.argv[1:] or SCENES:
        scene = SCENES[name]
        with scene.stage() as app:
            for file, svg in asyncio.run(_drawn(app, name, scene)).items():
                (FOLDER / file).write_text(svg, encoding="utf-8")
    (FOLDER / "README.md").write_text(index(), encoding="utf-8")


async def _drawn(app: App[Any], name: str, scene: Scene) -> dict[str, str]:
    """Return the pictures of a scene; one run shows all sizes."""
    drawn = {}
    async with app.run_test(size=SIZES[0]) as pilot:
        if scene.stage is not without_model:
            await until(app, "Message root")
        await scene.play(pilot)
        await until(app, r"(?s)\A(?!.*no price is known)")  # said once of every model that a script plays
        for width, height in SIZES:
            await pilot.resize_terminal(width, height)
            await pilot.pause(1.0)
            title = f"{scene.says}, at {width}×{height}"
            drawn[f"{name}-{width}x{height}.svg"] = still(app, title)
    return drawn


def index() -> str:
    """Return the page that shows the pictures."""
    lines = [
        "# Pictures",
        "",
        "Ten scenes of the terminal UI at three sizes, drawn from real runs: real processes, a real database, and a",
        "script in place of the model. `.venv/bin/python -m scripts.pictures` draws them again, with other times.",
        "",
        "There is no set from before the work on the screen began: nobody drew one then, and the program of that time",
        "cannot show most of these scenes.",
        "",
    ]
    for name, scene in SCENES.items():
        lines += [f"## {scene.says}", ""]
        for width, height in SIZES:
            lines += [f"![{scene.says}, at {width}×{height}]({name}-{width}x{height}.svg)", ""]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    main()
