from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from xml.etree import ElementTree as ET

import pytest

from bench import report
from bench.harness import Bench, Figure
from bench.pictures import Bars, Curve, Picture, Wanted, draw

_SVG = "{http://www.w3.org/2000/svg}"


def _figure(picture: Picture, samples: list[dict[str, float]], unit: str = "ms", title: str = "a title") -> Figure:
    figure = Figure("P3", title, dict.fromkeys(samples[0], unit), picture=picture)
    figure.samples = list(samples)
    figure.foreign = [0.0] * len(samples)
    return figure


def _words(svg: str) -> list[str]:
    return [text.text or "" for text in ET.fromstring(svg).iter(f"{_SVG}text")]


def _widths(svg: str) -> list[float]:
    bars = ET.fromstring(svg).iter(f"{_SVG}rect")
    return [float(bar.attrib["width"]) for bar in bars if bar.attrib["class"] != "ground"]


BARS = Bars({"agentmesh": "agentmesh: durable", "queue": "a queue: in memory"})
TWICE = [{"agentmesh": 2.0, "queue": 4.0}, {"agentmesh": 2.0, "queue": 4.5}, {"agentmesh": 2.5, "queue": 4.0}]


def test_bars_show_each_label_and_median_and_are_as_long_as_their_values() -> None:
    svg = draw(_figure(BARS, TWICE))
    words = _words(svg)
    assert {"agentmesh: durable", "2 ms", "a queue: in memory", "4 ms"} <= set(words)
    ours, queue = _widths(svg)
    assert queue == pytest.approx(2 * ours, rel=0.01)
    assert [path.attrib["class"] for path in ET.fromstring(svg).iter(f"{_SVG}path")] == ["whisker"] * 2


def test_a_demand_on_a_ratio_is_drawn_as_a_line_at_that_part_of_the_other() -> None:
    bars = Bars(BARS.labels, Wanted("≤ 0.5 × a queue", 0.5, "queue"))
    svg = draw(_figure(bars, TWICE))
    assert "≤ 0.5 × a queue (2 ms)" in _words(svg)
    (line,) = (path for path in ET.fromstring(svg).iter(f"{_SVG}path") if path.attrib["class"] == "target")
    ours, _ = _widths(svg)
    assert line.attrib["d"].startswith(f"M{20 + ours:.1f} ")


def test_logarithmic_bars_say_so_and_keep_their_order() -> None:
    svg = draw(_figure(Bars(BARS.labels, logarithmic=True), [{"agentmesh": 0.05, "queue": 1000.0}]))
    assert any("logarithmic" in word for word in _words(svg))
    ours, queue = _widths(svg)
    assert 1 < ours < queue


@pytest.mark.parametrize("logarithmic", [False, True])
def test_nothing_measured_as_nothing_is_drawn(logarithmic) -> None:
    svg = draw(_figure(Bars(BARS.labels, logarithmic=logarithmic), [{"agentmesh": 0.0, "queue": 0.0}]))
    assert _words(svg).count("0 ms") == 2


def test_a_curve_shows_every_size_and_value_and_names_its_lines() -> None:
    samples = [{"few": 1.0, "many": 12.0, "more": 130.0, "theirs": 55.0}]
    lines = {"agentmesh": {10: "few", 100: "many", 1000: "more"}, "another": {100: "theirs"}}
    svg = draw(_figure(Curve("children", lines, Wanted("≤ 200 ms", 200)), samples))
    words = _words(svg)
    assert {"10", "100", "1,000", "1 ms", "12 ms", "130 ms", "55 ms", "agentmesh", "another"} <= set(words)
    assert "≤ 200 ms (200 ms)" in words
    assert any("logarithmic: size and value" in word for word in words)


def test_sizes_in_even_steps_stand_evenly() -> None:
    samples = [{str(n): 1.0 for n in range(1, 11)}]
    svg = draw(_figure(Curve("tenths", {"agentmesh": {n: str(n) for n in range(1, 11)}}), samples))
    assert not any("logarithmic" in word for word in _words(svg))


def test_a_curve_of_one_size_is_a_point() -> None:
    svg = draw(_figure(Curve("children", {"agentmesh": {1: "few"}}), [{"few": 3.0}]))
    assert "3 ms" in _words(svg)


def test_foreign_text_is_escaped() -> None:
    foreign = "<script>&\"'</script>"
    svg = draw(_figure(Bars({"agentmesh": foreign}), [{"agentmesh": 1.0}], title=foreign))
    assert "<script" not in svg
    assert foreign in _words(svg)


def test_values_of_two_units_are_refused() -> None:
    figure = _figure(BARS, TWICE)
    figure.units = {"agentmesh": "ms", "queue": "s"}
    with pytest.raises(ValueError, match="P3: a picture shows one unit, not ms, s"):
        draw(figure)


def _report(folder: Path, *figures: Figure) -> str:
    bench = cast("Bench", SimpleNamespace(figures=list(figures), knows_foreign_load=True))
    report.write(folder, {}, bench, quick=False, any_load=False)
    return (folder / "RESULTS.md").read_text()


def test_the_report_links_a_picture_with_its_values_in_words(tmp_path) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "stale.svg").touch()
    text = _report(tmp_path, _figure(BARS, TWICE), _figure(BARS, TWICE))
    pictures = sorted(path.name for path in (tmp_path / "pictures").iterdir())
    assert pictures == ["p3-1.svg", "p3.svg"]
    for name in pictures:
        words = "![a title. agentmesh: durable: 2 ms; a queue: in memory: 4 ms]"
        assert f"{words}(pictures/{name})" in text


def test_what_was_not_measured_has_no_picture(tmp_path) -> None:
    missing: Any = Figure("P3", "a title", {}, failed="pip | said\nno", picture=BARS)
    text = _report(tmp_path, missing)
    assert "![" not in text
    assert "**not measured**: pip \\| said no" in text
    assert list((tmp_path / "pictures").iterdir()) == []
