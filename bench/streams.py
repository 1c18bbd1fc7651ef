"""A model server whose model writes as it is told: ``STREAM tokens rate``; in a process of its own, and its handle."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from agentmesh.llm.simulator.reply import ScriptedReply
from agentmesh.llm.simulator.request import ChatRequestView
from agentmesh.llm.simulator.server import Simulator

LAST: Final = "Finished-here."
"""What each answer ends with."""
_SIZE: Final = 4
"""Characters of a token."""
_TEXT: Final = """\
## A heading of this part

Some prose with *words that matter* and `names`, as models write it, over a few lines, so that it has to be wrapped.

- an item of a list
- and one more, with **bold** words in it

```python
def answer(question: str) -> int:
    return 42  # the usual
```

| name | value |
|---|---|
| first | 1 |
| second | 2 |

"""


def told(tokens: int, rate: float) -> str:
    """Return the prompt that makes the model write so many tokens, so many a second."""
    return f"STREAM {tokens} {rate}"


class Streams:
    """The server, from here; use it as a context manager."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.streams"], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent.parent
        )
        assert self._process.stdout is not None
        self.base_url = self._process.stdout.readline().strip()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.communicate()


def _respond(view: ChatRequestView) -> ScriptedReply:
    tokens, rate = view.input_text.rpartition("STREAM ")[2].split()[:2]
    length = int(tokens) * _SIZE
    text = (_TEXT * (length // len(_TEXT) + 1))[:length]
    return ScriptedReply(f"{text}\n\n```\n\n{LAST}", chunk_size=_SIZE, chunk_delay=1 / float(rate))


if __name__ == "__main__":
    simulator = Simulator(_respond, record=False)
    print(simulator.start(), flush=True)
    threading.Event().wait()
