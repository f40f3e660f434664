"""Models already on this machine, wherever another program or the person put them.

They are used in place: nothing here copies, moves or removes a file. A listing goes by names and sizes alone; whether
a file is what it is called is checked when it is loaded.
"""

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from localinfer import decoding
from localinfer.errors import BadRequest
from localinfer.models import quantizations
from localinfer.models.catalog import Catalog, Mlx, ModelSpec, Quantization, catalog
from localinfer.models.names import printable
from localinfer.models.quantizations import RepoFile, RepoQuantization
from localinfer.models.shelves import Blob, Folder, Looker, Origin, Shelf, shelves
from localinfer.settings import Settings
from localinfer.types import Value

_LIKE = 0.1  # a file that is called like one of ours has its size to within this part, or is another one
_CONFIG_BYTES = 1 << 20
_PART = re.compile(r"-\d{5}-of-\d{5}\Z")
_MOST_SHOWN = 8


class FoundModel(Value, frozen=True):
    """One model on this machine. ``paths`` are its files in order; for MLX, its folder.

    ``name`` is what it goes by, printable: ``owner/repo:Q4_K_M``, Ollama's ``name:tag``, or the name of its file.
    ``modified_s`` is seconds since 1970. ``quantization`` is what its name says, possibly nothing. ``spec`` and
    ``variant`` are set if the catalogue knows it.
    """

    name: str
    origin: Origin
    paths: tuple[Path, ...]
    size_bytes: int
    modified_s: float
    format: Literal["gguf", "mlx"] = "gguf"
    quantization: str = ""
    repo: str = ""
    spec: ModelSpec | None = None
    variant: Quantization | Mlx | None = None

    @property
    def ours(self) -> bool:
        """Whether it lies in localinfer's own folder."""
        return self.origin == "localinfer"

    @property
    def names(self) -> tuple[str, ...]:
        """Everything it can be called by, in lower case; the end of one, from a slash on, will do too."""
        path = self.paths[0]
        file = printable(path.name)
        called = [self.name, _stem(file), file]
        if self.repo:
            called += [self.repo, f"{self.repo}:{self.quantization}", f"{self.repo}/{file}"]
        if self.origin == "ollama":
            called = [self.name, self.name.removesuffix(":latest")]
        return tuple(dict.fromkeys(name.casefold() for name in called))


class Survey(Value, frozen=True):
    """What is on this machine, and what the person should know about places that could not be looked at."""

    models: tuple[FoundModel, ...]
    notices: tuple[str, ...]


class _Config(Value, frozen=True):
    """What an MLX model's ``config.json`` says of itself, as far as it matters here."""

    model_type: str = ""
    quantization: dict[str, object] | None = None


def find(wanted: Settings) -> tuple[FoundModel, ...]:
    """The models on this machine, sorted by name; ``wanted`` names further folders. Never fails for what it finds."""
    return survey(wanted).models


def survey(wanted: Settings) -> Survey:
    """As ``find``, with notices about folders that are missing or cannot be read."""
    finder = _Finder(catalog())
    for shelf in shelves(wanted):
        if finder.looker.there(shelf):
            finder.add(shelf)
    models = sorted(finder.models, key=lambda model: model.name.casefold())  # of copies, the first shelf's stays first
    return Survey(models=tuple(models), notices=tuple(finder.looker.notices))


def match(models: Sequence[FoundModel], reference: str) -> FoundModel | None:
    """The one of ``models`` that ``reference`` names, whole or by its end from a slash on; None if there is none.

    Copies of one model count once, the first of them. Raises ``BadRequest`` naming the candidates if there are several.
    """
    wanted = reference.strip().casefold()
    if not wanted.strip("/"):
        return None
    whole = [model for model in models if wanted in model.names]
    found = whole or [model for model in models if any(name.endswith(f"/{wanted}") for name in model.names)]
    named = [model for model in found if model.name.casefold() == wanted]
    found = named or found
    different = list({(model.name, model.size_bytes): model for model in reversed(found)}.values())[::-1]
    if len(different) > 1:
        raise _ambiguous(reference, different)
    return different[0] if different else None


def _ambiguous(reference: str, found: Sequence[FoundModel]) -> BadRequest:
    names = [model.name for model in found]
    shown = [
        name if names.count(name) == 1 else printable(str(model.paths[0]))
        for name, model in zip(names, found, strict=True)
    ]
    more = f" and {len(shown) - _MOST_SHOWN} more" if len(shown) > _MOST_SHOWN else ""
    return BadRequest(
        f"“{printable(reference, 200)}” can mean {len(shown)} models on this machine.",
        f"Name one of them: {', '.join(shown[:_MOST_SHOWN])}{more}.",
        param="model",
    )


class _Finder:
    """Collects the models of one shelf after another; a file that is reached twice counts once."""

    def __init__(self, known: Catalog) -> None:
        self.models: list[FoundModel] = []
        self.looker = Looker()
        self._seen: set[tuple[int, int]] = set()
        self._known = known
        self._by_repo: dict[str, list[tuple[ModelSpec, Quantization | Mlx]]] = defaultdict(list)
        self._by_file: dict[str, tuple[ModelSpec, Quantization]] = {}
        for spec in known.models:
            for variant in spec.variants:
                self._by_repo[variant.repo.casefold()].append((spec, variant))
            for quantization in spec.quantizations:
                self._by_file.setdefault(quantization.file.casefold(), (spec, quantization))

    def add(self, shelf: Shelf) -> None:
        """Take in what lies on ``shelf``."""
        match shelf.origin:
            case "localinfer":
                self._own(shelf.folder)
            case "huggingface":
                self._hub_cache(shelf.folder)
            case "ollama":
                for blob in self.looker.blobs(shelf.folder):
                    self._ollama(blob)
            case _:
                for folder in self.looker.walk(shelf.folder):
                    owner_and_repo = folder.path.relative_to(shelf.folder).parts[:2]
                    told = shelf.origin == "lmstudio" and len(owner_and_repo) == 2
                    self._folder(folder, shelf.origin, "/".join(owner_and_repo) if told else "")

    def _own(self, models: Path) -> None:
        """Our own folder: a folder per model of the catalogue, and whatever the person has put there."""
        for folder in self.looker.walk(models):
            spec = self._known.get(folder.path.name) if folder.path.parent == models else None
            ours = {variant.file: variant for variant in spec.quantizations if variant.pypi} if spec else {}
            rest = dict(folder.files)
            for file, variant in ours.items():
                status = rest.pop(file, None)
                if spec and status and status.st_size == variant.size_bytes and self._first(status):
                    default = variant is spec.quantizations[0]
                    self.models.append(
                        FoundModel(
                            name=spec.id if default else f"{spec.id}:{variant.name}",
                            origin="localinfer",
                            paths=(folder.path / file,),
                            size_bytes=status.st_size,
                            modified_s=status.st_mtime,
                            quantization=variant.name,
                            spec=spec,
                            variant=variant,
                        )
                    )
            self._folder(Folder(path=folder.path, files=rest), "localinfer", "")

    def _hub_cache(self, cache: Path) -> None:
        """The Hugging Face cache: of several snapshots of a file, the one of the main branch, else the newest."""
        for name, _ in self.looker.entries(cache):
            if not name.startswith("models--"):
                continue
            repo = name.removeprefix("models--").replace("--", "/")
            main = _first_line(cache / name / "refs" / "main")
            snapshots = self.looker.entries(cache / name / "snapshots")
            snapshots.sort(key=lambda one: (one[0] != main, -one[1].st_mtime))
            taken: set[str] = set()
            for commit, _ in snapshots:
                root = cache / name / "snapshots" / commit
                for folder in self.looker.walk(root):
                    below = folder.path.relative_to(root).as_posix().removeprefix(".")
                    prefix = f"{below}/" if below else ""
                    fresh = {file: status for file, status in folder.files.items() if prefix + file not in taken}
                    taken.update(prefix + file for file in fresh)
                    self._folder(Folder(path=folder.path, files=fresh), "huggingface", repo, prefix)

    def _ollama(self, blob: Blob) -> None:
        if not self._first(blob.status) or not blob.status.st_size:
            return
        self.models.append(
            FoundModel(
                name=printable(blob.name),
                origin="ollama",
                paths=(blob.path,),
                size_bytes=blob.status.st_size,
                modified_s=blob.status.st_mtime,
                quantization=blob.quantization or _quantization(f"{blob.name.replace(':', '-')}.gguf"),
            )
        )

    def _folder(self, folder: Folder, origin: Origin, repo: str, prefix: str = "") -> None:
        """The models among the files of one folder; ``prefix`` is its path in ``repo``."""
        files = [
            RepoFile(path=file, size_bytes=status.st_size)
            for file, status in folder.files.items()
            if status.st_size and not file.startswith(".")
        ]
        bits = _mlx_bits(folder, repo)
        for unit in quantizations.group(files, repo or folder.path.name, mlx=bits is not None):
            statuses = [folder.files[file.path] for file in unit.files]
            if not self._first(statuses[0]):
                continue
            if unit.missing:
                shown = printable(str(folder.path / unit.files[0].path))
                self.looker.notices.append(f"{len(unit.missing)} parts of {shown} are missing; it is left out.")
                continue
            self.models.append(self._model(folder, origin, repo, prefix, unit, statuses, bits))

    def _model(
        self,
        folder: Folder,
        origin: Origin,
        repo: str,
        prefix: str,
        unit: RepoQuantization,
        statuses: Sequence[os.stat_result],
        bits: str | None,
    ) -> FoundModel:
        file = unit.files[0].path
        mlx = unit.format == "mlx"
        quantization = bits or "" if mlx else _quantization(prefix + file)
        spec, variant = self._identify(repo, prefix, unit, origin)
        if not repo:
            name = folder.path.name if mlx else _stem(file)
        elif mlx or not quantization:
            name = repo if mlx else f"{repo}/{prefix}{file}"
        else:
            name = f"{repo}:{quantization}" if unit.name == quantization else f"{repo}/{prefix}{file}"
        return FoundModel(
            name=printable(name),
            origin=origin,
            paths=(folder.path,) if mlx else tuple(folder.path / one.path for one in unit.files),
            size_bytes=unit.size_bytes,
            modified_s=max(status.st_mtime for status in statuses),
            format=unit.format,
            quantization=printable(quantization, 40),
            repo=printable(repo),
            spec=spec,
            variant=variant,
        )

    def _identify(
        self, repo: str, prefix: str, unit: RepoQuantization, origin: Origin
    ) -> tuple[ModelSpec | None, Quantization | Mlx | None]:
        """Which entry of the catalogue the files are."""
        file = prefix + unit.files[0].path
        for spec, variant in self._by_repo.get(repo.casefold(), ()) if repo else ():
            if variant.holds(file) if isinstance(variant, Quantization) else unit.format == "mlx":
                return spec, variant
        if unit.format == "mlx":
            return None, None
        name = f"{_stem(unit.files[0].path)}.gguf".casefold()
        candidates = [self._by_file[name]] if name in self._by_file else []
        if origin == "llama.cpp":  # owner_repo_file.gguf
            candidates += self._from_llama_cache(name)
        for spec, quantization in candidates:
            if abs(unit.size_bytes - quantization.size_bytes) <= quantization.size_bytes * _LIKE:
                return spec, quantization
        return None, None

    def _from_llama_cache(self, name: str) -> Iterator[tuple[ModelSpec, Quantization]]:
        for repo, entries in self._by_repo.items():
            start = repo.replace("/", "_") + "_"
            if repo and name.startswith(start):
                for spec, variant in entries:
                    if isinstance(variant, Quantization) and variant.holds(name.removeprefix(start)):
                        yield spec, variant

    def _first(self, status: os.stat_result) -> bool:
        """Whether this file is seen for the first time."""
        identity = (status.st_dev, status.st_ino)
        if identity in self._seen and any(identity):
            return False
        self._seen.add(identity)
        return True


def _mlx_bits(folder: Folder, repo: str) -> str | None:
    """The quantization of the MLX model in ``folder`` ("" if it has none); None if there is no such model."""
    if "config.json" not in folder.files or not any(name.endswith(".safetensors") for name in folder.files):
        return None
    try:
        with (folder.path / "config.json").open("rb") as file:
            config = decoding.json(file.read(_CONFIG_BYTES), _Config)
    except (OSError, msgspec.DecodeError):
        return None
    if not config.model_type or config.model_type == "whisper":
        return None
    if config.quantization and isinstance(bits := config.quantization.get("bits"), int):
        return f"{bits}bit"
    return "" if "mlx" in (repo or folder.path.name).casefold() else None


def _quantization(path: str) -> str:
    """The quantization that the name of a GGUF file tells, or else that of its folders; possibly nothing."""
    folder, slash, name = path.rpartition("/")
    marked = f"model-{name}"  # so that what is left of a name without a quantization is told from one
    units = quantizations.group([RepoFile(path=f"{folder}{slash}{marked}", size_bytes=1)], "", mlx=False)
    return next((unit.name for unit in units if unit.name != _stem(marked)), "")


def _stem(file: str) -> str:
    """The name of a model's file without its ending and the number of the part."""
    return _PART.sub("", file[: -len(".gguf")] if file.lower().endswith(".gguf") else file)


def _first_line(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(100).decode("ascii", "replace").strip()
    except OSError:
        return ""
