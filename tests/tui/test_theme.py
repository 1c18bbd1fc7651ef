"""Both looks are readable: what is text stands out from whatever it may stand on."""

from __future__ import annotations

import pytest
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.theme import Theme

from agentmesh.domain.errors import ConfigError
from agentmesh.tui.app import MeshApp
from agentmesh.tui.theme import (
    MEANINGS,
    NAMES,
    READABLE,
    THEMES,
    Colourless,
    SixteenColours,
    contrast,
    theme_for,
    theme_of,
)
from agentmesh.tui.widgets.chooser import Chooser
from tests.tui.piloting import Show, asked, enter, puppet, said

TEXTS = ("foreground", "dim", *(f"text-{role}" for role in ("error", "success", "accent", "warning", "primary")))
GROUNDS = ("background", "surface", "panel", "block-cursor-blurred-background")


@pytest.mark.parametrize("look", THEMES, ids=lambda look: look.name)
def test_every_text_is_readable_on_every_ground(look: Theme):
    colours = look.to_color_system().generate() | look.variables
    poor = {
        f"{text} on {ground}": round(contrast(Color.parse(colours[text]), Color.parse(colours[ground])), 2)
        for text in TEXTS
        for ground in GROUNDS
    }
    assert {pair: ratio for pair, ratio in poor.items() if ratio < READABLE} == {}


@pytest.mark.parametrize("look", THEMES, ids=lambda look: look.name)
def test_each_meaning_has_a_colour_of_its_own(look: Theme):
    colours = look.to_color_system().generate() | look.variables
    used = {meaning: colours[role.removeprefix("$")] for meaning, role in MEANINGS.items()}
    assert set(used) == {"needs you", "failed", "working", "done", "quiet"}
    assert len(set(used.values())) == len(used)
    ground = Color.parse(colours["background"])
    assert {meaning: c for meaning, c in used.items() if contrast(Color.parse(c), ground) < READABLE} == {}


@pytest.mark.parametrize("look", THEMES, ids=lambda look: look.name)
def test_a_scrollbar_is_quieter_than_any_text(look: Theme):
    colours = look.to_color_system().generate() | look.variables
    bar, ground, dim = (Color.parse(colours[part]) for part in ("scrollbar", "scrollbar-background", "dim"))
    assert 1.3 < contrast(bar, ground) < contrast(dim, ground)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("auto", "dark", "light")])
def test_quiet_words_are_readable_in_textuals_themes_as_far_as_their_text_is(name: str):
    look = theme_of(name)
    colours = look.to_color_system().generate() | look.variables
    text, dim, ground = (Color.parse(colours[part]) for part in ("foreground", "dim", "background"))
    assert contrast(dim, ground) >= min(READABLE, contrast(text, ground)) - 0.05


def test_an_unknown_theme_is_one_sentence_with_the_near_names():
    with pytest.raises(ConfigError, match=r"^tui\.theme: there is no theme called gruvbx\.$") as caught:
        theme_for({}, "gruvbx")
    assert caught.value.hint == "Did you mean gruvbox?"
    with pytest.raises(ConfigError) as caught:
        theme_for({}, "qqqqqq\x1b[2J")
    assert caught.value.hint.startswith("Known: auto, dark, light, atom-one-dark, ")
    assert "\x1b" not in caught.value.message


@pytest.fixture(autouse=True)
def configuration(tmp_path, monkeypatch):
    """Where a chosen theme is written."""
    monkeypatch.setenv("AGENTMESH_CONFIG_DIR", str(tmp_path))
    return tmp_path / "config.toml"


def test_what_is_highlighted_is_shown_and_escape_takes_it_back(configuration):
    async def scene(show: Show) -> None:
        await enter(show, "/theme")
        await show.until(lambda: isinstance(show.app.screen, Chooser))
        await show.type("nord")
        await show.until(lambda: show.app.theme == "nord")
        await show.press("escape")
        await show.until(lambda: show.app.theme == "agentmesh-dark")
        await enter(show, "/theme")
        await show.until(lambda: isinstance(show.app.screen, Chooser))
        await show.type("gruv")
        await show.until(lambda: show.app.theme == "gruvbox")
        await show.press("enter")
        await show.sees("gruvbox, kept in")
        assert show.app.theme == "gruvbox"
        assert asked(show) == []
        assert configuration.read_text() == '[tui]\ntheme = "gruvbox"\n'

    puppet(scene, size=(100, 30))


def test_a_configuration_that_cannot_be_written_is_said(configuration):
    configuration.write_text("model = ")

    async def scene(show: Show) -> None:
        await enter(show, "/theme nord")
        await show.sees("nord until you leave:")

    puppet(scene, size=(100, 30))


def test_a_named_theme_is_used_at_once_and_an_unknown_one_is_refused():
    async def scene(show: Show) -> None:
        await enter(show, "/theme light")
        await show.until(lambda: show.app.theme == "agentmesh-light")
        await enter(show, "/theme lihgt")
        await show.sees("there is no theme called lihgt. Did you mean light")

    puppet(scene, size=(100, 30))


def test_every_theme_draws_the_screen():
    async def scene(show: Show) -> None:
        await show.rows(said(1, "An **answer** with `code`."))
        for name in NAMES:
            await enter(show, f"/theme {name}")
            assert show.app.theme == theme_for({}, name)
            assert "An answer with code." in show.text

    puppet(scene, size=(100, 30))


def test_without_colours_a_style_keeps_what_is_no_colour():
    filtered = Colourless("#15181d").apply(
        [
            Segment("a", Style.parse("bold red on #15181d")),
            Segment("b", Style.parse("#ffffff on #dcdfe4")),
            Segment("c", None),
        ],
        Color.parse("#000000"),
    )
    assert [str(segment.style) for segment in filtered] == ["bold", "reverse", "None"]


@pytest.mark.parametrize("look", THEMES, ids=lambda look: look.name)
def test_sixteen_colours_say_each_meaning_and_what_is_chosen(look: Theme):
    colours = look.to_color_system().generate() | look.variables
    chosen = colours["block-cursor-blurred-background"]
    styles = {meaning: Style.parse(colours[role.removeprefix("$")]) for meaning, role in MEANINGS.items()}
    styles |= {"text": Style.parse(colours["foreground"]), "chosen": Style.parse(f"{colours['dim']} on {chosen}")}
    segments = [Segment("x", style + Style(bold=True)) for style in styles.values()]
    for sixteen, last in ((SixteenColours(look), "bold reverse"), (Colourless(colours["background"]), "bold reverse")):
        filtered = [str(segment.style) for segment in sixteen.apply(segments, Color.parse("#000000"))]
        assert filtered[-1] == last
        if isinstance(sixteen, SixteenColours):
            assert filtered[:-1] == ["bold yellow", "bold red", "bold cyan", "bold green", "bold dim", "bold"]


def test_prose_is_at_most_a_hundred_columns_wide():
    async def scene(show: Show) -> None:
        await show.rows(said(1, "word " * 60 + "**end**"))
        await show.sees("end")
        lines = [line for line in show.lines if "word" in line]
        assert max(len(line.strip()) for line in lines) <= 100
        assert len(lines) > 2

    puppet(scene, size=(160, 40))


def test_an_app_with_an_unknown_theme_does_not_begin():
    with pytest.raises(ConfigError):
        MeshApp(lambda: None, keymap=None, look="pink")  # type: ignore[arg-type, return-value]
