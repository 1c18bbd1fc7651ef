"""The openai SDK, imported without the types of the endpoints that nobody here uses.

``import openai`` runs every ``__init__`` below ``openai.types``, which imports 390 modules of pydantic models. That is
0.2 of the 0.5 seconds of processor time that the import takes. Here each of these packages runs when a name is first
asked of it, so all names are there for every program. If the program has imported openai before, nothing is deferred.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, Final

from agentmesh.llm.finders import asked_first

_TYPES: Final = "openai.types"


class _Deferred(Loader):
    """Runs a package's ``__init__`` at the first look at one of its names."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return the module that the real loader makes."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Have the module run later."""
        if module.__spec__ is not None:
            module.__spec__.loader = module.__loader__ = self._loader
        module.__dict__["__getattr__"] = _Names(module, self._loader)


class _Names:
    """A deferred module's ``__getattr__``.

    It holds no lock while the module runs, because that takes the locks of other imports. Two threads may run it at
    once, which does no harm: it only takes names from other modules.
    """

    def __init__(self, module: ModuleType, loader: Loader) -> None:
        self._module = module
        self._loader = loader
        self._here = threading.local()
        """``runs``: whether this thread runs the module, so that a circular import finds what it finds elsewhere."""

    def __call__(self, name: str) -> Any:
        names = vars(self._module)
        if names.get("__getattr__") is self and not getattr(self._here, "runs", False) and _is_asked(name):
            self._here.runs = True
            try:
                self._loader.exec_module(self._module)
            finally:
                self._here.runs = False
            if names.get("__getattr__") is self:
                del names["__getattr__"]
        try:
            return names[name]
        except KeyError:
            raise AttributeError(f"module {self._module.__name__!r} has no attribute {name!r}") from None


def _is_asked(name: str) -> bool:
    """Whether a name may be one of the module's own; the import system looks for some that are not."""
    return name == "__all__" or not name.startswith("__")


class _Finder(MetaPathFinder):
    """Finds the packages below ``openai.types``, to be deferred."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a package's spec; None for every other module."""
        if fullname != _TYPES and not fullname.startswith(f"{_TYPES}."):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None and spec.submodule_search_locations is not None:
            spec.loader = _Deferred(spec.loader)
        return spec


with asked_first(_Finder()):
    import openai as openai  # noqa: PLC0414  for whom imports this module
