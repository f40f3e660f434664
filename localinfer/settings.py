"""Where localinfer keeps its files, and what the person has set.

It knows folders, ``config.toml`` and the environment; it does not know what the settings are used for. Nothing is read
or created at import.
"""

import contextlib
import difflib
import errno
import os
import stat
import tomllib
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import platformdirs

from localinfer import decoding
from localinfer.errors import BadRequest, StorageUnavailable
from localinfer.types import Value

_APP = "localinfer"
_PREFIX = "LOCALINFER_"
_MOST_BYTES = 1_000_000  # of the settings file

KV_TYPES = ("f16", "q8_0", "q4_0")

Positive = Annotated[int, msgspec.Meta(ge=1)]


class Settings(Value, frozen=True):
    """What the person has set, in ``config.toml`` or, with precedence, as ``LOCALINFER_<NAME>`` in the environment.

    ``model`` is the model reference used when none is given. ``offline`` forbids every use of the network.
    ``model_folders`` are folders with models of the person's own; in the environment they are separated as in PATH.
    ``draft`` is what drafts tokens for the model to check: ``auto``, ``lookup``, ``off``, or the reference of a model.
    ``theme`` names a theme of the application; ``keys`` gives actions of the application other keys, one (``"f5"``) or
    several (``["f5", "ctrl+t"]``), and is read from the file only. The others are defaults of the same fields of
    ``LoadOptions``.
    """

    model: str | None = None
    offline: bool = False
    context: Positive | None = None
    threads: Positive | None = None
    device: str | None = None
    kv_type: Literal["f16", "q8_0", "q4_0"] = "f16"
    draft: str = "auto"
    model_folders: tuple[str, ...] = ()
    theme: str | None = None
    keys: dict[str, str | tuple[str, ...]] = msgspec.field(default_factory=dict)


Origin = Literal["default", "file", "environment"]


def models_dir() -> Path:
    """The folder of fetched models."""
    return _under_home("models") or platformdirs.user_data_path(_APP, appauthor=False) / "models"


def builds_dir() -> Path:
    """The folder of the builds of llama.cpp that were made for this machine's graphics cards."""
    return _under_home("builds") or platformdirs.user_data_path(_APP, appauthor=False) / "builds"


def history_file() -> Path:
    """The file of the person's conversations; it need not exist. They are data to keep, not state to lose."""
    return _under_home("history.db") or platformdirs.user_data_path(_APP, appauthor=False) / "history.db"


def log_dir() -> Path:
    """The folder of log files."""
    return _under_home("logs") or platformdirs.user_log_path(_APP, appauthor=False)


def state_dir() -> Path:
    """The folder of what is remembered between runs."""
    return _under_home("state") or platformdirs.user_state_path(_APP, appauthor=False)


def config_file() -> Path:
    """The settings file; it need not exist."""
    return _under_home("config.toml") or platformdirs.user_config_path(_APP, appauthor=False) / "config.toml"


def make_folder(path: Path) -> Path:
    """``path``, created with its parents if it is missing. Raises ``StorageUnavailable``."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "a file is in the way" if isinstance(error, FileExistsError | NotADirectoryError) else error.strerror
        raise StorageUnavailable(
            f"The folder {path} cannot be created: {reason}.",
            f"Set {_PREFIX}HOME to a folder where you may write.",
        ) from error
    return path


def read_file(path: Path, most_bytes: int) -> bytes:
    """What is in ``path``, a file of up to ``most_bytes``. Raises ``OSError``, also for what is no file: a pipe would
    be waited for and a device never ends."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a file", str(path))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(most_bytes + 1)
    finally:
        os.close(descriptor)
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {most_bytes / 1e6:.0f} MB", str(path))
    return data


def load() -> Settings:
    """The settings in force. Raises ``BadRequest`` for a wrong or unknown one, ``StorageUnavailable``."""
    return msgspec.structs.replace(Settings(), **_from_file(config_file()) | _from_environment())


def origins() -> dict[str, Origin]:
    """Where each setting in force comes from. Raises as ``load``."""
    found: dict[str, Origin] = dict.fromkeys(_TYPES, "default")
    found |= dict.fromkeys(_from_file(config_file()), "file")
    return found | dict.fromkeys(_from_environment(), "environment")


def parse(text: str, where: str) -> dict[str, object]:
    """The settings in ``text``, the content of a settings file. Raises ``BadRequest`` naming ``where``."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadRequest(f"The settings file {where} is not valid TOML: {error}.", "Correct that line.") from error
    for key in data:
        if key not in _TYPES:
            near = difflib.get_close_matches(key, _TYPES, n=1)
            hint = f"Did you mean “{near[0]}”?" if near else f"The settings are: {', '.join(_TYPES)}."
            raise BadRequest(f"The settings file {where} has an unknown setting “{key}”.", hint, param=key)
    return {key: _convert(key, value, f"“{key}” in {where}", strict=True) for key, value in data.items()}


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return f"{_PREFIX}{name.upper()}"


def _under_home(name: str) -> Path | None:
    value = os.environ.get(f"{_PREFIX}HOME")
    if not value:
        return None
    home = Path(value)
    with contextlib.suppress(RuntimeError):  # a "~" that stands for nobody is a plain name
        home = home.expanduser()
    return home.absolute() / name


_TYPES = {field.name: field.type for field in msgspec.structs.fields(Settings)}
_LISTS = {"model_folders"}
_FILE_ONLY = {"keys"}


def _from_file(path: Path) -> dict[str, object]:
    try:
        text = read_file(path, _MOST_BYTES).decode("utf-8")
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError as error:
        raise BadRequest(f"The settings file {path} is not valid TOML: {error}.", "Correct that line.") from error
    except OSError as error:
        raise StorageUnavailable(
            f"The settings file {path} cannot be read: {error.strerror}.",
            f"Make it a readable file, or set {_PREFIX}HOME to another folder.",
        ) from error
    return parse(text, str(path))


def _from_environment() -> dict[str, object]:
    values: dict[str, object] = {}
    for key in _TYPES:
        name = variable(key)
        if key not in _FILE_ONLY and (text := os.environ.get(name)):
            parts = [part for part in text.split(os.pathsep) if part]
            values[key] = _convert(key, parts if key in _LISTS else text, name, strict=False)
    return values


def _convert(key: str, value: object, where: str, *, strict: bool) -> object:
    try:
        converted: object = decoding.convert(value, _TYPES[key], strict=strict)
    except msgspec.ValidationError as error:
        raise BadRequest(f"The setting {where} is wrong: {error}.", f"Correct or remove {where}.", param=key) from error
    return converted
