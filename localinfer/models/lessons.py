"""What real loads on this machine taught: how far plans were off. The next plan starts from the median.

It keeps the last few lessons of each model on each device in one file; a file that cannot be read teaches nothing and
is replaced.
"""

import contextlib
import statistics
from collections.abc import Callable, Iterable
from pathlib import Path

from localinfer import kept, settings
from localinfer.errors import StorageUnavailable
from localinfer.lock import exclusive
from localinfer.models import speed
from localinfer.models.layout import Lessons, Pace
from localinfer.models.plan import MemoryPlan, Range
from localinfer.types import Value

KEPT = 9  # lessons per model and device: a median that one odd load does not move, and that follows a new driver
MOST = 200  # lessons altogether
LEAST_TOKENS = 32  # a shorter run says little about speed
_FILE = "lessons.json"
_PLAUSIBLE = (0.05, 20.0)  # measured ÷ expected speed
_MOST_OVERHEAD_BYTES = 64 << 30


class Lesson(Value, frozen=True):
    """One load on one device. ``overhead_bytes`` is what it took beyond the plan's other terms; ``decode`` and
    ``prefill`` are measured ÷ expected speed, before anything was learnt, of a model that reads ``read_bytes`` for a
    token. None: not measured."""

    device: str
    model: str
    overhead_bytes: int | None = None
    decode: float | None = None
    prefill: float | None = None
    read_bytes: int = 0


def learnt() -> Lessons:
    """What to take into account in the next plan."""
    return summary(kept.load(_path(), list[Lesson], []))


def summary(lessons: Iterable[Lesson]) -> Lessons:
    """The lessons by device. A figure that cannot be is passed over: the file may have been damaged."""
    known = list(lessons)
    devices = dict.fromkeys(lesson.device for lesson in known)
    overheads = {d: [v for x in known if x.device == d and (v := _overhead(x)) is not None] for d in devices}

    def paces(figure: Callable[[Lesson], float | None]) -> dict[str, tuple[Pace, ...]]:
        told = {
            d: [Pace(read_bytes=x.read_bytes, ratio=v) for x in known if x.device == d and (v := figure(x)) is not None]
            for d in devices
        }
        return {device: tuple(values) for device, values in told.items() if values}

    return Lessons(
        overhead_bytes={device: int(statistics.median(values)) for device, values in overheads.items() if values},
        decode=paces(lambda x: _plausible(x.decode)),
        prefill=paces(lambda x: _plausible(x.prefill)),
    )


def compare(
    plan: MemoryPlan,
    model: str,
    *,
    held_bytes: int | None = None,
    decode_tps: float | None = None,
    prefill_tps: float | None = None,
) -> Lesson:
    """The lesson of one load: ``held_bytes`` were measured on the plan's device after it."""
    overhead = None
    if held_bytes is not None:
        planned = sum(t.size_bytes for t in plan.terms if t.device == plan.device and t.kind != "overhead")
        overhead = held_bytes - planned
    return Lesson(
        device=plan.device,
        model=model,
        overhead_bytes=overhead,
        decode=_ratio(decode_tps, plan.decode_tps, plan.decode_learnt),
        prefill=_ratio(prefill_tps, plan.prefill_tps, plan.prefill_learnt),
        read_bytes=speed.read_bytes(plan.traffic, plan.context),
    )


def keep(lesson: Lesson) -> None:
    """Add a lesson to the file. A disk that does not take it is no reason to fail: the next plan knows less."""
    with contextlib.suppress(OSError, StorageUnavailable):
        path = settings.make_folder(settings.state_dir()) / _FILE
        with exclusive(path.with_suffix(".lock"), lambda: None):
            lessons = [*kept.load(path, list[Lesson], []), lesson]
            same = [known for known in lessons if (known.device, known.model) == (lesson.device, lesson.model)]
            forgotten = same[:-KEPT]
            kept.replace(path, [known for known in lessons if not any(known is old for old in forgotten)][-MOST:])


def _ratio(measured: float | None, expected: Range | None, learnt: float) -> float | None:
    if not measured or expected is None:
        return None
    return _plausible(measured * learnt / expected.middle)


def _plausible(ratio: float | None) -> float | None:
    return ratio if ratio is not None and _PLAUSIBLE[0] < ratio < _PLAUSIBLE[1] else None


def _overhead(lesson: Lesson) -> int | None:
    size = lesson.overhead_bytes
    return size if size is not None and 0 <= size <= _MOST_OVERHEAD_BYTES else None


def _path() -> Path:
    return settings.state_dir() / _FILE
