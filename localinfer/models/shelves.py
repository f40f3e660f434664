"""Where models lie on this machine: the folders of the programs that fetch them, and what a folder holds.

It knows paths and how each program lays them out; it does not know which model a file is. Nothing is opened but
Ollama's manifests. What cannot be read is said once and passed over.
"""

import contextlib
import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from localinfer import decoding, settings
from localinfer.models import hf_cache
from localinfer.models.names import printable
from localinfer.settings import Settings
from localinfer.types import Value

Origin = Literal["localinfer", "huggingface", "lmstudio", "ollama", "llama.cpp", "folder"]

_DEEPEST = 8
_MOST_ENTRIES = 50_000
_MANIFEST_BYTES = 1 << 20
_OLLAMA_HOST, _OLLAMA_OWNER = "registry.ollama.ai", "library"
_OLLAMA_MODEL = "application/vnd.ollama.image.model"


class Shelf(Value, frozen=True):
    """A folder in which one program keeps models. ``named``: the person has named it, so it should be there."""

    origin: Origin
    folder: Path
    named: bool = False


class Folder(Value, frozen=True):
    """One folder with files: their names below ``path``, and what the system says of each."""

    path: Path
    files: dict[str, os.stat_result]


class Blob(Value, frozen=True):
    """A model of Ollama's store: what Ollama calls it, its file, and the name of its quantization where it is told."""

    name: str
    path: Path
    status: os.stat_result
    quantization: str = ""


class _Layer(Value, frozen=True):
    media_type: str = msgspec.field(name="mediaType")
    digest: Annotated[str, msgspec.Meta(pattern=r"^sha256[:-][0-9a-f]{64}\Z")]
    size: int = -1


class _Manifest(Value, frozen=True):
    layers: tuple[_Layer, ...] = ()
    config: _Layer | None = None


class _ImageConfig(Value, frozen=True):
    file_type: str = ""


def shelves(wanted: Settings) -> tuple[Shelf, ...]:
    """Where to look, the first place first: a model that lies in two is taken from the earlier one."""
    env = os.environ.get
    cache = env("XDG_CACHE_HOME") or "~/.cache"
    return (
        Shelf(origin="localinfer", folder=settings.models_dir()),
        Shelf(origin="huggingface", folder=hf_cache.cache_dir()),
        Shelf(origin="lmstudio", folder=_path("~/.lmstudio/models")),
        Shelf(origin="lmstudio", folder=_path("~/.cache/lm-studio/models")),
        Shelf(origin="ollama", folder=_path(env("OLLAMA_MODELS") or "~/.ollama/models")),
        Shelf(origin="llama.cpp", folder=_path(env("LLAMA_CACHE") or _llama_cache(cache))),
        *(Shelf(origin="folder", folder=_path(name), named=True) for name in wanted.model_folders),
    )


class Looker:
    """Looks into folders, each once however it is reached, and keeps what the person should know in ``notices``."""

    def __init__(self) -> None:
        self.notices: list[str] = []
        self._entries = 0
        self._seen: set[tuple[int, int]] = set()

    def there(self, shelf: Shelf) -> bool:
        """Whether the shelf is a folder."""
        try:
            there = stat.S_ISDIR(shelf.folder.stat().st_mode)
        except PermissionError as error:
            self._cannot_read(shelf.folder, error)
            return False
        except (OSError, ValueError):
            there = False
        if shelf.named and not there:
            self.notices.append(f"The folder {printable(str(shelf.folder))} is not there now, nor are its models.")
        return there

    def walk(self, folder: Path, depth: int = _DEEPEST) -> Iterator[Folder]:
        """``folder`` and those below it, with their files. Hidden folders are passed over, links are followed."""
        files: dict[str, os.stat_result] = {}
        below: list[str] = []
        for name, status in self.entries(folder):
            if stat.S_ISREG(status.st_mode):
                files[name] = status
            elif stat.S_ISDIR(status.st_mode) and not name.startswith("."):
                below.append(name)
        if files:
            yield Folder(path=folder, files=files)
        if depth:
            for name in below:
                yield from self.walk(folder / name, depth - 1)

    def entries(self, folder: Path) -> list[tuple[str, os.stat_result]]:
        """The names in ``folder``, sorted, with what each leads to. Links that lead nowhere are not there.

        A folder that is not there is empty.
        """
        found: list[tuple[str, os.stat_result]] = []
        try:
            status = folder.stat()
            identity = (status.st_dev, status.st_ino)
            if identity in self._seen and any(identity):
                return []
            self._seen.add(identity)
            with os.scandir(folder) as listing:
                for entry in listing:
                    self._entries += 1
                    if self._entries == _MOST_ENTRIES:
                        shown = printable(str(folder))
                        self.notices.append(f"There are too many files to look at all of them; left off in {shown}.")
                    if self._entries >= _MOST_ENTRIES:
                        break
                    try:
                        found.append((entry.name, Path(entry.path).stat()))
                    except (OSError, ValueError):
                        continue
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            self._cannot_read(folder, error)
        return sorted(found, key=lambda one: one[0])

    def blobs(self, store: Path) -> Iterator[Blob]:
        """The models of Ollama's store."""
        manifests = store / "manifests"
        for folder in self.walk(manifests):
            for tag in folder.files:
                parts = (folder.path / tag).relative_to(manifests).parts
                blob = self._blob(store, folder.path / tag) if len(parts) == 4 else None
                if blob is not None:
                    path, status, quantization = blob
                    yield Blob(name=_ollama_name(*parts), path=path, status=status, quantization=quantization)

    def _blob(self, store: Path, manifest: Path) -> tuple[Path, os.stat_result, str] | None:
        """The file of a manifest's model, if it is there whole, and its quantization."""
        try:
            image = decoding.json(_read(manifest), _Manifest)
            layer = next((one for one in image.layers if one.media_type == _OLLAMA_MODEL), None)
            if layer is None:
                return None  # a model that Ollama runs elsewhere
            path = _blob_path(store, layer)
            status = path.stat()
        except (OSError, msgspec.DecodeError):
            return None
        if not stat.S_ISREG(status.st_mode) or layer.size not in (-1, status.st_size):
            return None
        try:
            told = decoding.json(_read(_blob_path(store, image.config)), _ImageConfig).file_type if image.config else ""
        except (OSError, msgspec.DecodeError):
            told = ""
        return path, status, printable(told, 40)

    def _cannot_read(self, folder: Path, error: OSError | ValueError) -> None:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it has no valid name"
        self.notices.append(f"The folder {printable(str(folder))} cannot be looked into: {reason}.")


def _path(text: str) -> Path:
    """The folder that a person, or another program's setting, means."""
    path = Path(os.path.expandvars(text))
    with contextlib.suppress(RuntimeError):  # a "~" that stands for nobody is a plain name
        path = path.expanduser()
    return path.absolute()


def _llama_cache(cache: str) -> str:
    if sys.platform == "darwin":
        return "~/Library/Caches/llama.cpp"
    if sys.platform == "win32":
        return f"{os.environ.get('LOCALAPPDATA') or '~/AppData/Local'}/llama.cpp"
    return f"{cache}/llama.cpp"


def _read(path: Path) -> bytes:
    """A small file. Raises ``OSError``, also for a large one."""
    with path.open("rb") as file:
        data = file.read(_MANIFEST_BYTES + 1)
    if len(data) > _MANIFEST_BYTES:
        raise OSError("too large")
    return data


def _blob_path(store: Path, layer: _Layer) -> Path:
    return store / "blobs" / re.sub(r"^sha256[:-]", "sha256-", layer.digest)


def _ollama_name(host: str, owner: str, name: str, tag: str) -> str:
    """As Ollama writes it: what is usual is left out."""
    parts = [name] if owner == _OLLAMA_OWNER and host == _OLLAMA_HOST else [owner, name]
    return "/".join([*([] if host == _OLLAMA_HOST else [host]), *parts]) + f":{tag}"
