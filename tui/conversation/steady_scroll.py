"""A scroll area that does not jump: while others are added or unfold, one child stays where it is."""

from __future__ import annotations

from textual.containers import VerticalScroll
from textual.geometry import Size
from textual.layout import DockArrangeResult
from textual.widget import Widget


class SteadyScroll(VerticalScroll, can_focus=False):
    """Keeps a child where it is on the screen while others change."""

    _hold: tuple[Widget, int] | None = None
    """The child, and how many of its lines are above the upper edge."""

    def arrange(self, size: Size, optimal: bool = False) -> DockArrangeResult:
        """Arrange, and keep the held entry where it is on the screen, in the same frame."""
        arrangement = super().arrange(size, optimal)
        # Textual's anchor would push a short conversation to the bottom and make it jump when scrolled.
        self._anchored = arrangement.total_region.bottom > size.height
        self._anchor_released = self._anchor_released and self._anchored
        if self._hold is not None:
            held, above = self._hold
            top = next((at.region.y + above for at in arrangement.placements if at.widget is held), None)
            if top is not None:
                self.set_reactive(SteadyScroll.scroll_y, float(max(top, 0)))
                self.set_reactive(SteadyScroll.scroll_target_y, float(max(top, 0)))
                self.vertical_scrollbar.position = max(top, 0)
        return arrangement

    @property
    def follows_end(self) -> bool:
        """Whether the next layout scrolls to the end, because nobody has scrolled away from it."""
        return self._anchored and not self._anchor_released

    def keep(self, view: Widget | None, above: int | None = None) -> None:
        """Keep an entry where it is, or with so many lines of it above, until ``let_go``."""
        if view is None:
            return
        self._hold = (view, int(self.scroll_y) - view.virtual_region.y if above is None else above)

    def let_go(self) -> None:
        """Release it after the next layout and the one that it may cause."""
        if self._hold is not None:
            self.call_after_refresh(self.call_after_refresh, self.release, self._hold)

    def release(self, held: tuple[Widget, int] | None = None) -> None:
        """Hold nothing; with an argument, only if that is what is held."""
        if held is None or self._hold is held:
            self._hold = None
