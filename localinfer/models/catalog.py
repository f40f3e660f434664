"""The catalogue: which models localinfer knows by name, where their files come from, and how they are built.

It reads ``models.toml`` and nothing else; it does not know what is on disk or how a file is fetched. What the fields
mean to somebody who writes an entry stands at the top of that file.
"""

import difflib
import functools
import re
import tomllib
from collections import Counter
from collections.abc import Iterable
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from localinfer import decoding
from localinfer.errors import BadRequest, ModelNotFound
from localinfer.models.geometry import Count, Geometry, Size, gguf_shape, mlx_shape
from localinfer.models.names import printable, safe_file_name
from localinfer.models.shape import ModelShape
from localinfer.types import Value

Id = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9._-]*\Z", max_length=80)]
Package = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\Z")]
Version = Annotated[str, msgspec.Meta(pattern=r"^[0-9][A-Za-z0-9.!+_-]*\Z")]
Sha256 = Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{64})?\Z")]
Repo = Annotated[
    str, msgspec.Meta(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*)?\Z", max_length=200)
]
Revision = Annotated[str, msgspec.Meta(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*)?\Z")]
VariantName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z", max_length=40)]
Capability = Literal["tools", "thinking", "vision"]

_PART = re.compile(r"-\d{5}-of-\d{5}(?=\.gguf\Z)")
_NO_MODELS = ("mmproj", "mtp-")  # how files that only serve a model are called


class PypiSource(Value, frozen=True, forbid_unknown_fields=True):
    """A file inside a wheel of the Python package index; ``wheel_bytes`` is the size of the wheel."""

    package: Package
    version: Version
    member: str
    wheel_bytes: Size


class HubFiles(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Files in a repository of the model hub, ``size_bytes`` altogether, at ``revision`` (empty: the newest).

    ``approximate``: the size is known to within a tenth. ``unverified``: that they exist follows from a custom, or
    from one place that says so.
    """

    size_bytes: Size
    repo: Repo = ""
    revision: Revision = ""
    approximate: bool = False
    unverified: bool = False

    @property
    def download_bytes(self) -> int:
        """What is fetched to have it."""
        return self.size_bytes


class Quantization(HubFiles, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One GGUF file of a model, which may be split into parts.

    From the hub: ``file`` is its path in ``repo``, where * stands for any characters of a name; ``sha256`` may be
    empty, because the hub tells it. From the package index: the members of ``pypi``, in order, make up ``file``.
    """

    name: VariantName
    file: str
    sha256: Sha256 = ""
    pypi: tuple[PypiSource, ...] = ()

    def __post_init__(self) -> None:
        if bool(self.repo) == bool(self.pypi):
            raise ValueError(f"{self.name} must come either from “repo” or from “pypi”")
        parts = [part.replace("*", "x") for part in self.file.split("/")] if self.repo else [self.file]
        if not (all(map(safe_file_name, parts)) and self.file.endswith(".gguf")):
            raise ValueError(f"“{printable(self.file)}” is not a safe name of a .gguf file")
        if self.pypi and (self.approximate or self.unverified or not self.sha256):
            raise ValueError(f"{self.name} from “pypi” needs its exact size and its “sha256”")

    @property
    def download_bytes(self) -> int:
        """What is fetched to have it: files of the package index come packed."""
        return sum(source.wheel_bytes for source in self.pypi) or self.size_bytes

    def holds(self, path: str) -> bool:
        """Whether the file at ``path`` in its repository is this one, or a part of it. Capitals do not matter."""
        path = path.casefold()
        if path.rpartition("/")[2].startswith(_NO_MODELS):
            return False
        pattern = re.escape(self.file.casefold()).replace(r"\*", "[^/]*")
        return any(re.fullmatch(pattern, name) for name in (path, _PART.sub("", path)))

    def files(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Those of the ``paths`` in its repository that it consists of, in order."""
        return tuple(sorted(path for path in paths if self.holds(path)))


class Mlx(HubFiles, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model in MLX's format: a whole repository of the hub."""

    name: VariantName

    def __post_init__(self) -> None:
        if not self.repo:
            raise ValueError(f"{self.name} for MLX must come from “repo”")


class ModelSpec(Value, frozen=True, forbid_unknown_fields=True):
    """One model. ``parameters`` are weights, of which a token uses ``active_parameters`` (0: all of them); ``context``
    is tokens; the first quantization is the default.

    ``chat`` is false for a base model, which has no chat template. ``rank`` orders the chat models by quality, higher
    is better. ``draft`` is the id of a small model with the same vocabulary, for speculation.
    """

    id: Id
    name: str
    family: str
    parameters: Size
    context: Size
    licence: str
    quantizations: Annotated[tuple[Quantization, ...], msgspec.Meta(min_length=1)]
    aliases: tuple[Id, ...] = ()
    active_parameters: Count = 0
    capabilities: tuple[Capability, ...] = ()
    rank: Count = 0
    draft: str = ""
    chat: bool = True
    starter: bool = False
    geometry: Geometry | None = None
    mlx: tuple[Mlx, ...] = ()

    def __post_init__(self) -> None:
        if not safe_file_name(self.id):
            raise ValueError(f"“{printable(self.id)}” cannot name a folder on every system")
        for variants in (self.quantizations, self.mlx):
            if twice := _twice(variant.name.casefold() for variant in variants):
                raise ValueError(f"“{self.id}” has “{twice}” twice")
        if self.active_parameters > self.parameters:
            raise ValueError(f"“{self.id}” has more active parameters than parameters")
        built = self.geometry
        if built and built.block_parameters(self.parameters) <= built.expert_parameters:
            raise ValueError(f"“{self.id}” has too few parameters for its geometry")

    @property
    def variants(self) -> tuple[Quantization | Mlx, ...]:
        """Everything that can be had of it."""
        return (*self.quantizations, *self.mlx)

    def quantization(self, name: str) -> Quantization | None:
        """The quantization of that name, in any case."""
        return next((one for one in self.quantizations if one.name.casefold() == name.casefold()), None)


class SpeechSpec(HubFiles, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One speech model: a repository with a Whisper model as CTranslate2 keeps it."""

    id: Id
    name: str
    parameters: Size
    licence: str
    languages: Literal["english", "many"]
    aliases: tuple[Id, ...] = ()
    mlx: tuple[Mlx, ...] = ()

    def __post_init__(self) -> None:
        if not self.repo:
            raise ValueError(f"“{self.id}” must come from “repo”")


class Catalog(Value, frozen=True, forbid_unknown_fields=True):
    """The models, in the order they are shown. Names are unique across ids and aliases; one model is the starter."""

    models: tuple[ModelSpec, ...] = msgspec.field(name="model")
    speech: tuple[SpeechSpec, ...] = ()

    def __post_init__(self) -> None:
        everything: tuple[ModelSpec | SpeechSpec, ...] = (*self.models, *self.speech)
        if twice := _twice(name for one in everything for name in (one.id, *one.aliases)):
            raise ValueError(f"two models are called “{twice}”")
        if sum(model.starter for model in self.models) != 1:
            raise ValueError("exactly one model must be marked “starter = true”")
        if rank := _twice(model.rank for model in self.models if model.chat):
            raise ValueError(f"two chat models have the rank {rank}")
        by_id = {model.id: model for model in self.models}
        for model in self.models:
            if model.draft and not _drafts(by_id.get(model.draft), model):
                raise ValueError(f"the draft of “{model.id}” must be a smaller model with the same vocabulary")

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
        return "Give a name of the catalogue (localinfer models --all), owner/repo of the hub, or a .gguf file."


@functools.cache
def catalog() -> Catalog:
    """The catalogue that came with localinfer. Raises ``BadRequest`` if it is malformed."""
    source = _source()
    return parse(source.read_text("utf-8"), str(source))


def parse(text: str, origin: str) -> Catalog:
    """The catalogue in ``text``; ``origin`` names it in errors. Raises ``BadRequest``."""
    try:
        return decoding.convert(tomllib.loads(text), Catalog)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BadRequest(
            f"The model catalogue {origin} is malformed: {error}.",
            "Correct that entry, or install localinfer again.",
            param="models.toml",
        ) from error


def shape(model: ModelSpec, variant: Quantization | Mlx) -> ModelShape:
    """What decides the memory that ``variant`` of ``model`` takes, without its file.

    See ``geometry.gguf_shape`` for what is exact. A model without a geometry has no layers: only its weights are known.
    """
    built, size_bytes = model.geometry, variant.size_bytes
    is_mlx = isinstance(variant, Mlx)
    if built is None:
        return ModelShape(
            architecture="",
            format="mlx" if is_mlx else "gguf",
            parameters=model.parameters,
            context=model.context,
            vocabulary=0,
            embedding=0,
            heads=0,
            layers=(),
            embedding_bytes=0,
            output_bytes=0,
            other_bytes=size_bytes,
        )
    if is_mlx:
        return mlx_shape(built, parameters=model.parameters, context=model.context, size_bytes=size_bytes)
    return gguf_shape(
        built, parameters=model.parameters, context=model.context, quantization=variant.name, size_bytes=size_bytes
    )


def _drafts(draft: ModelSpec | None, model: ModelSpec) -> bool:
    """Whether ``draft`` can draft for ``model``."""
    if draft is None or draft.geometry is None or model.geometry is None:
        return False
    return draft.parameters < model.parameters and draft.geometry.vocabulary == model.geometry.vocabulary


def _twice(items: Iterable[object]) -> object:
    """An item that is there more than once; None if there is none."""
    return next((item for item, count in Counter(items).items() if count > 1), None)


def _source() -> Traversable:
    """Beside the package's modules in an installation, at the root of a checkout."""
    installed = resources.files("localinfer") / "models.toml"
    return installed if installed.is_file() else Path(__file__).parents[2] / "models.toml"
