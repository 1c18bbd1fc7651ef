"""Images that a person sends with a message: named by ``@`` in the text, or by their paths."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from agentmesh.config import nofollow
from agentmesh.domain import images
from agentmesh.domain.errors import BadImage
from agentmesh.domain.ids import AgentId
from agentmesh.domain.images import Image
from agentmesh.domain.permissions import Decision
from agentmesh.domain.text import one_line
from agentmesh.store import agents
from agentmesh.store import images as stored
from agentmesh.store.tx import Database

MENTION: Final = re.compile(r"""(?:^|(?<=[\s("'`]))@(?:"([^"\n]+)"|'([^'\n]+)'|([^\s@"'`]+))""")
"""A file in a text: ``@name``, or ``@"name with blanks"``, with quotes of either kind."""
AFTER: Final = ".,:;!?)"
"""Punctuation that may follow the name of a file in a sentence."""


class Attached(NamedTuple):
    """The images of one message."""

    references: Sequence[Mapping[str, Any]]
    model: str
    """The recipient's model; it may be one that cannot see."""

    @property
    def names(self) -> str:
        """Return the labels of the images."""
        return ", ".join(map(images.label, self.references))


def attach(
    database: Database,
    recipient: AgentId,
    workdir: Path,
    text: str = "",
    paths: Iterable[str | Path] = (),
    *,
    anywhere: bool = False,
) -> Attached | None:
    """Store the images that a text names by ``@``, and those at paths; return what the message refers to.

    Return None if there are none. Names are relative to the working directory; unless ``anywhere``, they must lead to
    files in it. A name without a file stays text. Raise BadImage, also if a rule keeps agents from reading the file.
    """
    named = list(dict.fromkeys(file for file in _named(text, workdir)))
    given = list(dict.fromkeys(Path(path).absolute() for path in paths))
    if not named and not given:
        return None
    images.require_few(len(named) + len(given))
    agent = database.run(agents.get, recipient, idempotent=True)
    judged = _require_allowed(agent.permissions, workdir, named, given, anywhere=anywhere)
    made = [_load(file, real) for file, real in judged]
    for image in made:
        database.run(stored.keep, agent.session_id, image, idempotent=True)
    return Attached([image.reference() for image in made], agent.model)


def _load(path: Path, real: str) -> Image:
    """Return the image in a file, opened by its real path so that no link leads elsewhere; raise BadImage."""
    shown = one_line(path.name or str(path), 80)
    try:
        fd = nofollow.open_file(real)
        with os.fdopen(fd, "rb") as file:
            facts = os.fstat(fd)
            if not stat.S_ISREG(facts.st_mode):
                raise BadImage(f"{shown} is no regular file.", hint="Name a PNG, JPEG or WebP file.")
            images.require_size(shown, facts.st_size)
            return images.read_image(path.name, file.read(images.MOST_BYTES + 1))
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.ELOOP:
            raise BadImage(f"{shown} changed while it was opened.", hint="Look at it again.") from error
        reason = error.strerror if isinstance(error, OSError) else "its name is no path"
        raise BadImage(f"{shown} cannot be read: {reason}.", hint="Check the path.") from error


def mentions(text: str) -> Iterator[str]:
    """Yield the names of images that a text names by ``@``, whether or not there are such files."""
    for double, single, bare in MENTION.findall(text):
        name = double or single or (bare if _is_image(bare) else bare.rstrip(AFTER))
        if _is_image(name):
            yield name


def _is_image(name: str) -> bool:
    return name.lower().endswith(images.SUFFIXES)


def _named(text: str, workdir: Path) -> Iterator[Path]:
    for name in mentions(text):
        try:
            path = workdir / Path(name).expanduser()
            if path.is_file():
                yield path
        except (OSError, ValueError, RuntimeError):
            continue


def _require_allowed(
    rules: Any, workdir: Path, named: Sequence[Path], given: Sequence[Path], *, anywhere: bool
) -> list[tuple[Path, str]]:
    """Return the files, each with the real path that was judged.

    Raise BadImage for a file that a rule denies to agents, and for a name that leads out of the directory.
    """
    from agentmesh.engine.tool import Rights
    from agentmesh.tools.gate import ToolGate

    gate, root = ToolGate(), os.path.realpath(workdir)
    judged: list[tuple[Path, str]] = []
    for file in (*named, *given):
        verdict = gate.judge("read", {"path": str(file)}, Rights(rules), workdir)
        shown = one_line(file.name, 80)
        if verdict.decision is Decision.DENY:
            raise BadImage(f"A rule keeps agents from reading {shown}.", hint="`agentmesh doctor` shows the rules.")
        if verdict.outside and file in named and not anywhere:
            hint = "Attach it with --image PATH, or write its name without @."
            raise BadImage(f"{shown} is outside the working directory.", hint=hint)
        judged.append((file, os.path.join(root, verdict.place or "")))
    return judged
