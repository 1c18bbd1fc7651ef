"""No framework: the bare openai SDK and a thread for each child, in the benchmark's own environment."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bench.peers.frameworks.work import PATIENCE
from bench.peers.process import serve


class _Work:
    """One orchestration."""

    def __init__(self, client: Any, told: Mapping[str, Any]) -> None:
        self._client = client
        self._told = told
        self._threads: list[threading.Thread] = []
        self._events: list[int] = []
        self.answer = 0

    @property
    def events(self) -> int:
        """How many pieces of text were streamed."""
        return sum(self._events)

    def converse(self, prompt: str, told: Mapping[str, Any] | None = None) -> str:
        """Call the model and the tools that it asks for until it answers; return that.

        ``told``: the system prompt and the tools of a sub-agent, otherwise those of all.
        """
        told = told or self._told
        messages: list[Any] = [{"role": "system", "content": told["system"]}, {"role": "user", "content": prompt}]
        while True:
            answer, calls = self._ask(messages, told["tools"])
            messages.append(
                {"role": "assistant", "content": answer or None, **({"tool_calls": calls} if calls else {})}
            )
            if not calls:
                self.answer = len(answer)  # the root's comes last
                return answer
            results = [
                self._call(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls
            ]
            for call, result in zip(calls, results, strict=True):
                content = json.dumps(result() if callable(result) else result)
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})

    def _ask(self, messages: list[Any], tools: list[Any]) -> tuple[str, list[dict[str, Any]]]:
        text: list[str] = []
        calls: dict[int, dict[str, Any]] = {}
        stream = self._client.chat.completions.create(
            model="model",
            messages=messages,
            tools=tools,
            stream=True,
            stream_options={"include_usage": True},
        )
        for chunk in stream:
            for choice in chunk.choices:
                if choice.delta.content:
                    text.append(choice.delta.content)
                for piece in choice.delta.tool_calls or ():
                    empty = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
                    call = calls.setdefault(piece.index, empty)
                    call["id"] = piece.id or call["id"]
                    if piece.function:
                        call["function"]["name"] += piece.function.name or ""
                        call["function"]["arguments"] += piece.function.arguments or ""
        self._events.append(len(text))
        return "".join(text), list(calls.values())

    def _call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any] | Callable[[], dict[str, Any]]:
        """Return a tool's result; a task goes on beside the others, so it returns what waits for its result."""
        if name == "task":
            return self._task(arguments["prompt"])
        if name == "fork":
            thread = threading.Thread(target=self.converse, args=[arguments["prompt"]])
            thread.start()
            self._threads.append(thread)
            return {"agent_id": str(len(self._threads)), "name": arguments["name"]}
        if name == "wait":
            for thread in self._threads:
                thread.join()
            return {"outcome": "complete", "results": []}
        return {"content": Path(self._told["workdir"], arguments["path"]).read_text()}

    def _task(self, prompt: str) -> Callable[[], dict[str, Any]]:
        answers: list[str] = []
        thread = threading.Thread(target=lambda: answers.append(self.converse(prompt, self._told["sub_agent"])))
        thread.start()

        def result() -> dict[str, Any]:
            thread.join()
            return {"status": "completed", "output": answers[0]}

        return result


def main() -> None:
    """Serve: first what it is told, then prompts."""
    state: list[tuple[Any, Mapping[str, Any]]] = []

    def answer(value: dict[str, Any]) -> Any:
        began, used = time.perf_counter(), time.process_time()
        if not state:
            import openai

            client = openai.OpenAI(base_url=value["base_url"], api_key="none", max_retries=0, timeout=PATIENCE)
            state.append((client, value))
            return {"processor": time.process_time(), "seconds": time.perf_counter() - began}
        work = _Work(*state[0])
        work.converse(value["prompt"])
        return {
            "seconds": time.perf_counter() - began,
            "processor": time.process_time() - used,
            "events": work.events,
            "answer": work.answer,
        }

    serve(answer)


if __name__ == "__main__":
    main()
