"""What the files of a repository are: which of them together make one model in one quantization.

Knows names and sizes alone, and the habits of those who publish models; no file is opened.
"""

import difflib
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from typing import Annotated, Literal

import msgspec

from localinfer.errors import ModelFileInvalid, ModelNotFound
from localinfer.models.names import printable
from localinfer.types import Value

Sha256 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
GitId = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{40}\Z")]

_SHARD = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})", re.IGNORECASE)
_TYPE = re.compile(
    r"(?:^|(?<=[-_./ ]))"
    r"(?P<name>(?:UD-)?(?:I?Q[1-8](?:_(?:[01]|K|P|XXS|XS|S|M|L|XL|XXL|NL|R[48]|4_4|4_8|8_8))*|TQ[12]_0"
    r"|MXFP4(?:_MOE)?|NVFP4|BF16|FP?16|FP?32))"
    r"(?=$|[-_./ ])",
    re.IGNORECASE,
)
_BITS = re.compile(r"(?:^|[-_])(?P<name>\d(?:\.\d)?-?bit(?:-[A-Za-z0-9]+)?|bf16|fp16|mxfp[48]|nvfp4)(?=$|[-_])", re.I)
_MOST_SHARDS = 999
_OF_MLX = (".safetensors", ".json", ".jinja", ".txt", ".model", ".tiktoken")  # no code: nothing of it is ever run


class RepoFile(Value, frozen=True):
    """One file of a repository. ``sha256`` is that of its content; a small file has only ``blob_id``, git's SHA-1."""

    path: str
    size_bytes: int
    sha256: Sha256 | None = None
    blob_id: GitId | None = None

    @property
    def oid(self) -> str:
        """What identifies the content, and names it in the cache."""
        return self.sha256 or self.blob_id or ""


class RepoQuantization(Value, frozen=True):
    """Files that make one model: a GGUF file, all its shards in order, or a folder for MLX.

    ``missing`` are the names of shards that the repository does not hold.
    """

    name: str
    files: tuple[RepoFile, ...]
    format: Literal["gguf", "mlx"] = "gguf"
    missing: tuple[str, ...] = ()

    @property
    def size_bytes(self) -> int:
        """Of all files together."""
        return sum(file.size_bytes for file in self.files)


def group(files: Sequence[RepoFile], repo: str, mlx: bool) -> tuple[RepoQuantization, ...]:
    """The quantizations among ``files``, smallest first. ``mlx``: the repository's weights are for MLX.

    Projectors and importance matrices are none. Two models of the same type in one repository get their files' names.
    """
    models = [file for file in files if is_model(file.path)]
    units: dict[str, list[RepoFile]] = defaultdict(list)
    for file in models:
        shard = _SHARD.fullmatch(_stem(file.path))
        units[f"{shard['stem']}-of-{shard['count']}" if shard else _stem(file.path)].append(file)
    found = [_unit(sorted(unit, key=lambda file: file.path)) for unit in units.values()]
    names = [one.name for one in found]
    found = [
        msgspec.structs.replace(one, name=_shardless(one.files[0].path)) if names.count(one.name) > 1 else one
        for one in found
    ]
    if mlx and (folder := _folder(files, repo)):
        found.append(folder)
    return tuple(sorted(found, key=lambda one: (one.size_bytes, one.name)))


def projectors(files: Iterable[RepoFile]) -> tuple[RepoFile, ...]:
    """The files that let a model see or hear (``mmproj``), smallest first."""
    return tuple(sorted((f for f in files if _is_gguf(f.path) and _is_projector(f.path)), key=lambda f: f.size_bytes))


def is_model(path: str) -> bool:
    """Whether the file at ``path`` holds (a part of) a language model in GGUF."""
    return _is_gguf(path) and not _is_projector(path) and "imatrix" not in path.rpartition("/")[2].lower()


def choose(quantizations: Sequence[RepoQuantization], name: str, repo: str) -> RepoQuantization:
    """The one that is called ``name``, in any case, with or without ``UD-``.

    Raises ``ModelNotFound`` with the nearest names.
    """
    known = {one.name.casefold(): one for one in quantizations}
    wanted = name.casefold()
    if one := known.get(wanted) or known.get(f"ud-{wanted}"):
        return one
    near = difflib.get_close_matches(wanted, known, n=3, cutoff=0.5)
    names = [printable(known[key].name) for key in near or known]
    hint = f"Did you mean {' or '.join(names)}?" if near else f"It has {', '.join(names) or 'no model files'}."
    raise ModelNotFound(f"{repo} has no quantization “{printable(name)}”.", hint)


def choose_file(quantizations: Sequence[RepoQuantization], path: str, repo: str) -> RepoQuantization:
    """The one that the file at ``path`` belongs to. Raises ``ModelNotFound`` with the nearest names."""
    for one in quantizations:
        if any(file.path == path for file in one.files):
            return one
    paths = [file.path for one in quantizations for file in one.files]
    near = difflib.get_close_matches(path, paths, n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(printable(name) for name in near)}?" if near else ""
    raise ModelNotFound(f"{repo} has no model file “{printable(path)}”.", hint or "Look at it with “localinfer show”.")


def complete(quantization: RepoQuantization, repo: str) -> RepoQuantization:
    """``quantization``, if all its parts exist. Raises ``ModelFileInvalid``."""
    if quantization.missing:
        message = f"{repo} lacks {len(quantization.missing)} parts of {printable(quantization.name)}"
        raise ModelFileInvalid(f"{message}: {printable(quantization.missing[0])} is one.", "Take another quantization.")
    return quantization


def _unit(files: list[RepoFile]) -> RepoQuantization:
    path = files[0].path
    missing = _missing(path, {file.path for file in files})
    return RepoQuantization(name=_type(path) or _plain(path), files=tuple(files), missing=missing)


def _missing(path: str, here: Container[str]) -> tuple[str, ...]:
    """The shards of the model that ``path`` is a shard of, less those that are ``here``."""
    shard = _SHARD.fullmatch(_stem(path))
    if shard is None:
        return ()
    stem, count, suffix = shard["stem"], shard["count"], path[len(_stem(path)) :]
    names = (f"{stem}-{number:05}-of-{count}{suffix}" for number in range(1, min(int(count), _MOST_SHARDS) + 1))
    return tuple(name for name in names if name not in here)


def _type(path: str) -> str | None:
    """The quantization that ``path`` names: the last one in the file's own name, else in its folders' names."""
    folder, _, name = _shardless(path).rpartition("/")
    for text in (name, folder):
        if found := [match["name"] for match in _TYPE.finditer(text)]:
            return found[-1].upper().replace("FP16", "F16").replace("FP32", "F32")
    return None


def renamed(stem: str, name: str) -> str:
    """``stem``, the name of a model's file, with its quantization replaced by ``name``, or ``name`` appended."""
    found = [*_TYPE.finditer(stem)]
    return stem[: found[-1].start("name")] + name + stem[found[-1].end("name") :] if found else f"{stem}-{name}"


def _folder(files: Iterable[RepoFile], repo: str) -> RepoQuantization | None:
    """The files at the top that MLX needs, if they are a model."""
    own = tuple(file for file in files if "/" not in file.path and file.path.lower().endswith(_OF_MLX))
    names = {file.path for file in own}
    if "config.json" not in names or not any(name.endswith(".safetensors") for name in names):
        return None
    bits = [match["name"] for match in _BITS.finditer(repo.partition("/")[2])]
    weights = next(name for name in sorted(names) if name.endswith(".safetensors"))
    missing = _missing(weights, names)
    return RepoQuantization(name=bits[-1] if bits else "MLX", files=own, format="mlx", missing=missing)


def _stem(path: str) -> str:
    return path.rpartition(".")[0]


def _shardless(path: str) -> str:
    shard = _SHARD.fullmatch(_stem(path))
    return shard["stem"] if shard else _stem(path)


def _plain(path: str) -> str:
    return _shardless(path).rpartition("/")[2]


def _is_gguf(path: str) -> bool:
    return path.lower().endswith(".gguf")


def _is_projector(path: str) -> bool:
    return "mmproj" in path.rpartition("/")[2].lower()
