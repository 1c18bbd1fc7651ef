"""The same orchestration with the bare openai SDK and threads: no framework, no rules, nothing stored.

A process of its own, already warm: each line on stdin is a number of children, each line on stdout the seconds and
processor seconds that they took.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import openai

from bench.model_server import START, WORK


class BareSDK:
    """The process, from here; use it as a context manager."""

    def __init__(self, base_url: str, workdir: Path, system: str, tools: list[dict[str, Any]]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.bare_sdk"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parent.parent,
        )
        self._say({"base_url": base_url, "workdir": str(workdir), "system": system, "tools": tools})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait()

    def run(self, children: int) -> tuple[float, float]:
        """Let it work once; return its seconds and its processor seconds."""
        self._say(children)
        assert self._process.stdout is not None
        seconds, processor = json.loads(self._process.stdout.readline())
        return seconds, processor

    def _say(self, value: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(value) + "\n")
        self._process.stdin.flush()


class _Work:
    """One orchestration."""

    def __init__(self, client: openai.OpenAI, told: Mapping[str, Any]) -> None:
        self._client = client
        self._told = told
        self._threads: list[threading.Thread] = []

    def converse(self, prompt: str) -> None:
        """Call the model and the tools that it asks for until it answers."""
        messages: list[Any] = [{"role": "system", "content": self._told["system"]}, {"role": "user", "content": prompt}]
        while True:
            answer, calls = self._ask(messages)
            messages.append(
                {"role": "assistant", "content": answer or None, **({"tool_calls": calls} if calls else {})}
            )
            if not calls:
                return
            for call in calls:
                result = self._call(call["function"]["name"], json.loads(call["function"]["arguments"]))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)})

    def _ask(self, messages: list[Any]) -> tuple[str, list[dict[str, Any]]]:
        text: list[str] = []
        calls: dict[int, dict[str, Any]] = {}
        stream = self._client.chat.completions.create(
            model="model",
            messages=messages,
            tools=self._told["tools"],
            stream=True,
            stream_options={"include_usage": True},
        )
        for chunk in stream:
            for choice in chunk.choices:
                text.append(choice.delta.content or "")
                for piece in choice.delta.tool_calls or ():
                    empty = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
                    call = calls.setdefault(piece.index, empty)
                    call["id"] = piece.id or call["id"]
                    if piece.function:
                        call["function"]["name"] += piece.function.name or ""
                        call["function"]["arguments"] += piece.function.arguments or ""
        return "".join(text), list(calls.values())

    def _call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if name == "fork":
            thread = threading.Thread(target=self.converse, args=[WORK])
            thread.start()
            self._threads.append(thread)
            return {"agent_id": str(len(self._threads)), "name": arguments["name"]}
        if name == "wait":
            for thread in self._threads:
                thread.join()
            return {"outcome": "complete", "results": []}
        return {"content": Path(self._told["workdir"], arguments["path"]).read_text()}


def main() -> None:
    """Work as often as asked."""
    told = json.loads(sys.stdin.readline())
    client = openai.OpenAI(base_url=told["base_url"], api_key="none", max_retries=0)
    for line in sys.stdin:
        began, used = time.perf_counter(), time.process_time()
        _Work(client, told).converse(f"{START} {json.loads(line)}")
        print(json.dumps([time.perf_counter() - began, time.process_time() - used]), flush=True)


if __name__ == "__main__":
    main()
