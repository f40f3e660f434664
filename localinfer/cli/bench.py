"""``localinfer bench``: the report as tables or JSON on standard output, progress on standard error at a terminal."""

import contextlib
import json
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from localinfer.bench.compare import caveats, compare, read_report
from localinfer.bench.extent import FULL, QUICK, USUAL, Extent
from localinfer.bench.running import Bench, Order
from localinfer.bench.server import Server
from localinfer.bench.tables import drawn
from localinfer.bench.values import Report, schema
from localinfer.bench.workloads import MIXED, built_in, from_file
from localinfer.cli import console
from localinfer.errors import BadRequest
from localinfer.types import LoadOptions

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from localinfer.models.progress import FetchProgress

_SEED = 1
_MOST_CLIENTS = 256
_MOST_LEVELS = 8


def write_schema() -> None:
    """Write the JSON schema of a report."""
    console.write(json.dumps(schema(), ensure_ascii=False, indent=1) + "\n")


def bench(
    models: Sequence[str],
    options: LoadOptions,
    *,
    quick: bool,
    full: bool,
    concurrency: str,
    workload: str | None,
    file: Path | None,
    seed: int | None,
    against: str | None,
    against_model: str | None,
    older: Path | None,
    draft: str,
    offline: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Measure and report. What was measured by the time of an error or of Ctrl-C is reported too.

    Raises ``LocalInferError``.
    """
    if workload is not None and file is not None:
        raise BadRequest("There is a workload and a file of prompts.", "Give one of them.", param="file")
    then = read_report(older) if older is not None else None
    workloads = from_file(file) if file is not None else built_in(workload or MIXED)
    levels = _levels(concurrency)
    # A server may still have the prompts of an earlier run in its cache: these get marks of their own.
    chosen = seed if seed is not None else secrets.randbelow(10**9) if against is not None else _SEED
    order = Order(
        models=tuple(models) or ((None,) if against is None else ()),
        options=options,
        extent=_extent(quick=quick, full=full),
        concurrency=levels,
        workload=workloads[0].name if file is not None else workload or MIXED,
        workloads=workloads,
        own_file=file is not None,
        seed=chosen,
        draft=draft,
        offline=offline,
        force=force,
    )
    server = Server(against, against_model, offline=offline) if against is not None else None
    if server is not None and server.warning:
        console.warn(server.warning)
    with contextlib.closing(server) if server is not None else contextlib.nullcontext():
        subject = server.subject() if server is not None else None  # whether it answers is known at once
        with _doing() as doing:
            asked = (subject, server) if subject is not None and server is not None else None
            running = Bench(order, asked, say=doing.say, fetching=doing.fetch)
            complete = False
            try:
                running.run()
                complete = True
            finally:
                doing.clear()
                report = running.report(complete=complete)
                if complete or any(result.shapes or result.levels for result in report.results):
                    _write(report, then, as_json=as_json)


def _write(report: Report, then: Report | None, *, as_json: bool) -> None:
    if then is not None:
        for caveat in caveats(then, report):
            console.note(caveat)
        report = msgspec.structs.replace(report, comparison=compare(then, report))
    if as_json:
        console.write(msgspec.json.format(msgspec.json.encode(report), indent=1).decode() + "\n")
        return
    width = max(72, min(120, shutil.get_terminal_size().columns))
    console.write_drawn(drawn(report, width, colours=console.has_styles(sys.stdout)))


def _extent(*, quick: bool, full: bool) -> Extent:
    if quick and full:
        raise BadRequest("--quick and --full are opposites.", "Give one of them.", param="quick")
    return QUICK if quick else FULL if full else USUAL


def _levels(text: str) -> tuple[int, ...]:
    try:
        levels = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        levels = ()
    if not levels or not 1 <= levels[0] <= levels[-1] <= _MOST_CLIENTS or len(levels) > _MOST_LEVELS:
        raise BadRequest(
            f"The concurrency cannot be “{text[:60]}”.",
            f"Write up to {_MOST_LEVELS} numbers from 1 to {_MOST_CLIENTS}, as in 1,4,8.",
            param="concurrency",
        )
    return levels


class _Doing:
    """What is being done, on a line of its own at a terminal; downloads have their usual bar. Silent in a pipe."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._bar = contextlib.ExitStack()
        self._update: Callable[[FetchProgress], None] | None = None

    def say(self, text: str) -> None:
        """Show ``text`` in place of what was shown."""
        self._close_bar()
        if not sys.stderr.isatty() or console.dumb():
            return
        if self._progress is None:
            self._start()
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, description=console.safe(text))

    def fetch(self, state: "FetchProgress") -> None:
        """Show how far a download has come."""
        if self._update is None:
            self._stop()
            self._update = self._bar.enter_context(console.fetching("the model"))
        self._update(state)

    def clear(self) -> None:
        """Take it away before something else is written."""
        self._close_bar()
        self._stop()

    def _close_bar(self) -> None:
        self._bar.close()
        self._update = None

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
            refresh_per_second=4,  # drawing takes time from what is measured
        )
        self._task = self._progress.add_task("")
        self._progress.start()

    def _stop(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


@contextlib.contextmanager
def _doing() -> Iterator[_Doing]:
    doing = _Doing()
    try:
        yield doing
    finally:
        doing.clear()
