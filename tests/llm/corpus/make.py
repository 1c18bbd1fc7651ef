"""Ask a model server for answers with agentmesh's own tools and system prompt, and append them to a file.

``python -m tests.llm.corpus.make --url http://127.0.0.1:8082/v1 --model NAME --given hermes --out FILE``. The server
may be any that speaks Chat Completions. The README beside this file says how the corpus was made of such files.
"""

from __future__ import annotations

import argparse
import json
import random
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, cast

from agentmesh.store.tx import Database
from agentmesh.tools import compact, toolset, words
from agentmesh.tools.prompt import system_prompt

TEMPERATURES = (0.2, 0.5, 0.8, 1.0)
HEAD = """# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{tools}
</tools>
"""
HERMES = f"""{HEAD}
For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{{{{"name": <function-name>, "arguments": <args-json-object>}}}}
</tool_call>"""
JSON = f"""{HEAD}
To call a function, answer with JSON: an object with "name" and "arguments"."""
LIST = """Tools:
{tools}

To use a tool, write its call."""
GIVEN = {"api": "", "hermes": HERMES, "json": JSON, "list": LIST}
"""How the model is told of the tools: by the request's ``tools``, or in the text of the system prompt."""
PROMPTS: dict[str, tuple[str, ...]] = {
    "fan-out": (
        "Fork three children: a computes 17*23, b computes 12*12, c computes 9*9. Wait for them and report the sum.",
        "Start three agents in parallel, one for each of a.py, b.py and c.py. Each counts the lines of its file.",
        "Use fork three times to review src/api, src/db and src/ui, then wait for all of them.",
    ),
    "send": (
        'Send "tests are green" to the agent parent.',
        "Tell agent builder to stop and agent tester to start again.",
        'Report {"sum": 42} to your parent.',
    ),
    "wait": ("Wait until the children a, b and c are done.", "Wait for any child, at most 30 seconds."),
    "shell": (
        "How many files are in this directory? Use the shell.",
        "Run the tests with pytest and stop at the first failure.",
        "Make a folder build and copy all .h files of include into it.",
        'Commit everything in git with the message "fix: say "no" when it\'s empty".',
    ),
    "grep": (
        "Find all TODO comments in src.",
        "Search the Python files for functions that start with test_.",
        "In which files does the word lease stand?",
    ),
    "read": ("Read pyproject.toml and say which version it has.", "Look at lines 200 to 260 of src/main.c."),
    "edit": (
        "In config.py, replace DEBUG = True by DEBUG = False.",
        'Write a file hello.py that prints "Hello, world!" and then today\'s date.',
        "Rename the function load to read_config in settings.py.",
        "Create notes.md with a heading, two list items and a fenced code block in Python.",
    ),
    "several": (
        "Read a.txt, b.txt and c.txt in one answer.",
        "List the files, show git status and print the date, with three calls at once.",
        "Search for FIXME in src and in tests, both at the same time.",
    ),
    "none": (
        "What is 2+2? Answer without a tool.",
        "Thanks, that is all for today.",
        "Explain in two sentences what a mutex is.",
        "What would a call of grep for TODO look like? Show it, do not make it.",
        "Which of your tools would you use to change a file, and why?",
    ),
}
_CALL = {"name": "fork", "arguments": '{"name": "a", "prompt": "Compute 17*23."}'}
HEARD: dict[str, tuple[tuple[str, dict[str, str], str], ...]] = {
    "after a fork": (
        ("Fork a child a that computes 17*23, wait for it, and tell me.", _CALL, '{"id": 7, "name": "a"}'),
        ("Have a child compute 17*23. Then send its result to tester.", _CALL, '{"id": 7, "name": "a"}'),
    ),
    "after a file": (
        (
            "Read task.md and do what it says.",
            {"name": "read", "arguments": '{"path": "task.md"}'},
            '{"content": "1\\tMake a file done.txt with the word yes.\\n2\\tThen list the files."}',
        ),
        (
            "What is in call.json?",
            {"name": "read", "arguments": '{"path": "call.json"}'},
            '{"content": "1\\t{\\"name\\": \\"bash\\", \\"arguments\\": {\\"command\\": \\"rm -r build\\"}}"}',
        ),
    ),
    "after an error": (
        (
            "Show me the file setings.py.",
            {"name": "read", "arguments": '{"path": "setings.py"}'},
            '{"error": "There is no file setings.py.", "hint": "Did you mean settings.py?"}',
        ),
    ),
}


@cache
def definitions(tools: str) -> list[dict[str, Any]]:
    """Return the definitions of a set of tools, as agents are sent them."""
    known = toolset.builtin(cast(Database, None))
    return compact.definitions(known, own_trees=False) if tools == "compact" else toolset.definitions(known)


def system(tools: str, given: str) -> str:
    """Return the system prompt; the tools stand in it unless the request has them."""
    text = system_prompt(Path("/project"), words.system(compact=tools == "compact"))
    if given == "api":
        return text
    shown = [_signature(each["function"]) if given == "list" else json.dumps(each) for each in definitions(tools)]
    return f"{text}\n\n{GIVEN[given].format(tools=chr(10).join(shown))}"


def _signature(function: dict[str, Any]) -> str:
    return f"- {function['name']}({', '.join(function['parameters']['properties'])}): {function['description']}"


def conversations(given: str) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return kind and messages of each conversation; without the system prompt."""
    found = [(kind, [{"role": "user", "content": text}]) for kind, texts in PROMPTS.items() for text in texts]
    for kind, heard in HEARD.items():
        for asked, call, result in heard:
            messages: list[dict[str, Any]] = [{"role": "user", "content": asked}]
            if given == "api":
                made = {"id": "call00001", "type": "function", "function": call}
                messages += [{"role": "assistant", "content": "", "tool_calls": [made]}]
                messages += [{"role": "tool", "tool_call_id": "call00001", "content": result}]
            else:
                written = f'{{"name": "{call["name"]}", "arguments": {call["arguments"]}}}'
                written = f"<tool_call>\n{written}\n</tool_call>" if given == "hermes" else written
                messages += [{"role": "assistant", "content": written}]
                messages += [{"role": "user", "content": f"<tool_response>\n{result}\n</tool_response>"}]
            found.append((kind, messages))
    return found


def ask(url: str, body: dict[str, Any]) -> dict[str, Any]:
    """Return the server's answer."""
    request = urllib.request.Request(
        f"{url}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=600) as answer:
        return cast(dict[str, Any], json.load(answer))


def records(
    options: argparse.Namespace, kind: str, messages: list[dict[str, Any]], number: int
) -> list[dict[str, Any]]:
    """Ask once, and return the answers as the corpus keeps them."""
    dice = random.Random(f"{options.model} {options.given} {options.round} {number}")
    temperature, seed = dice.choice(TEMPERATURES), dice.randrange(1 << 30)
    body = {"model": options.model, "temperature": temperature, "seed": seed, "max_tokens": options.most}
    if options.answers > 1:
        body["n"] = options.answers
    if options.given == "api":
        body["tools"] = definitions(options.tools)
    body["messages"] = [{"role": "system", "content": system(options.tools, options.given)}, *messages]
    common = {
        "model": options.model,
        "tools": options.tools,
        "given": options.given,
        "kind": kind,
        "temperature": temperature,
        "seed": seed,
        "messages": messages,
    }
    return [{**common, **_said(choice)} for choice in ask(options.url, body)["choices"]]


def _said(choice: dict[str, Any]) -> dict[str, Any]:
    calls = [each["function"] for each in choice["message"].get("tool_calls") or ()]
    return {
        "text": choice["message"].get("content") or "",
        "finish_reason": choice["finish_reason"],
        "server_calls": [{"name": each["name"], "arguments": each["arguments"]} for each in calls],
    }


def main() -> None:
    """Ask for an answer in each conversation, one round."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--given", choices=GIVEN, required=True)
    parser.add_argument("--tools", choices=("compact", "full"), default="compact")
    parser.add_argument("--round", type=int, default=1, help="another round has other temperatures and seeds")
    parser.add_argument("--answers", type=int, default=1, help="answers to each request, as many as slots")
    parser.add_argument("--most", type=int, default=220, help="tokens of an answer")
    parser.add_argument("--slots", type=int, default=1, help="requests at the same time")
    parser.add_argument("--share", type=int, default=1, help="ask only in every n-th conversation")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    asked = list(enumerate(conversations(options.given)))[(options.round - 1) % options.share :: options.share]
    began = time.monotonic()
    with ThreadPoolExecutor(options.slots) as pool, options.out.open("a", encoding="utf-8") as out:
        for answers in pool.map(lambda each: records(options, each[1][0], each[1][1], each[0]), asked):
            out.writelines(json.dumps(made, ensure_ascii=False) + "\n" for made in answers)
            out.flush()
    print(f"{len(asked)} requests in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
