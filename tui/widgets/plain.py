"""Text that is never markup: text of a model, a tool or a person is shown as it is."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static


class Plain(Static):
    """A Static whose strings are text; styled pieces come as Content."""

    def __init__(
        self,
        content: str | Content = "",
        *,
        id: str | None = None,  # noqa: A002 - Textual's
        classes: str | None = None,
    ) -> None:
        super().__init__(content, markup=False, id=id, classes=classes)
