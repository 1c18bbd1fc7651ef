"""The web_fetch tool: one page of the public web, as text."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin

from pydantic import BaseModel, Field

from agentmesh.config.schema import Web
from agentmesh.domain.cancel import Cancel
from agentmesh.domain.text import clip, one_line, storable
from agentmesh.engine.tool import Effect, ToolContext, ToolError
from agentmesh.tools.web_address import Target, permitted
from agentmesh.tools.words import Described

_REDIRECTS = 5
_MOVED = (301, 302, 303, 307, 308)


class WebFetchArgs(BaseModel):
    """Arguments of web_fetch."""

    url: str = Field(min_length=1, max_length=2000)
    raw: bool = False
    timeout: float = Field(default=30, gt=0, le=120)


class WebFetch(Described):
    """Read a web page."""

    name = "web_fetch"
    effect = Effect.READ
    args: type[BaseModel] = WebFetchArgs

    def __init__(self, settings: Web) -> None:
        self._allow_private = frozenset(settings.allow_private)

    def run(self, args: WebFetchArgs, context: ToolContext) -> Mapping[str, Any]:
        """Follow redirects within the host, and return the page, or the address that it has moved to."""
        deadline = time.monotonic() + args.timeout
        asked = target = Target.parse(args.url)
        for _ in range(_REDIRECTS + 1):
            context.progress(one_line(f"fetching {target.url}"))
            found = self._fetch(target, args.raw, context, deadline)
            if isinstance(found, Mapping):
                return found
            # A redirect, already parsed like a URL from the model; follow it only as far as this call's permission
            # reaches.
            if not asked.covers(found):
                permitted(found, self._allow_private, context.cancel, deadline)
                return _led_to(target, found, "It leads to another host")
            if not context.may_follow(found.url):
                return _led_to(target, found, "It leads to a page that this call was not allowed to read")
            target = found
        raise ToolError(f"{asked.url} redirects more than {_REDIRECTS} times.", "It may be a loop: try another page.")

    def _fetch(self, target: Target, raw: bool, context: ToolContext, deadline: float) -> Mapping[str, Any] | Target:
        """Return the page at a target, or the target that it redirects to."""
        from agentmesh.tools.web_get import MOST_BYTES, get
        from agentmesh.tools.web_text import is_binary, is_text, kind_of, readable

        addresses = permitted(target, self._allow_private, context.cancel, deadline)
        with get(target, addresses, context.cancel, deadline) as answer:
            if answer.status in _MOVED and answer.location:
                return Target.parse(_joined(target.url, answer.location))
            if not 200 <= answer.status < 300:
                said = f"{answer.status} {answer.reason}".strip()
                raise ToolError(f"{target.url} answered {said}.", _advice(answer.status), status=answer.status)
            kind = kind_of(answer.content_type)
            if not is_text(kind):
                raise _no_text(target, kind, answer.length)
            body = answer.body()
        if is_binary(body):
            raise _no_text(target, "binary", answer.length or len(body))
        page = readable(body, answer.content_type, target.url, raw, lambda: _check(context.cancel, deadline))
        content = clip(page.content, context.output_limit)
        result: dict[str, Any] = {"url": target.url, "status": answer.status, "content_type": kind}
        if page.title:
            result["title"] = storable(page.title)[:500]
        result["content"] = content
        if answer.truncated or page.truncated:
            result["note"] = f"Only its first {MOST_BYTES >> 20} MiB were read."
        if "note" in result or content != storable(page.content):
            result["truncated"] = True
        return result


def _led_to(target: Target, found: Target, where: str) -> dict[str, Any]:
    """Return the result of a redirect that is not followed: the model may call again, which is judged again."""
    note = f"{where}: call web_fetch with that URL if you need it."
    return {"url": target.url, "redirect": found.url, "note": note}


def _joined(base: str, location: str) -> str:
    try:
        return urljoin(base, location.strip())
    except ValueError:
        return location


def _no_text(target: Target, kind: str, size: int | None) -> ToolError:
    how_much = f"of {size} bytes" if size is not None else "of unknown size"
    return ToolError(
        f"{target.url} is {one_line(kind, 100)} {how_much}, not text.",
        "Look for the same content as text, or download it with `bash`.",
    )


def _advice(status: int) -> str:
    if status in (401, 403, 407):
        return "It wants a login, or refuses programs: try another source."
    if status in (404, 410):
        return "Check the URL, or look for the page from the site's home page."
    return "Try again later, or another source." if status == 429 or status >= 500 else "Try another URL."


def _check(cancel: Cancel, deadline: float) -> None:
    if cancel.is_set():
        raise ToolError("Interrupted.")
    if time.monotonic() > deadline:
        raise ToolError("The page took too long to be read.", "Pass a longer timeout, or try another page.")
