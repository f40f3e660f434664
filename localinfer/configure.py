"""Changing the settings file: only what is changed moves; comments, order and everything else stay as they are.

It knows the file and what settings are allowed; not what they are used for.
"""

import contextlib
import stat
from collections.abc import Mapping
from pathlib import Path

from localinfer import kept, settings
from localinfer.errors import BadRequest, StorageUnavailable


def change(values: Mapping[str, object]) -> None:
    """Set each of ``values`` in the settings file; None takes a setting out. The file is replaced in one step, and only
    by one that is right. Raises ``BadRequest`` for a value that is not allowed or a file that is damaged, and
    ``StorageUnavailable``."""
    import tomlkit  # slow to load, and rarely needed
    import tomlkit.exceptions

    path = settings.config_file()
    path = path.resolve() if path.is_symlink() else path  # a link into a folder of dotfiles stays one
    try:
        document = tomlkit.parse(_read(path))
    except tomlkit.exceptions.ParseError as error:
        raise BadRequest(f"The settings file {path} is not valid TOML: {error}.", "Correct that line.") from error
    for name, value in values.items():
        if value is None:
            document.pop(name, None)
        else:
            document[name] = list(value) if isinstance(value, tuple) else value
    text = tomlkit.dumps(document)
    settings.parse(text, str(path))
    try:
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
        kept.put(path, text.encode())
        if mode is not None:
            with contextlib.suppress(OSError):
                path.chmod(mode)
    except OSError as error:
        raise StorageUnavailable(
            f"The settings file {path} cannot be written: {error.strerror}.",
            "Make it a file that you may write to, or edit it yourself.",
        ) from error


def _read(path: Path) -> str:
    """What the file says. A damaged one is refused before anything is changed."""
    settings.load()
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"The settings file {path} cannot be read: {error}.", "Correct it first.") from error
