"""Images in the messages of a request: as references until the request is made, then as data URLs, or as words.

A reference is a part ``{"type": "image", "image": {...}}``, which no server gets. Equal rows give equal bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from agentmesh.domain.images import label

Message = Mapping[str, Any]
Part = Mapping[str, Any]

FOLLOWS: Final = "[This is not from the user.] The images of the results above:"
"""How the message begins that has the images of tools' results: many servers refuse images in a result itself."""
UNSEEN: Final = "not shown: this model cannot see images"
REFUSED: Final = "not shown: the server cannot read an image of this conversation"
LEFT_OUT: Final = "not shown: newer images took the room"
GONE: Final = "not shown: it is not stored any more"

Show = Callable[[Mapping[str, Any]], Part]
"""Returns the part that shows a reference to a model."""


def text_part(text: str) -> dict[str, Any]:
    """Return a part with text."""
    return {"type": "text", "text": text}


def reference_part(reference: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part that refers to an image."""
    return {"type": "image", "image": dict(reference)}


def url_part(url: str) -> dict[str, Any]:
    """Return a part with an image as its data URL."""
    return {"type": "image_url", "image_url": {"url": url}}


def references(messages: Sequence[Message]) -> list[Mapping[str, Any]]:
    """Return the references in messages, in their order."""
    return [part["image"] for message in messages for part in _parts(message) if part.get("type") == "image"]


def has_images(messages: Sequence[Message]) -> bool:
    """Whether messages have images as data URLs."""
    return any(part.get("type") == "image_url" for message in messages for part in _parts(message))


def shown(messages: Sequence[Message], show: Show) -> list[Message]:
    """Return the messages with every reference shown; images of tools' results in a message after them."""
    return list(_shown(messages, show))


def without_images(messages: Sequence[Message], why: str = UNSEEN) -> list[Message]:
    """Return messages that were ``shown`` with words in place of their images."""
    return [_in_words(message, why) if _parts(message) else message for message in messages]


def size(parts: Sequence[Part]) -> int:
    """Return the bytes of text that take about as many tokens as these parts with references."""
    return sum(
        4 * int(part["image"].get("tokens", 0)) if part.get("type") == "image" else len(str(part["text"]).encode())
        for part in parts
    )


def _shown(messages: Sequence[Message], show: Show) -> Iterator[Message]:
    of_results: list[Part] = []
    for message in messages:
        parts = _parts(message)
        if message.get("role") != "tool" and of_results:
            yield {"role": "user", "content": [text_part(FOLLOWS), *of_results]}
            of_results = []
        if not parts:
            yield message
        elif message.get("role") == "tool":
            yield {**message, "content": parts[0]["text"]}
            of_results += _named(parts[1:], show)
        else:
            yield {**message, "content": [parts[0], *_named(parts[1:], show)]}
    if of_results:
        yield {"role": "user", "content": [text_part(FOLLOWS), *of_results]}


def _named(parts: Sequence[Part], show: Show) -> Iterator[Part]:
    """Yield each image after its name."""
    for part in parts:
        yield text_part(label(part["image"]))
        yield show(part["image"])


def _in_words(message: Message, why: str) -> Message:
    words = [f"({why})" if part.get("type") == "image_url" else str(part["text"]) for part in _parts(message)]
    return {**message, "content": "\n".join(words)}


def _parts(message: Message) -> Sequence[Part]:
    content = message.get("content")
    return content if isinstance(content, list) else ()
