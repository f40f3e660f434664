"""Ways of answering that a person keeps under a name, and three that are always there.

It knows values and one small file of the state folder; not how a preset is applied.
"""

import contextlib
from pathlib import Path

import msgspec

from localinfer import kept, settings
from localinfer.errors import BadRequest, StorageUnavailable
from localinfer.types import Sampling, Value

LONGEST_NAME = 40


class Preset(Value, frozen=True):
    """What a preset sets: the sampling and, where it has one, the system prompt. Context, KV type and threads belong to
    the loaded model and stay."""

    name: str
    sampling: Sampling = Sampling()
    system: str | None = None


BUILT_IN = (
    Preset(name="precise", sampling=Sampling(temperature=0.2, top_k=20, top_p=0.9)),
    Preset(name="balanced"),
    Preset(name="creative", sampling=Sampling(temperature=1.1, top_k=0, top_p=0.98, min_p=0.03)),
)


def presets() -> tuple[Preset, ...]:
    """The built-in ones, then the person's own by name."""
    return BUILT_IN + tuple(sorted(_own(), key=lambda preset: preset.name.casefold()))


def is_built_in(name: str) -> bool:
    return any(preset.name == name.strip().casefold() for preset in BUILT_IN)


def check_name(name: str) -> None:
    """Refuse a name that no preset can have. Raises ``BadRequest``."""
    if not name.strip() or len(name.strip()) > LONGEST_NAME or not name.isprintable():
        raise BadRequest(
            f"A preset needs a name of 1 to {LONGEST_NAME} printable characters.", "Type a short name.", param="name"
        )
    if is_built_in(name):
        raise BadRequest(f"“{name.strip()}” is built in.", "Choose another name.", param="name")


def save(preset: Preset) -> None:
    """Keep ``preset``, in place of one of the same name. Raises ``BadRequest``, ``StorageUnavailable``."""
    check_name(preset.name)
    preset = msgspec.structs.replace(preset, name=preset.name.strip())
    _write((*(one for one in _own() if one.name != preset.name), preset))


def delete(name: str) -> None:
    """Forget the person's preset of that name, if there is one. Raises ``BadRequest`` for a built-in one,
    ``StorageUnavailable``."""
    check_name(name)
    _write(tuple(one for one in _own() if one.name != name.strip()))


def _path() -> Path:
    return settings.state_dir() / "presets.json"


def _own() -> tuple[Preset, ...]:
    own: dict[str, Preset] = {}
    for preset in kept.load(_path(), tuple[Preset, ...], ()):
        with contextlib.suppress(BadRequest):  # the file may have been edited
            check_name(preset.name)
            own[preset.name] = preset
    return tuple(own.values())


def _write(own: tuple[Preset, ...]) -> None:
    try:
        kept.replace(_path(), own)
    except OSError as error:
        raise StorageUnavailable(
            f"The presets cannot be written to {_path()}: {error.strerror}.",
            "Make room, or make the folder one that you may write to.",
        ) from error
