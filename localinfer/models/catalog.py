"""The catalogue: which models localinfer knows by name, and where their files come from.

It reads ``models.toml`` and nothing else; it does not know what is on disk or how a file is fetched.
"""

import difflib
import functools
import tomllib
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated

import msgspec

from localinfer.errors import BadRequest, ModelNotFound
from localinfer.models.names import printable, safe_file_name
from localinfer.types import Value

Size = Annotated[int, msgspec.Meta(ge=1)]
Id = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9._-]*\Z", max_length=80)]
Package = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\Z")]
Version = Annotated[str, msgspec.Meta(pattern=r"^[0-9][A-Za-z0-9.!+_-]*\Z")]
Sha256 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]


class PypiSource(Value, frozen=True, forbid_unknown_fields=True):
    """A file inside a wheel of the Python package index; ``wheel_bytes`` is the size of the wheel."""

    package: Package
    version: Version
    member: str
    wheel_bytes: Size


class Quantization(Value, frozen=True, forbid_unknown_fields=True):
    """One file of a model: the members of ``pypi``, in order, make up ``size_bytes`` with the hash ``sha256``."""

    name: str
    file: str
    size_bytes: Size
    sha256: Sha256
    pypi: Annotated[tuple[PypiSource, ...], msgspec.Meta(min_length=1)]

    def __post_init__(self) -> None:
        if not (safe_file_name(self.file) and self.file.endswith(".gguf")):
            raise ValueError(f"“{printable(self.file)}” is not a safe name of a .gguf file")


class ModelSpec(Value, frozen=True, forbid_unknown_fields=True):
    """One model. ``parameters`` are weights, ``context`` is tokens; the first quantization is the default.

    ``chat`` is false for a base model, which has no chat template.
    """

    id: Id
    name: str
    family: str
    parameters: Size
    context: Size
    licence: str
    quantizations: Annotated[tuple[Quantization, ...], msgspec.Meta(min_length=1)]
    aliases: tuple[Id, ...] = ()
    chat: bool = True
    starter: bool = False

    def __post_init__(self) -> None:
        if not safe_file_name(self.id):
            raise ValueError(f"“{printable(self.id)}” cannot name a folder on every system")


class Catalog(Value, frozen=True, forbid_unknown_fields=True):
    """The models, in the order they are shown. Names are unique across ids and aliases; one model is the starter."""

    models: tuple[ModelSpec, ...] = msgspec.field(name="model")

    def __post_init__(self) -> None:
        names = [name for model in self.models for name in (model.id, *model.aliases)]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"two models are called “{min(twice)}”")
        if sum(model.starter for model in self.models) != 1:
            raise ValueError("exactly one model must be marked “starter = true”")

    @property
    def starter(self) -> ModelSpec:
        """The model offered to somebody who has none."""
        return next(model for model in self.models if model.starter)

    def get(self, name: str) -> ModelSpec | None:
        """The model with this id, alias or full name, in any case; None if there is none."""
        wanted = name.strip().casefold()
        for model in self.models:
            if wanted in (model.id, model.name.casefold(), *model.aliases):
                return model
        return None

    def find(self, name: str) -> ModelSpec:
        """As ``get``, but raises ``ModelNotFound`` with the nearest names."""
        if model := self.get(name):
            return model
        names = [name for model in self.models for name in (model.id, *model.aliases)]
        near = difflib.get_close_matches(name.strip().casefold(), names, n=3, cutoff=0.5)
        hint = f"Did you mean {' or '.join(near)}?" if near else self.choices()
        raise ModelNotFound(f"There is no model “{printable(name)}”.", hint)

    def choices(self) -> str:
        """A sentence that says what a model reference may be."""
        return f"Give the path of a .gguf file, or one of: {', '.join(model.id for model in self.models)}."


@functools.cache
def catalog() -> Catalog:
    """The catalogue that came with localinfer. Raises ``BadRequest`` if it is malformed."""
    source = _source()
    return parse(source.read_text("utf-8"), str(source))


def parse(text: str, origin: str) -> Catalog:
    """The catalogue in ``text``; ``origin`` names it in errors. Raises ``BadRequest``."""
    try:
        return msgspec.convert(tomllib.loads(text), Catalog)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BadRequest(
            f"The model catalogue {origin} is malformed: {error}.",
            "Correct that entry, or install localinfer again.",
            param="models.toml",
        ) from error


def _source() -> Traversable:
    """Beside the package's modules in an installation, at the root of a checkout."""
    installed = resources.files("localinfer") / "models.toml"
    return installed if installed.is_file() else Path(__file__).parents[2] / "models.toml"
