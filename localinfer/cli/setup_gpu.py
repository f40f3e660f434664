"""``localinfer setup-gpu``: what is here, what will be done, whether to do it, how it goes, what was proven."""

import contextlib
import shutil
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from localinfer import builds, settings
from localinfer.cli import console
from localinfer.errors import BackendUnavailable, BadRequest, LocalInferError, Offline
from localinfer.gpu_build import index, setup
from localinfer.gpu_build.found import Found, look
from localinfer.gpu_build.plan import Plan, dotted, make
from localinfer.gpu_build.proof import Proof
from localinfer.models.catalog import catalog
from localinfer.models.names import printable
from localinfer.models.store import catalogued

if TYPE_CHECKING:
    from rich.progress import Progress

_INDENT = 9
_NOTE_EVERY_S = 60.0


def setup_gpu(*, yes: bool, dry_run: bool, source: bool = False) -> bool:
    """Have a build of llama.cpp that computes on this machine's NVIDIA cards; whether there is one now.

    ``yes`` asks nothing, ``dry_run`` only shows the plan, ``source`` builds even if there is a prebuilt wheel. Raises
    ``LocalInferError``; then nothing has changed.
    """
    found = look()
    if found.system == "macos" and found.arch == "arm64":
        console.write(
            "There is nothing to set up: the graphics of this Mac are used through Metal, which is built in.\n"
        )
        return True
    model = _model()
    if not (dry_run or source) and (proof := _works_already(model, found)):
        console.write(f"There is nothing to set up: {_proven(proof)} already.\n")
        return True
    if settings.load().offline:
        raise Offline(
            "Setting up a build takes the network, and localinfer is offline.", "Set offline to false for it."
        )
    plan = make(found, builds.required_version(), _ask_index, source=source)
    _show(found, plan)
    if dry_run:
        return True
    if not (yes or _confirmed()):
        console.note("Nothing was changed.")
        return False
    _report(_install(plan, model, found))
    return True


def undo_gpu() -> bool:
    """Go back to the build that came with localinfer; always true. Raises ``LocalInferError``."""
    undone = setup.undo()
    console.write("The build that came with localinfer is used again.\n" if undone else "There is nothing to undo.\n")
    return True


def _ask_index(versions: tuple[tuple[int, int], ...]) -> index.Wheel | None:
    return index.find(builds.required_version(), versions, index.INDEX)


def _model() -> Path | None:
    """A model to try the build with: the starter, if it is here."""
    path = catalogued(catalog().starter).path
    return path if path.is_file() else None


def _works_already(model: Path | None, found: Found) -> Proof | None:
    """The proof, unless the build in use fails it or was made for other cards."""
    build = builds.chosen().build
    if build is not None and (new := [card.name for card in found.cards if card.name not in build.cards]):
        console.note(f"The build that was set up was not made for {', '.join(new)}.")
        return None
    try:
        return setup.prove_current(model, features=found.features)
    except BackendUnavailable as error:
        if build is not None:
            console.note(f"The build that was set up does not work any more. {error.message}")
        return None


def _install(plan: Plan, model: Path | None, found: Found) -> Proof:
    label = "Installing llama.cpp" if plan.kind == "wheel" else "Building llama.cpp"
    try:
        with _working(label) as line:
            return setup.install(plan, model, line.update, features=found.features)
    except (LocalInferError, KeyboardInterrupt):
        console.note("Undone: what was used before is still in use.")
        raise


# What is said


def _show(found: Found, plan: Plan) -> None:
    for number, card in enumerate(found.cards):
        memory = f"{card.total_bytes / 2**30:.1f} GiB, " if card.total_bytes is not None else ""
        _line("" if number else "Found", f"{card.name} ({memory}compute capability {card.compute_capability})")
    if found.cuda is not None:
        where = "the driver of Windows, " if found.wsl else "driver "
        _line("", f"{where}{found.cards[0].driver}, which runs CUDA up to {dotted(found.cuda)}")
    for kit in found.toolkits:
        _line("", f"CUDA toolkit {dotted(kit.version)} ({kit.compiler})")
    for reason in plan.reasons:
        _line("Note", reason)
    if plan.kind == "wheel":
        _line("Plan", f"install {plan.origin}, from {printable(plan.requirements[0], 300)}")
        _line("", f"and NVIDIA's own libraries for it from the package index: {', '.join(plan.requirements[1:])}")
        _line("", "That is a download of one to two GB.")
    else:
        least, most = plan.minutes
        _line(
            "Plan",
            f"build {builds.LIBRARY} {plan.version} from its source in the package index, with CUDA "
            f"{dotted(plan.cuda)}, for {', '.join(plan.cards)}.",
        )
        _line("", f"That takes some {least} to {most} minutes with {plan.jobs} at a time (an estimate).")
    folder = settings.builds_dir()
    _line(
        "",
        f"It goes into {folder}, takes up to {plan.needs_bytes / 1e9:.0f} GB there while it is made, and is used "
        "only if it is seen to work with the card. Nothing else changes.",
    )
    _line("Undo", f"{builds.SETUP} --undo")
    console.write("The command:\n")
    console.write(plan.shown(folder / f"{plan.version}-cu{plan.cuda[0]}{plan.cuda[1]}-{plan.kind}") + "\n")


def _line(name: str, text: str) -> None:
    width = min(100, max(40, shutil.get_terminal_size().columns)) - _INDENT
    wrapped = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    for label, part in zip([name, *[""] * len(wrapped)], wrapped, strict=False):
        console.write(f"{label:<{_INDENT}}{part}\n")


def _report(proof: Proof) -> None:
    console.write(f"Done: {_proven(proof)}.\n")
    if proof.run is None:
        console.write("It was not tried with a model, because none is here yet.\n")
        return
    info = proof.run.info
    speed = f"{proof.run.tps:,.0f} tok/s over {proof.run.tokens} tokens"
    console.write(f"Proven with {printable(info.name, 80)}: {printable(info.placement, 80)}, {speed}.\n")


def _proven(proof: Proof) -> str:
    """No more than what was seen."""
    return f"llama.cpp {'sees' if proof.run is None else 'computes on'} {', '.join(proof.gpus)}"


def _confirmed() -> bool:
    """Ask. Raises ``BadRequest`` when nobody is there to answer."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise BadRequest(
            "Setting up a build asks first, and there is nobody to ask.",
            "Run it in a terminal, or with --yes to agree in advance.",
            param="yes",
        )
    console.ask("Go on? [y/N] ")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


# How it goes


@contextmanager
def _working(label: str) -> Iterator["_Line"]:
    """A line with the time and what goes on, rewritten in place; a line each minute where that is not possible."""
    line = _Line(label)
    try:
        yield line
    finally:
        line.close()


class _Line:
    def __init__(self, label: str) -> None:
        self._label = label
        self._began = self._noted = time.monotonic()
        self._progress: Progress | None = None
        if sys.stderr.isatty() and not console.dumb():
            self._progress = _progress()
            self._task = self._progress.add_task(label, last="")
            self._progress.start()
        else:
            console.note(f"{label} …")

    def update(self, last: str) -> None:
        """``last`` is what goes on now."""
        now = time.monotonic()
        if self._progress is not None:
            self._progress.update(self._task, last=last)
        elif now - self._noted >= _NOTE_EVERY_S:
            self._noted = now
            console.note(f"{self._label} · {(now - self._began) / 60:.0f} min · {last}")

    def close(self) -> None:
        """Take it away."""
        if self._progress is not None:
            with contextlib.suppress(OSError):
                self._progress.stop()


def _progress() -> "Progress":
    from rich.console import Console
    from rich.progress import Progress, TextColumn, TimeElapsedColumn
    from rich.table import Column

    return Progress(
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        TextColumn(
            "{task.fields[last]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)
        ),
        console=Console(stderr=True),
        transient=True,
        expand=True,
    )
