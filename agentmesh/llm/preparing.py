"""From a request to the bytes that a provider's server takes: its settings, and nothing that the server refuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentmesh.domain.rows import Capability
from agentmesh.llm import cache_marks, constraint, history, picture
from agentmesh.llm.bounds import Bounds
from agentmesh.llm.port import CallFailed, ChatRequest
from agentmesh.llm.provider import BOUND_NAMES, Provider
from agentmesh.llm.refusals import LeftOut
from agentmesh.llm.request import (
    EMPTY_CONTENT,
    IMAGES,
    encode,
    has_empty_content,
    parameters,
    with_null_content,
)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request in its wire form."""

    request: ChatRequest
    messages: Sequence[Mapping[str, Any]]
    """Its messages, in the form that the server takes."""
    features: tuple[str, ...]
    """Names of its parameters, and of other features that a server may refuse; without parts of earlier answers."""
    body: bytes
    bounds: Bounds
    refused: frozenset[str]
    """Features that the server was known to refuse."""

    def sent(self) -> set[str]:
        """Return the names of everything in it that a server may refuse. This reads all messages."""
        return {*self.features, *(history.parts(self.messages) - self.refused)}


def prepare(request: ChatRequest, provider: Provider, known: Capability, left_out: LeftOut) -> Prepared:
    """Encode a request, without the parts to leave out; raise CallFailed if it cannot be written as JSON."""
    quirks = left_out.refusals.of(request.model)
    without = quirks.without
    request, bounds = _bounded(_with_settings(request, provider, known, left_out), provider, left_out)
    if forced := constraint.settings(request, without, known.forced_calls):
        request = replace(request, settings={**request.settings, **forced})
        bounds = replace(bounds, is_constrained=True)
    if EMPTY_CONTENT in without:
        request = with_null_content(request)
    request, has_images = _with_images(request, without, left_out)
    is_marked = cache_marks.MARKS not in without and cache_marks.are_wanted(provider, request.model)
    fields = parameters(request, quirks)
    others = {
        EMPTY_CONTENT: has_empty_content(request),
        IMAGES: has_images,
        constraint.FORCED: bool(forced),
        cache_marks.MARKS: is_marked,
    }
    features = (*fields, *(name for name, is_sent in others.items() if is_sent))
    if is_marked:
        request = replace(request, messages=cache_marks.marked(request.messages))
    # The request itself keeps the ids as they are stored: a new one must differ from them.
    encoded = replace(request, messages=history.adapted(request.messages, without))
    try:
        return Prepared(request, encoded.messages, features, encode(fields, encoded), bounds, without)
    except ValueError as error:
        raise CallFailed(
            f"The request to {provider.name} (model {request.model}) cannot be written as JSON: {error}.",
            hint="Check the model's settings.",
            kind="bad_request",
        ) from None


def _with_settings(request: ChatRequest, provider: Provider, known: Capability, left_out: LeftOut) -> ChatRequest:
    settings = provider.settings(request, known)
    return replace(request, settings={**settings, "stream": False} if left_out.stream else settings)


def _bounded(request: ChatRequest, provider: Provider, left_out: LeftOut) -> tuple[ChatRequest, Bounds]:
    """Return the request with the limit of its answer that the server is given, and the client's own limits."""
    bounds, bound = provider.bounds, provider.answer_bound(request)
    if bound is not None:
        bounds = bounds.with_server_limit(bound)
    if left_out.limit:
        bound = provider.answer_bound(replace(request, answer_tokens=None))
    if bound is not None:
        others = {name: value for name, value in request.settings.items() if name not in BOUND_NAMES}
        request = replace(request, settings={**others, **provider.answer_settings(bound)})
    return request, bounds


def _with_images(request: ChatRequest, without: frozenset[str], left_out: LeftOut) -> tuple[ChatRequest, bool]:
    """Return the request, with words in place of images that the server does not take, and whether it has images."""
    has_images = picture.has_images(request.messages)
    if has_images and (IMAGES in without or left_out.images):
        why = picture.UNSEEN if IMAGES in without else picture.REFUSED
        request, has_images = replace(request, messages=picture.without_images(request.messages, why)), False
    if not has_images and request.uncounted:
        request = replace(request, uncounted=0)
    return request, has_images
