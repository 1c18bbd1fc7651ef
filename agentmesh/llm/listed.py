"""Read a server's account of itself and its models: its list of models, and llama.cpp's /props and /slots.

Impossible values are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_LEAST, _MOST = 256, 100_000_000
"""Context sizes in tokens that are believed."""
_MOST_SLOTS = 10_000


def entries(document: Any) -> list[Mapping[str, Any]]:
    """Return the entries of a list of models that have a name; empty if the document has another form."""
    data = document.get("data") if isinstance(document, Mapping) else None
    found = data if isinstance(data, list) else ()
    return [entry for entry in found if isinstance(entry, Mapping) and entry.get("id")]


def window(entry: Mapping[str, Any]) -> int | None:
    """Return the context size in an entry, for llama.cpp of one slot; None if it is missing or impossible."""
    meta = entry.get("meta")
    return _number(meta.get("n_ctx") if isinstance(meta, Mapping) else entry.get("max_model_len"), _LEAST, _MOST)


def is_possible(window: int | None) -> bool:
    """Whether a context size in tokens is one that is believed."""
    return _number(window, _LEAST, _MOST) is not None


def windows(found: Sequence[Mapping[str, Any]]) -> dict[str, int | None]:
    """Return the models by name, each with its context size if the server names it."""
    return {str(entry["id"]): window(entry) for entry in found}


def window_of(windows: Mapping[str, int | None], model: str) -> int | None:
    """Return the context size of a model in a list; a server's only model may have another name there."""
    return windows.get(model) if len(windows) > 1 else next(iter(windows.values()), None)


def is_of_llama(found: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a list of models comes from llama.cpp, which has slots and says how many."""
    return any(entry.get("owned_by") == "llamacpp" for entry in found)


def slots(document: Any) -> int | None:
    """Return how many slots llama.cpp has, given its /props or its /slots; None if that says nothing possible."""
    if isinstance(document, list):
        return _number(len(document), 1, _MOST_SLOTS)
    return _number(document.get("total_slots"), 1, _MOST_SLOTS) if isinstance(document, Mapping) else None


def slot_window(document: Any) -> int | None:
    """Return the context size of one slot of llama.cpp, given its /props; None if that says nothing possible."""
    settings = document.get("default_generation_settings") if isinstance(document, Mapping) else None
    return _number(settings.get("n_ctx"), _LEAST, _MOST) if isinstance(settings, Mapping) else None


def _number(value: Any, least: int, most: int) -> int | None:
    is_possible = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
    return value if is_possible else None
