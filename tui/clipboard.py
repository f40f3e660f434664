"""Putting text on the clipboard: by the terminal (OSC 52), which works through SSH, and by the system's own program."""

import os
import shutil
import subprocess
import sys

_TIMEOUT_S = 3.0
_PROGRAMS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("pbcopy", ()),
    ("wl-copy", ()),
    ("xclip", ("-selection", "clipboard")),
    ("xsel", ("--clipboard", "--input")),
    ("clip.exe", ()),
)


def program() -> tuple[str, ...] | None:
    """The command that takes the clipboard's text on standard input; None where this session has no clipboard."""
    graphical = sys.platform in ("darwin", "win32") or any(map(os.environ.get, ("WAYLAND_DISPLAY", "DISPLAY")))
    for name, arguments in _PROGRAMS:
        needs_display = name in ("wl-copy", "xclip", "xsel")
        if (graphical or not needs_display) and (path := shutil.which(name)):
            return (path, *arguments)
    return None


def put(text: str) -> bool:
    """Hand ``text`` to the system's clipboard; whether there is one that took it. Blocks for up to three seconds."""
    command = program()
    if command is None:
        return False
    encoding = "utf-16" if command[0].endswith("clip.exe") else "utf-8"
    try:
        subprocess.run(
            command,
            input=text.encode(encoding, "replace"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return True
