"""The shapes of models on this machine: read once, in a child, and kept for the next listing.

Knows files and the state folder; what a shape means is ``shape``'s business.
"""

import contextlib
import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from localinfer import kept, settings
from localinfer.errors import ModelFileInvalid
from localinfer.models import safetensors
from localinfer.models.inspect import inspect
from localinfer.models.names import printable
from localinfer.models.shape import ModelShape, from_gguf, from_mlx

KEPT = 500
_CONFIG_BYTES = 1 << 22


def known(paths: Sequence[Path]) -> ModelShape | None:
    """The shape of the model in ``paths``, if it was read before and the files are the same."""
    with contextlib.suppress(OSError):
        return kept.load(_place(paths), ModelShape, None)
    return None


def read(paths: Sequence[Path]) -> ModelShape:
    """The shape of the model in ``paths``: all files of a GGUF model in order, or the folder of an MLX model.

    Raises what ``inspect`` does, ``ModelFileInvalid`` for a folder that holds no MLX model.
    """
    if (shape := known(paths)) is not None:
        return shape
    shape = _folder(paths[0]) if paths[0].is_dir() else from_gguf(inspect(paths))
    with contextlib.suppress(OSError):  # it is gone already
        place = _place(paths)
        kept.save(place, shape)
        kept.trim(place.parent, KEPT)
    return shape


def _folder(folder: Path) -> ModelShape:
    shown = printable(str(folder))
    try:
        with (folder / "config.json").open("rb") as file:
            config = msgspec.json.decode(file.read(_CONFIG_BYTES), type=dict[str, object])
    except (OSError, msgspec.DecodeError) as error:
        reason = f"{shown} holds no MLX model: its config.json cannot be read."
        raise ModelFileInvalid(reason, "Fetch it again.") from error
    return from_mlx(config, safetensors.folder_sizes(folder))


def _place(paths: Sequence[Path]) -> Path:
    identity = []
    for path in paths:
        status = path.stat()
        identity.append(f"{path.absolute()} {status.st_size} {status.st_mtime_ns}")
    name = hashlib.sha256("\n".join(identity).encode("utf-8", "surrogateescape")).hexdigest()[:40]
    return settings.state_dir() / "shapes" / f"{name}.json"
