"""What a quantization costs: models held against the first of them on one text, each in a child of its own.

Only one model is in memory at a time. What the first one predicts is kept in a file meanwhile, and where a text is too
long for that the models take turns with pieces of it. It knows nothing of how figures are shown.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import psutil

from localinfer import settings
from localinfer.acquire import acquire
from localinfer.advice import Advice
from localinfer.divergence import Divergence, Perplexity, divergence, perplexity
from localinfer.engines.opening import planned
from localinfer.errors import BadRequest, NotEnoughDisk
from localinfer.models.explain import download_size
from localinfer.models.names import printable
from localinfer.models.progress import FetchProgress
from localinfer.models.scores import ChunkScored, ReadText, ScoreText, TextRead, TextScored, scored
from localinfer.models.scoring import ScoringChild
from localinfer.types import LoadOptions, Value

SAMPLE = Path(__file__).with_name("sample.txt")

_LEAST_CHUNKS = 2
_MOST_TEXT_BYTES = 8_000_000
_FILE_BYTES = 2 << 30  # the most that the predictions of the reference take on disk at once
_ROW_BYTES = 4
_FOLDER = "compare-"


class Subject(Value, frozen=True):
    """A model to be compared. ``memory_bytes`` is what it takes by its plan, with a context of one chunk."""

    name: str
    options: LoadOptions
    size_bytes: int
    memory_bytes: int


class Compared(Value, frozen=True, omit_defaults=False):
    """The figures of one model; ``divergence`` is from the reference, None for the reference itself."""

    name: str
    quantization: str
    description: str
    size_bytes: int
    memory_bytes: int
    placement: str
    threads: int
    prefill_tps: float | None
    decode_tps: float | None
    perplexity: Perplexity
    divergence: Divergence | None


class Comparison(Value, frozen=True, omit_defaults=False):
    """Models against the first of them. ``chunks`` of ``context`` tokens were read, ``scored_tokens`` predicted."""

    text: str
    context: int
    chunks: int
    scored_tokens: int
    vocabulary_size: int
    models: tuple[Compared, ...]


class Step(Value, frozen=True):
    """How far it is: ``done`` of ``total`` chunks, those of all models counted; ``name`` is at work."""

    name: str
    done: int
    total: int


def subject(
    reference: str,
    options: LoadOptions,
    advice: Advice,
    *,
    offline: bool,
    progress: Callable[[FetchProgress], None],
    force: bool = False,
) -> Subject:
    """The model that ``reference`` names, fetched if necessary, checked and placed. Raises what ``acquire`` and
    ``planned`` raise."""
    found = acquire(reference, offline=offline, progress=progress)
    placing = planned(found, options, advice, force=force)
    return Subject(
        name=found.path.stem,
        options=placing.options,
        size_bytes=sum(path.stat().st_size for path in found.paths),
        memory_bytes=placing.plan.total_bytes,
    )


def read_text(path: Path | None) -> str:
    """The text of a file; None: a text of our own, prose, code and other languages. Raises ``BadRequest``."""
    file = path or SAMPLE
    shown = printable(str(file))
    try:
        if file.stat().st_size > _MOST_TEXT_BYTES:
            raise BadRequest(f"{shown} is larger than 8 MB.", "Give a part of it.", param="text")
        data = file.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadRequest(f"{shown} cannot be read: {reason}.", "Name a text file.", param="text") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadRequest(f"{shown} is not text in UTF-8.", "Name a plain text file.", param="text") from error
    if "\0" in text:
        raise BadRequest(f"{shown} is not text.", "Name a plain text file.", param="text")
    return text


def compare(
    subjects: Sequence[Subject],
    text: str,
    *,
    name: str,
    context: int,
    chunks: int | None,
    progress: Callable[[Step], None],
) -> Comparison:
    """Hold all against the first of them. ``name`` says what the text is; ``chunks`` bounds how much of it is read.

    An exception from ``progress``, or Ctrl-C, ends it; nothing stays behind. Raises ``BadRequest`` for a text that is
    too short or models whose vocabularies differ, ``NotEnoughDisk``, ``ModelFileInvalid``, ``OutOfMemory``,
    ``LocalInferError``.
    """
    subjects = _distinct(subjects)
    read = _read(subjects, text)
    count = min(len(read.tokens) // context, chunks or len(read.tokens))
    if len(read.tokens) < _LEAST_CHUNKS * context:
        raise BadRequest(
            f"The text is too short: it has {len(read.tokens):,} tokens, and {_LEAST_CHUNKS} chunks of {context:,} are "
            "the least.",
            "Give a longer text, or a smaller --context.",
            param="text",
        )
    results = [_Result() for _ in subjects]
    with _folder() as folder:
        chunk_bytes = len(scored(context)) * read.vocabulary_size * _ROW_BYTES
        most = _chunks_at_once(folder, chunk_bytes)
        done = 0
        for start in range(0, count, most):
            some = min(most, count - start)
            file = _reserved(folder, some * chunk_bytes)
            tokens = read.tokens[start * context : (start + some) * context]
            for one, result in zip(subjects, results, strict=True):
                first = results[0].said
                threads = first.threads if first else one.options.threads  # the same for all, or speeds mean nothing
                asked = ScoreText(
                    options=msgspec.structs.replace(one.options, threads=threads),
                    tokens=tokens,
                    context=context,
                    file=str(file),
                    reference=result is results[0],
                    timed=start == 0,
                )
                at = Step(name=one.name, done=done, total=count * len(subjects))
                progress(at)
                for answer in _scored(one, asked):
                    result.take(answer)
                    if isinstance(answer, ChunkScored):
                        done += 1
                        progress(msgspec.structs.replace(at, done=done))
    return Comparison(
        text=name,
        context=context,
        chunks=count,
        scored_tokens=count * len(scored(context)),
        vocabulary_size=read.vocabulary_size,
        models=tuple(result.figures(one) for one, result in zip(subjects, results, strict=True)),
    )


class _Result:
    """What one model has answered so far."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.kls: list[float] = []
        self.same: list[bool] = []
        self.said: TextScored | None = None

    def take(self, answer: ChunkScored | TextScored) -> None:
        if isinstance(answer, ChunkScored):
            self.losses += answer.losses
            self.kls += answer.kls
            self.same += answer.same_top
        elif self.said is None:  # the first one was timed
            self.said = answer

    def figures(self, one: Subject) -> Compared:
        """What all that amounts to."""
        assert self.said is not None
        return Compared(
            name=one.name,
            quantization=self.said.quantization,
            description=self.said.description,
            size_bytes=one.size_bytes,
            memory_bytes=one.memory_bytes,
            placement=self.said.placement,
            threads=self.said.threads,
            prefill_tps=self.said.prefill_tps,
            decode_tps=self.said.decode_tps,
            perplexity=perplexity(self.losses),
            divergence=divergence(self.kls, self.same) if self.kls else None,
        )


def _distinct(subjects: Sequence[Subject]) -> tuple[Subject, ...]:
    """The same with names that differ: files of one name are told apart by their folders, else by numbers."""
    names = [one.name for one in subjects]
    if len(set(names)) < len(names):
        names = [f"{Path(one.options.model).parent.name}/{one.name}" for one in subjects]
    if len(set(names)) < len(names):
        names = [f"{one.name} ({number})" for number, one in enumerate(subjects, 1)]
    return tuple(msgspec.structs.replace(one, name=name) for one, name in zip(subjects, names, strict=True))


def _read(subjects: Sequence[Subject], text: str) -> TextRead:
    """The text as tokens of all of them. Raises ``BadRequest`` if it is other tokens to one."""
    first: TextRead | None = None
    for one in subjects:
        with ScoringChild(one.name) as child:
            read = child.read(ReadText(path=one.options.model, parts=one.options.parts, text=text))
        if first is None:
            first = read
        elif read.vocabulary != first.vocabulary:
            sizes = f"{first.vocabulary_size:,} and {read.vocabulary_size:,} tokens"
            raise BadRequest(
                f"{subjects[0].name} and {one.name} have different vocabularies ({sizes}): their predictions cannot be "
                "compared, nor can their perplexities.",
                "Compare quantizations of one model.",
            )
    assert first is not None
    return first


def _scored(one: Subject, asked: ScoreText) -> Iterator[ChunkScored | TextScored]:
    with ScoringChild(one.name) as child:
        yield from child.score(asked)


def _chunks_at_once(folder: Path, chunk_bytes: int) -> int:
    """How many chunks' predictions may lie on the disk, half of what is free left to others."""
    free = shutil.disk_usage(folder).free
    if free // 2 < chunk_bytes:
        raise _no_disk(folder, chunk_bytes, free)
    return max(1, min(_FILE_BYTES, free // 2) // chunk_bytes)


def _reserved(folder: Path, size_bytes: int) -> Path:
    """A file of that size: writing into a memory-mapped file without room for it would end the process."""
    path = folder / "reference"
    with path.open("wb") as file:
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size_bytes)
            file.truncate(size_bytes)
        except OSError as error:
            raise _no_disk(folder, size_bytes, shutil.disk_usage(folder).free) from error
    return path


def _no_disk(folder: Path, needed_bytes: int, free: int) -> NotEnoughDisk:
    return NotEnoughDisk(
        f"The comparison takes {download_size(needed_bytes)} of disk for a while; {download_size(free)} are free.",
        f"Free some space where {printable(str(folder.parent))} is, or use a smaller --context.",
        needed_bytes=needed_bytes,
        free_bytes=free,
    )


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """A folder for the block; those of processes that were killed go too."""
    state = settings.make_folder(settings.state_dir())
    for old in state.glob(f"{_FOLDER}*"):
        owner = old.name.removeprefix(_FOLDER).partition("-")[0]
        if owner.isdigit() and not psutil.pid_exists(int(owner)):
            shutil.rmtree(old, ignore_errors=True)
    with tempfile.TemporaryDirectory(
        prefix=f"{_FOLDER}{os.getpid()}-", dir=state, ignore_cleanup_errors=True
    ) as folder:
        yield Path(folder)
