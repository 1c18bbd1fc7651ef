"""The images of a request: read from the database, encoded once, and only as many as servers take."""

from __future__ import annotations

import base64
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentmesh.domain.errors import AgentmeshError
from agentmesh.domain.ids import SessionId
from agentmesh.domain.images import Image
from agentmesh.engine.conversation import BYTES_PER_TOKEN
from agentmesh.llm import picture
from agentmesh.llm.port import ChatModel, ChatRequest
from agentmesh.store import images
from agentmesh.store.tx import Database

_MOST_SENT = 20 * 1024 * 1024
"""Bytes of all images of a request; servers refuse requests of some tens of MiB."""
_LEFT = _MOST_SENT // 2
"""Bytes that stay once there are more: far fewer, so that the beginning of requests changes seldom."""
_KEPT = 64 * 1024 * 1024
"""Characters of encoded images that a process keeps."""


class Images:
    """Shows the images of conversations; shared by all agents of a process, thread-safe."""

    def __init__(self, database: Database, model: ChatModel) -> None:
        self._database = database
        self._model = model
        self._lock = threading.Lock()
        self._urls: OrderedDict[str, str] = OrderedDict()
        """Data URLs by digest, the one used last at the end."""
        self._size = 0

    def sees(self, model: str) -> bool:
        """Return whether a model is sent images."""
        try:
            return self._model.sees(model)
        except AgentmeshError:  # no such provider: the call itself reports it
            return False

    def keep(self, session: SessionId, image: Image) -> None:
        """Store an image, before the row that refers to it."""
        self._database.run(images.keep, session, image, idempotent=True)

    def fill(self, session: SessionId, request: ChatRequest) -> ChatRequest:
        """Return the request as its model gets it: images as data URLs if it sees, otherwise as words."""
        found = picture.references(request.messages)
        if not found:
            return request
        if not self.sees(request.model):
            unseen = picture.text_part(f"({picture.UNSEEN})")
            named = picture.shown(request.messages, lambda _: unseen)
            return replace(request, messages=picture.without_images(named))
        left_out = _left_out(found)
        sent = found[left_out:]
        urls = self._load(session, {one["sha256"]: str(one["media_type"]) for one in sent})
        place = iter(range(len(found)))

        def show(reference: Mapping[str, Any]) -> picture.Part:
            if next(place) < left_out:
                return picture.text_part(f"({picture.LEFT_OUT})")
            url = urls.get(reference["sha256"])
            return picture.url_part(url) if url else picture.text_part(f"({picture.GONE})")

        sizes = (len(urls.get(one["sha256"], "")) - BYTES_PER_TOKEN * int(one["tokens"]) for one in sent)
        return replace(request, messages=picture.shown(request.messages, show), uncounted=sum(sizes))

    def _load(self, session: SessionId, wanted: Mapping[str, str]) -> dict[str, str]:
        """Return the data URLs of these images, media types by digest; those that are not stored are left out."""
        with self._lock:
            known = {digest: self._urls[digest] for digest in wanted if digest in self._urls}
            for digest in known:
                self._urls.move_to_end(digest)
        missing = [digest for digest in wanted if digest not in known]
        if missing:
            loaded = self._database.run(images.load, session, missing, idempotent=True)
            made = {one: f"data:{wanted[one]};base64,{base64.b64encode(loaded[one]).decode()}" for one in loaded}
            self._keep(made)
            known |= made
        return known

    def _keep(self, made: Mapping[str, str]) -> None:
        with self._lock:
            for digest, url in made.items():
                if digest not in self._urls:
                    self._urls[digest] = url
                    self._size += len(url)
            while self._size > _KEPT:
                self._size -= len(self._urls.popitem(last=False)[1])


def _left_out(found: Sequence[Mapping[str, Any]]) -> int:
    """Return how many of the oldest images are not sent. It follows from the sizes alone, and rises in leaps."""
    first = total = 0
    for place, one in enumerate(found):
        total += int(one["bytes"])
        if total > _MOST_SENT:
            while first < place and total > _LEFT:
                total -= int(found[first]["bytes"])
                first += 1
    return first
