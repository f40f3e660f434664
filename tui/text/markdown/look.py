"""How Markdown looks: a Rich style for everything it can be, from the colours of the application's theme."""

from collections.abc import Mapping
from functools import lru_cache

from rich.style import Style
from textual.color import Color

from localinfer.types import Value
from tui.text.markdown.nodes import ADDRESS, CODE, EMPHASIS, LINK, STRONG, STRUCK, Marks


class Look(Value, frozen=True):
    """Styles that are laid over ``text``. What they mean is told by attributes and signs too, never by colour alone.

    ``marks`` is for what is drawn and not written: bars, boxes, bullets, rules, continuation marks. ``edge``, one cell,
    stands left of code.
    """

    text: Style = Style()
    dim: Style = Style(dim=True)
    marks: Style = Style(dim=True)
    quote: Style = Style(italic=True)
    headings: tuple[Style, ...] = (
        Style(bold=True),
        Style(bold=True),
        Style(bold=True, underline=True),
        Style(underline=True),
        Style(bold=True, italic=True),
        Style(italic=True),
    )
    code: Style = Style(bold=True)
    link: Style = Style(underline=True)
    block: Style = Style()
    edge: str = " "
    comment: Style = Style(italic=True)
    keyword: Style = Style(bold=True)
    name: Style = Style()
    string: Style = Style()
    number: Style = Style()
    added: Style = Style()
    removed: Style = Style()

    @classmethod
    def of(cls, theme: Mapping[str, str]) -> "Look":
        """The look that goes with a Textual theme: ``app.theme_variables``."""
        return _of(tuple(sorted((name, theme[name]) for name in _USED if name in theme)))

    def style(self, base: Style, marks: Marks) -> Style:
        """``base`` with what ``marks`` add."""
        if not marks:
            return base
        if marks & ADDRESS:
            return base + self.dim
        style = base
        if marks & CODE:
            style += self.code
        if marks & LINK:
            style += self.link
        if marks & (STRONG | EMPHASIS | STRUCK):
            style += Style(
                bold=True if marks & STRONG else None,
                italic=True if marks & EMPHASIS else None,
                strike=True if marks & STRUCK else None,
            )
        return style


READABLE = 0.45  # difference of brightness, of 0 to 1
_USED = ("background", "foreground", *(f"text-{name}" for name in ("primary", "accent", "success", "warning", "error")))


@lru_cache(maxsize=8)
def _of(theme: tuple[tuple[str, str], ...]) -> Look:
    colours = {name: Color.parse(value) for name, value in theme}
    ground, ink = colours["background"], colours["foreground"]
    ansi = ink.ansi is not None  # sixteen colours of the terminal's own: nothing can be mixed
    muted, block, inline_code = Style(dim=True), Style(), Style(bold=True)
    if not ansi:
        muted = Style(color=ground.blend(ink, 0.62).rich_color)
        block = Style(bgcolor=ground.blend(ink, 0.07).rich_color)
        inline_code = Style(bgcolor=ground.blend(ink, 0.14).rich_color)

    def coloured(name: str, attributes: str = "") -> Style:
        colour = colours[f"text-{name}"]
        shade = colour if ansi else _readable(colour, ground, ink)
        return Style(color=shade.rich_color) + Style.parse(attributes)

    return Look(
        dim=muted,
        marks=muted,
        headings=(
            coloured("primary", "bold"),
            coloured("primary", "bold"),
            coloured("primary", "bold underline"),
            *Look().headings[3:],
        ),
        code=inline_code,
        link=coloured("primary", "underline"),
        block=block,
        edge="│" if ansi else " ",
        comment=muted + Style(italic=True),
        keyword=coloured("primary", "bold"),
        name=coloured("accent"),
        string=coloured("success"),
        number=coloured("warning"),
        added=coloured("success"),
        removed=coloured("error"),
    )


def _readable(colour: Color, ground: Color, ink: Color) -> Color:
    """``colour``, nearer to the colour of text where it does not stand out from the background."""
    for share in (0.0, 0.2, 0.4, 0.6):
        shade = colour.blend(ink, share)
        if abs(shade.brightness - ground.brightness) >= READABLE:
            return shade
    return ink
