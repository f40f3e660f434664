"""The two themes of localinfer, dark and light, and which theme a person chose.

Every colour is one of the 256 that most terminals have, so that those without true colour show the same; text keeps a
contrast of 4.5 : 1 or more on every background (WCAG AA); success, warning and error stay apart for people who do not
see red or green. It knows nothing of widgets.
"""

import difflib
from collections.abc import Iterable

from textual.theme import Theme

from localinfer.errors import BadRequest

DARK = Theme(
    name="localinfer-dark",
    dark=True,
    primary="#87afd7",
    secondary="#87afaf",
    accent="#d7af87",
    foreground="#dadada",
    background="#121212",
    surface="#1c1c1c",
    panel="#262626",
    success="#5fd7af",
    warning="#ffd75f",
    error="#ff8787",
    variables={
        "text": "#dadada",
        "text-muted": "#a8a8a8",
        "text-disabled": "#767676",
        "foreground-muted": "#a8a8a8",
        "foreground-disabled": "#767676",
        "primary-muted": "#00005f",
        "secondary-muted": "#005f5f",
        "accent-muted": "#444444",
        "success-muted": "#005f5f",
        "warning-muted": "#5f5f00",
        "error-muted": "#5f0000",
        "border": "#87afd7",
        "border-blurred": "#444444",
        "block-cursor-background": "#005f87",
        "block-cursor-foreground": "#ffffff",
        "block-cursor-blurred-background": "#303030",
        "block-cursor-blurred-foreground": "#dadada",
        "block-hover-background": "#303030",
        "input-cursor-background": "#dadada",
        "input-cursor-foreground": "#121212",
        "input-selection-background": "#005f87",
        "input-selection-foreground": "#ffffff",
        "screen-selection-background": "#005f87",
        "screen-selection-foreground": "#ffffff",
        "scrollbar": "#444444",
        "scrollbar-hover": "#626262",
        "scrollbar-active": "#87afd7",
        "scrollbar-background": "#1c1c1c",
        "scrollbar-background-hover": "#1c1c1c",
        "scrollbar-background-active": "#1c1c1c",
        "scrollbar-corner-color": "#1c1c1c",
        "surface-active": "#303030",
        "footer-background": "#1c1c1c",
        "footer-foreground": "#dadada",
        "footer-key-foreground": "#d7af87",
        "footer-description-foreground": "#b2b2b2",
        "link-color": "#87afd7",
        "link-color-hover": "#ffffff",
        "link-background-hover": "#005f87",
        "button-color-foreground": "#121212",
        "button-focus-text-style": "bold underline",
    },
)

LIGHT = Theme(
    name="localinfer-light",
    dark=False,
    primary="#005f87",
    secondary="#005f5f",
    accent="#87005f",
    foreground="#262626",
    background="#ffffff",
    surface="#eeeeee",
    panel="#e4e4e4",
    success="#005faf",
    warning="#5f5f00",
    error="#af005f",
    variables={
        "text": "#262626",
        "text-muted": "#585858",
        "text-disabled": "#767676",
        "foreground-muted": "#585858",
        "foreground-disabled": "#767676",
        "primary-muted": "#afd7ff",
        "secondary-muted": "#afd7d7",
        "accent-muted": "#ffd7ff",
        "success-muted": "#afd7d7",
        "warning-muted": "#ffd7af",
        "error-muted": "#ffd7d7",
        "border": "#005f87",
        "border-blurred": "#bcbcbc",
        "block-cursor-background": "#005f87",
        "block-cursor-foreground": "#ffffff",
        "block-cursor-blurred-background": "#dadada",
        "block-cursor-blurred-foreground": "#262626",
        "block-hover-background": "#dadada",
        "input-cursor-background": "#262626",
        "input-cursor-foreground": "#ffffff",
        "input-selection-background": "#afd7ff",
        "input-selection-foreground": "#262626",
        "screen-selection-background": "#afd7ff",
        "screen-selection-foreground": "#262626",
        "scrollbar": "#b2b2b2",
        "scrollbar-hover": "#949494",
        "scrollbar-active": "#005f87",
        "scrollbar-background": "#eeeeee",
        "scrollbar-background-hover": "#eeeeee",
        "scrollbar-background-active": "#eeeeee",
        "scrollbar-corner-color": "#eeeeee",
        "surface-active": "#dadada",
        "footer-background": "#eeeeee",
        "footer-foreground": "#262626",
        "footer-key-foreground": "#87005f",
        "footer-description-foreground": "#4e4e4e",
        "link-color": "#005f87",
        "link-color-hover": "#ffffff",
        "link-background-hover": "#005f87",
        "button-color-foreground": "#ffffff",
        "button-focus-text-style": "bold underline",
    },
)

OURS = (DARK, LIGHT)

# For variables that not every theme has: those of the terminal's own colours have few.
DEFAULTS = {"surface-active": "transparent"}


def chosen(name: str | None, known: Iterable[str] = ()) -> str:
    """The theme that the setting ``theme`` names, ours where it is None. ``known`` are the names of the others that
    there are. Raises ``BadRequest``."""
    names = [theme.name for theme in OURS] + sorted(set(known) - {theme.name for theme in OURS})
    if name is None:
        return DARK.name
    if name in names:
        return name
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"Did you mean “{near[0]}”?" if near else f"The themes are: {', '.join(names)}."
    raise BadRequest(f"There is no theme “{name}”.", hint, param="theme")
