"""The themes: readable for everyone, on every terminal."""

import itertools
import re
from pathlib import Path

import pytest
from rich.color import Color as RichColor
from rich.color import ColorSystem
from textual.app import App
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

from localinfer.errors import BadRequest
from tui import theme

AA = 4.5  # WCAG 2.2, contrast (minimum), for text of usual size
BACKGROUNDS = ("background", "surface", "panel")
TEXTS = ("text", "text-muted", "foreground", "primary", "secondary", "accent", "success", "warning", "error")
PAIRS = (
    ("block-cursor-foreground", "block-cursor-background"),
    ("block-cursor-blurred-foreground", "block-cursor-blurred-background"),
    ("input-cursor-foreground", "input-cursor-background"),
    ("input-selection-foreground", "input-selection-background"),
    ("screen-selection-foreground", "screen-selection-background"),
    ("footer-foreground", "footer-background"),
    ("footer-key-foreground", "footer-background"),
    ("footer-description-foreground", "footer-background"),
    ("link-color-hover", "link-background-hover"),
    ("text", "block-hover-background"),
    ("text", "surface-active"),
    *(("button-color-foreground", kind) for kind in ("primary", "success", "warning", "error")),
    *((f"text-{kind}", f"{kind}-muted") for kind in ("primary", "success", "warning", "error", "accent")),
    ("text-muted", "block-cursor-blurred-background"),
)
# Machado, Oliveira and Fernandes (2009), severity 1.0, on linear RGB.
BLINDNESS = {
    "none": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
}
both = pytest.mark.parametrize("ours", theme.OURS, ids=lambda ours: ours.name)


def linear(color: Color) -> tuple[float, ...]:
    return tuple(v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in color.normalized)


def luminance(color: Color) -> float:
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear(color), strict=True))


def contrast(one: Color, other: Color) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def lab(color: Color, matrix: tuple[tuple[float, ...], ...]) -> tuple[float, float, float]:
    """CIE L*a*b* (D65) of what ``color`` becomes for an eye described by ``matrix``."""
    rgb = [min(max(sum(m * part for m, part in zip(row, linear(color), strict=True)), 0), 1) for row in matrix]
    xyz = (
        (0.4124 * rgb[0] + 0.3576 * rgb[1] + 0.1805 * rgb[2]) / 0.9505,
        0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2],
        (0.0193 * rgb[0] + 0.1192 * rgb[1] + 0.9505 * rgb[2]) / 1.089,
    )
    x, y, z = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def variables(ours: Theme) -> dict[str, str]:
    return ours.to_color_system().generate()


def in_256_colours(color: Color) -> Color:
    """What the terminal driver makes of ``color`` where there is no true colour."""
    there = RichColor.from_rgb(*color.rgb).downgrade(ColorSystem.EIGHT_BIT).get_truecolor()
    return Color(there.red, there.green, there.blue)


@both
@pytest.mark.parametrize("few", [False, True], ids=["true colour", "256 colours"])
def test_text_is_readable_on_every_background(ours: Theme, few: bool) -> None:
    colors = {name: Color.parse(text) for name, text in variables(ours).items() if text.startswith("#")}
    if few:
        colors = {name: in_256_colours(color) for name, color in colors.items()}
    pairs = [*itertools.product(TEXTS, BACKGROUNDS), *PAIRS]
    ratios = {f"{text} on {back}": contrast(colors[text], colors[back]) for text, back in pairs}
    assert {pair: ratio for pair, ratio in ratios.items() if ratio < AA} == {}


@both
@pytest.mark.parametrize("eye", BLINDNESS)
def test_success_warning_and_error_stay_apart_for_every_eye(ours: Theme, eye: str) -> None:
    colors = [Color.parse(variables(ours)[name]) for name in ("success", "warning", "error")]
    for one, other in itertools.combinations(colors, 2):
        distance = sum((a - b) ** 2 for a, b in zip(lab(one, BLINDNESS[eye]), lab(other, BLINDNESS[eye]), strict=True))
        assert distance**0.5 > 15, "a difference of 2 is just noticeable side by side"


@both
def test_a_terminal_of_256_colours_shows_the_same(ours: Theme) -> None:
    named = [getattr(ours, name) for name in ("primary", "secondary", "accent", "foreground", *BACKGROUNDS)]
    named += [ours.success, ours.warning, ours.error, *ours.variables.values()]
    for color in (Color.parse(text) for text in named if text.startswith("#")):
        there = in_256_colours(color)
        assert there == color or (
            # Rich takes a light grey for its neighbour, one step of 10 away.
            color.r == color.g == color.b and there.r == there.g == there.b and abs(color.r - there.r) <= 10
        )
    assert len({in_256_colours(Color.parse(getattr(ours, name))) for name in BACKGROUNDS}) == 3


@both
async def test_the_application_takes_them(ours: Theme) -> None:
    app: App[None] = App()
    async with app.run_test() as pilot:
        for one in theme.OURS:
            app.register_theme(one)
        app.theme = ours.name
        await pilot.pause()
        assert app.current_theme is ours
        assert app.screen.styles.background.hex.lower() == ours.background
        assert app.theme_variables["surface"].lower() == ours.surface


def used(css: str) -> set[str]:
    return set(re.findall(r"\$([a-z][a-z0-9-]*)", css))


@pytest.mark.parametrize("one", [*BUILTIN_THEMES.values(), *theme.OURS], ids=lambda one: one.name)
def test_every_variable_that_our_styles_use_is_there_in_every_theme(one: Theme) -> None:
    sources = [path.read_text("utf-8") for path in Path(theme.__file__).parent.rglob("*.py")]
    wanted = {name for source in sources for name in used(source)}
    assert {"primary", "surface-active", "text-warning"} <= wanted
    assert wanted - set(variables(one)) - set(theme.DEFAULTS) == set()


def test_a_theme_that_there_is_not_gets_a_suggestion() -> None:
    assert theme.chosen(None) == "localinfer-dark"
    assert theme.chosen("nord", BUILTIN_THEMES) == "nord"
    with pytest.raises(BadRequest) as caught:
        theme.chosen("localinfer-drak", BUILTIN_THEMES)
    assert caught.value.hint == "Did you mean “localinfer-dark”?"
    assert caught.value.param == "theme"
    with pytest.raises(BadRequest) as caught:
        theme.chosen("x", ["b", "a"])
    assert caught.value.hint == "The themes are: localinfer-dark, localinfer-light, a, b."
