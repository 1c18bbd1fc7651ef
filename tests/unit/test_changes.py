"""Lines of diffs, as people read them."""

from __future__ import annotations

from agentmesh.domain.changes import DiffKind, lines_of_diff


def test_only_a_line_feed_ends_a_line_of_a_diff():
    """A form feed, or a separator of Unicode, would put the rest of a line outside of the diff."""
    odd = "a\x0cb\x0bc\x85d\u2028e\x1cf"
    diff = f"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n one\r\n-two\n+{odd}\n"
    shown = lines_of_diff(diff)
    assert [(line.kind, line.number) for line in shown[1:]] == [
        (DiffKind.KEPT, 1),
        (DiffKind.REMOVED, 2),
        (DiffKind.ADDED, 2),
    ]
    assert (shown[1].text, shown[3].text) == ("one", "a\\u000cb\\u000bc\\u0085d\u2028e\\u001cf")
