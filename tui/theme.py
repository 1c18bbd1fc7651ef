"""The two looks of the program, and which one a terminal gets."""

from __future__ import annotations

from collections.abc import Mapping

from textual.theme import Theme


def _chosen(background: str) -> dict[str, str]:
    """Return how the line that is chosen in a list looks: dim words must be readable in it, and bold is no colour."""
    return {
        "block-cursor-text-style": "none",
        "block-cursor-blurred-background": background,
        "block-cursor-blurred-text-style": "bold",
    }


DARK = Theme(
    name="agentmesh-dark",
    primary="#6aa9ff",
    secondary="#8f9fb8",
    accent="#e8b465",
    warning="#e8b465",
    error="#f0717b",
    success="#7bc67e",
    foreground="#dcdfe4",
    background="#15181d",
    surface="#1a1e24",
    panel="#232831",
    dark=True,
    variables={"dim": "#98a2b2", **_chosen("#2a374b")},
)
LIGHT = Theme(
    name="agentmesh-light",
    primary="#1f5fbf",
    secondary="#56657a",
    accent="#8a5a00",
    warning="#8a5a00",
    error="#b3232f",
    success="#23702a",
    foreground="#20242a",
    background="#fbfbfa",
    surface="#f3f3f1",
    panel="#e6e7e6",
    dark=False,
    variables={"dim": "#545d69", **_chosen("#d3deee")},
)
THEMES = (DARK, LIGHT)

ROLES: Mapping[str, str] = {
    "received": "$text-success",
    "running": "$text-accent",
    "done": "bold $text-success",
    "idle": "$dim",
    "dead": "$text-error",
    "failed": "bold $text-error",
    "out of budget": "bold $text-warning",
    "interrupted": "$text-warning",
    "me": "bold $text-primary",
    "name": "$foreground",
    "dim": "$dim",
    "warning": "bold $text-warning",
}
"""How the pieces of ``agentmesh.tui.board.status`` look; their words say the same without colour."""


def theme_for(environ: Mapping[str, str], wanted: str | None = None) -> str:
    """Return the name of the theme: ``dark`` or ``light`` as wanted, else what the terminal says of itself."""
    if wanted in ("dark", "light"):
        return f"agentmesh-{wanted}"
    return LIGHT.name if _is_light(environ.get("COLORFGBG", "")) else DARK.name


def _is_light(colours: str) -> bool:
    """Judge ``COLORFGBG`` ("15;0": foreground, background): 7 and 9 to 15 are light backgrounds."""
    background = colours.rpartition(";")[2]
    return background.isdigit() and (int(background) == 7 or 9 <= int(background) <= 15)
