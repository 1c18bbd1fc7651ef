"""A small MCP server that misbehaves when it is told to: plain JSON lines, no library. Its first argument is how.

It appends its pid to the file ``starts`` in its working directory, and what it is told besides calls to ``heard``.
It lists the tools in the file ``tools`` too.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HOW = sys.argv[1] if len(sys.argv) > 1 else "well"
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NUMBER = {"type": "object", "properties": {"number": {"type": "integer"}, "items": {"type": "array"}}}
TOOLS: dict[str, Any] = {
    "echo": TEXT,
    "add": NUMBER,
    "env": TEXT,
    "files/read it": {"type": "object"},
    **{
        name: {"type": "object", "properties": {}}
        for name in ("die", "hang", "late", "rubbish", "picture", "wrong", "brood", "refused", "half", "latin")
    },
    "large": NUMBER,
    "gallery": NUMBER,
}


def send(message: Any) -> None:
    """Write a message; U+DCE9 in it becomes the byte E9, which is no UTF-8."""
    line = json.dumps(message).replace(r"\udce9", "\udce9")
    sys.stdout.buffer.write(line.encode("utf-8", "surrogateescape") + b"\n")
    sys.stdout.buffer.flush()


def note(file: str, words: str) -> None:
    with Path(file).open("a") as out:
        out.write(words + "\n")


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], **more}


def picture() -> dict[str, Any]:
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    inner = {"uri": "file:///a.bin", "blob": "AAAAAAAA", "mimeType": "application/zip"}
    words = {"type": "text", "text": "see \x1b[31mred\x1b[0m"}
    return {"content": [words, image, {"type": "resource", "resource": inner}]}


def gallery(given: dict[str, Any]) -> dict[str, Any]:
    """Return the images in the file ``shot`` of the working directory, once for each number, and much else."""
    data = base64.b64encode(Path("shot").read_bytes()).decode()
    image = {"type": "image", "data": data, "mimeType": "image/png"}
    resource = {"uri": "file:///b.png", "blob": data, "mimeType": "image/png"}
    link = {"type": "resource_link", "uri": "https://x/y", "name": "the report"}
    audio = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}
    broken = {"type": "image", "data": "A", "mimeType": "image/png"}
    others = [{"type": "resource", "resource": resource}, link, audio, broken]
    return {"content": [*[image] * given.get("number", 1), *others], "isError": given.get("items") == []}


def brood() -> dict[str, Any]:
    child = subprocess.Popen(["sleep", "3600"], start_new_session=True)
    return text(str(child.pid))


def die() -> None:
    print("I am tired", file=sys.stderr, flush=True)
    os._exit(3)


CALLS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "echo": lambda given: text(given["text"]),
    "add": lambda given: text(json.dumps(given, sort_keys=True)),
    "env": lambda given: text(os.environ.get(given["text"], "(not set)")),
    "die": lambda _: die(),
    "hang": lambda _: time.sleep(3600),
    "rubbish": lambda _: {"content": "no list"},
    "wrong": lambda _: text("there is no such thing", isError=True),
    "large": lambda given: text("x" * given["number"]),
    "picture": lambda _: picture(),
    "brood": lambda _: brood(),
    "gallery": gallery,
    "half": lambda _: text("cut in an emoji: \ud83d", structuredContent={"\ud83d": "\ude00"}),
    "latin": lambda _: text("caf\udce9"),
}


def called(name: str, given: dict[str, Any]) -> Any:
    note("calls", name)
    return CALLS.get(name, lambda _: text(f"called {name}"))(given)


def answer(asked: dict[str, Any]) -> Any:
    match asked["method"]:
        case "initialize":
            server = {"name": "test", "version": "1"}
            version = "1999-01-01" if HOW == "old" else asked["params"]["protocolVersion"]
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
        case "tools/list":
            tools = [
                {"name": name, "description": f"Does {name}.", "inputSchema": schema} for name, schema in TOOLS.items()
            ]
            tools[0]["description"] += os.environ.get("GIVEN", "")
            tools[0]["annotations"] = {"readOnlyHint": True}
            if HOW == "odd-schema":
                tools += [
                    {"name": "odd", "inputSchema": {"type": "object", "properties": {"a": {"type": "nonsense"}}}},
                    {"name": "echo", "inputSchema": {"type": "object"}},
                    {
                        "name": "refers",
                        "inputSchema": {
                            "type": "object",
                            "properties": {"a": {"$ref": "#/$defs/A"}},
                            "$defs": {"A": {"type": "object", "properties": {"again": {"$ref": "#/$defs/A"}}}},
                        },
                    },
                ]
            if HOW == "half":
                tools[0]["description"] += "\ud83d"
            if Path("tools").exists():
                tools += json.loads(Path("tools").read_text())
            return {"tools": tools if HOW != "no-list" else 5}
        case "tools/call":
            return called(asked["params"]["name"], asked["params"].get("arguments", {}))
        case "ping":
            return {}
    return None


def hear(line: str) -> None:
    asked = json.loads(line)
    if HOW == "chatty":
        print(f"got {asked['method']}", flush=True)
    if asked["method"] == "notifications/cancelled":
        note("heard", "cancelled")
    if asked["method"] == "tools/call" and asked["params"]["name"] == "late":
        note("calls", "late")  # and never answers, but goes on listening
    elif asked["method"] == "tools/call" and asked["params"]["name"] == "refused":
        words = asked["params"].get("arguments", {}).get("text", "no licence for it")
        send({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32000, "message": words}})
    elif asked["method"] == "tools/call" and (line := asked["params"].get("arguments", {}).get("line")):
        print(line.replace("ID", json.dumps(asked["id"])), flush=True)
    elif "id" in asked and (result := answer(asked)) is not None:
        send({"jsonrpc": "2.0", "id": asked["id"], "result": result})
    elif "id" in asked:
        send({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "unknown"}})


def main() -> None:
    note("starts", str(os.getpid()))
    if HOW == "ends":
        print("no licence", file=sys.stderr)
        sys.exit(4)
    if HOW == "chatty":
        print("Welcome to the server!\n{not json}", flush=True)
    for line in sys.stdin:
        if HOW == "silent":
            print("still thinking", flush=True)
        else:
            hear(line)
    if HOW == "clings":
        time.sleep(3600)


if __name__ == "__main__":
    main()
