"""What a quantization costs: models held against the first of them on one text, each in a child of its own.

Only one model is in memory at a time. What the first one predicts is kept in a file meanwhile, and where a text is too
long for that the models take turns with pieces of it. It knows nothing of how figures are shown.
"""

import contextlib
import itertools
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import psutil

from localinfer import settings
from localinfer.acquire import acquire
from localinfer.advice import Advice
from localinfer.engines.opening import planned
from localinfer.errors import (
    BadRequest,
    LocalInferError,
    ModelFileInvalid,
    NotEnoughDisk,
    OutOfMemory,
    from_fault,
)
from localinfer.models.explain import download_size
from localinfer.models.names import printable
from localinfer.models.progress import FetchProgress
from localinfer.models.scores import (
    Answer,
    Ask,
    ChunkScored,
    ReadText,
    ScoreText,
    TextRead,
    TextScored,
    Unscored,
    scored,
)
from localinfer.process import Child, Death
from localinfer.types import LoadOptions, Value

CHILD = "backends.llama_cpp.scoring"
SAMPLE = Path(__file__).with_name("sample.txt")

_LEAST_CHUNKS = 2
_MOST_TEXT_BYTES = 32_000_000
_FILE_BYTES = 2 << 30  # the most that the predictions of the reference take on disk at once
_ROW_BYTES = 4
_FOLDER = "compare-"
_serial = itertools.count(1)


class Subject(Value, frozen=True):
    """A model to be compared. ``memory_bytes`` is what it takes by its plan, with a context of one chunk."""

    name: str
    options: LoadOptions
    size_bytes: int
    memory_bytes: int


class Compared(Value, frozen=True, omit_defaults=False):
    """The figures of one model; those against the reference are None for the reference itself. KL divergence is in
    nats, ``same_top`` the share of positions where both find the same token likeliest."""

    name: str
    quantization: str
    description: str
    size_bytes: int
    memory_bytes: int
    placement: str
    threads: int
    prefill_tps: float | None
    decode_tps: float | None
    perplexity: float
    perplexity_error: float
    kl_mean: float | None = None
    kl_p50: float | None = None
    kl_p90: float | None = None
    kl_p99: float | None = None
    kl_max: float | None = None
    same_top: float | None = None


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
            raise BadRequest(f"{shown} is larger than 32 MB.", "Give a part of it.", param="text")
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
    """Hold all against the first. ``name`` says what the text is; ``chunks`` bounds how much of it is read.

    An exception from ``progress``, or Ctrl-C, ends it; nothing stays behind. Raises ``BadRequest`` for a text that is
    too short or models whose vocabularies differ, ``NotEnoughDisk``, ``ModelFileInvalid``, ``OutOfMemory``,
    ``LocalInferError``.
    """
    from localinfer.divergence import divergence, perplexity

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
        step = _chunks_at_once(folder, len(scored(context)) * read.vocabulary_size * _ROW_BYTES)
        done = 0
        for start in range(0, count, step):
            tokens = read.tokens[start * context : min(start + step, count) * context]
            for number, (one, result) in enumerate(zip(subjects, results, strict=True)):
                asked = ScoreText(
                    options=one.options,
                    tokens=tokens,
                    context=context,
                    file=str(folder / "reference"),
                    reference=number == 0,
                    timed=start == 0,
                )
                progress(Step(name=one.name, done=done, total=count * len(subjects)))
                with _Scoring(one) as child:
                    for answer in child.score(asked):
                        if isinstance(answer, ChunkScored):
                            done += 1
                            progress(Step(name=one.name, done=done, total=count * len(subjects)))
                        result.take(answer)
    compared = []
    for one, result in zip(subjects, results, strict=True):
        said, measured = result.said, perplexity(result.losses)
        far = divergence(result.kls, result.same) if result.kls else None
        assert said is not None
        compared.append(
            Compared(
                name=one.name,
                quantization=said.quantization,
                description=said.description,
                size_bytes=one.size_bytes,
                memory_bytes=one.memory_bytes,
                placement=said.placement,
                threads=said.threads,
                prefill_tps=said.prefill_tps,
                decode_tps=said.decode_tps,
                perplexity=measured.value,
                perplexity_error=measured.error,
                kl_mean=far and far.mean,
                kl_p50=far and far.p50,
                kl_p90=far and far.p90,
                kl_p99=far and far.p99,
                kl_max=far and far.largest,
                same_top=far and far.same_top,
            )
        )
    return Comparison(
        text=name,
        context=context,
        chunks=count,
        scored_tokens=count * len(scored(context)),
        vocabulary_size=read.vocabulary_size,
        models=tuple(compared),
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
        with _Scoring(one) as child:
            read = child.read(text)
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


def _chunks_at_once(folder: Path, chunk_bytes: int) -> int:
    free = shutil.disk_usage(folder).free
    room = min(_FILE_BYTES, free // 2)
    if free // 2 < chunk_bytes:
        raise NotEnoughDisk(
            f"The comparison needs {download_size(2 * chunk_bytes)} of disk for a while; {download_size(free)} are "
            "free.",
            f"Free some space where {printable(str(folder.parent))} is, or use a smaller --context.",
            needed_bytes=2 * chunk_bytes,
            free_bytes=free,
        )
    return max(1, room // chunk_bytes)


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


class _Scoring:
    """The child of one model, for as long as it is needed."""

    def __init__(self, one: Subject) -> None:
        self._subject = one
        log = settings.log_dir() / f"scoring-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{next(_serial)}.log"
        self._child: Child[Answer] = Child(CHILD, Answer, log)

    def read(self, text: str) -> TextRead:
        """The tokens of ``text``. Raises what it failed with."""
        options = self._subject.options
        for answer in self._answers(ReadText(path=options.model, parts=options.parts, text=text)):
            if isinstance(answer, TextRead):
                return answer
        raise self._explain(self._child.death())

    def score(self, asked: ScoreText) -> Iterator[ChunkScored | TextScored]:
        """Chunk after chunk, then the rest. Raises what it failed with."""
        for answer in self._answers(asked):
            if isinstance(answer, ChunkScored | TextScored):
                yield answer
            if isinstance(answer, TextScored):
                return
        raise self._explain(self._child.death())

    def __enter__(self) -> "_Scoring":
        return self

    def __exit__(self, *_: object) -> None:
        self._child.kill()
        self._child.death()

    def _answers(self, asked: Ask) -> Iterator[Answer]:
        self._child.send(asked)
        for answer in self._child.reports():
            if isinstance(answer, Unscored):
                raise from_fault(answer.error)
            yield answer

    def _explain(self, death: Death) -> LocalInferError:
        where, name = f"The log is {self._child.log}.", printable(self._subject.name)
        if death.out_of_memory:
            return OutOfMemory(f"Memory ran out while scoring with {name} ({death.cause}).", where)
        last = f" Its last line: {death.log_tail[-1]}" if death.log_tail else ""
        return ModelFileInvalid(f"{name} makes llama.cpp crash: {death.cause}.", f"{where}{last}")
