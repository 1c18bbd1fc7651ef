"""A place that scrolls and does not jump: what is added above or unfolds leaves in sight what is held."""

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
        """Arrange, and keep the held entry where it is on the screen: in the same frame, so that nothing jumps."""
        arrangement = super().arrange(size, optimal)
        # Textual's anchor would push a short conversation down to the bottom, and let it jump when it is scrolled.
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

    def keep(self, view: Widget | None, above: int | None = None) -> None:
        """Keep an entry where it is, or with so many lines of it above, until ``let_go``."""
        if view is None:
            return
        self._hold = (view, int(self.scroll_y) - view.virtual_region.y if above is None else above)

    def let_go(self) -> None:
        """Let go of it when what was mounted is laid out: after the layout that is due, and one that this may cause."""
        if self._hold is not None:
            self.call_after_refresh(self.call_after_refresh, self.release, self._hold)

    def release(self, held: tuple[Widget, int] | None = None) -> None:
        """Hold nothing; with an argument only if it is still what is held."""
        if held is None or self._hold is held:
            self._hold = None
