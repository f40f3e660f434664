"""``localinfer doctor``: what this installation can do here, and the exact fix for what it cannot."""

import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Literal

import msgspec

from localinfer import __version__, builds, machine, settings
from localinfer.cli import console
from localinfer.errors import LocalInferError, StorageUnavailable
from localinfer.machine import Device, Machine, Power
from localinfer.models.names import printable
from localinfer.models.shelves import Looker, shelves
from localinfer.probing import probe
from localinfer.settings import Settings

_INDENT = 15  # columns of the mark and the name
_LEAST_FREE_BYTES = 1_000_000_000


class Finding(msgspec.Struct, frozen=True):
    """One entry of the report. What is bad has a ``fix`` in words, a ``command`` to run, or both."""

    state: Literal["ok", "bad"]
    name: str
    value: str
    fix: str = ""
    command: str = ""


def doctor() -> bool:
    """Print the report; whether nothing is bad."""
    good = True
    width = min(100, max(40, shutil.get_terminal_size().columns))
    for finding in _findings():
        good &= finding.state == "ok"
        _print(finding, width)
    return good


def _print(finding: Finding, width: int) -> None:
    """Write lines of up to ``width`` columns; a command is one line whatever its length, to be copied."""
    mark, style = ("BAD", console.RED) if finding.state == "bad" else ("ok", "")
    first, *more = _wrapped(finding.value, width) or [""]
    for line in (f"{mark:<4} {finding.name:<9} {first}", *(" " * _INDENT + line for line in more)):
        console.write(line, style)
        console.write("\n")
    for line in _wrapped(f"→ {finding.fix}" if finding.fix else "", width):
        console.write(" " * _INDENT + line + "\n")
    if finding.command:
        console.write(finding.command + "\n")


def _wrapped(text: str, width: int) -> list[str]:
    return [
        part
        for line in text.splitlines()
        for part in textwrap.wrap(line, width - _INDENT, break_long_words=False, break_on_hyphens=False)
    ]


def _findings() -> Iterator[Finding]:
    yield Finding(
        "ok",
        "versions",
        f"localinfer {__version__} · Python {platform.python_version()} · {platform.system()} {platform.machine()}",
    )
    try:
        build, failure = probe(), None
    except LocalInferError as error:
        build, failure = None, error
    here = machine.look(builds=(build,) if build else ())
    yield Finding("ok", "processor", f"{here.cpu.name}, {_cores(here)}\n{' '.join(here.cpu.features)}")
    yield Finding("ok", "memory", f"{_gib(here.ram_available_bytes)} of {_gib(here.ram_total_bytes)} free")
    if build is not None:
        kind = "with GPU offload" if build.gpu_offload else "for the CPU only"
        yield Finding("ok", "build", f"{builds.LIBRARY} {build.version}, {kind}\n{_features(build.system_info)}")
        if notice := builds.chosen().notice:
            yield Finding("bad", "gpu build", notice, command=builds.SETUP)
    elif failure is not None:
        yield Finding("bad", "build", failure.message, failure.hint, _install())
    yield Finding("ok", "devices", "\n".join(map(_device, here.devices)))
    if power := _power(here.power):
        yield Finding("ok", "power", power)
    if build is not None:
        yield choice(here)
        yield Finding("ok", "threads", f"up to {build.cores}, following the cores that are free")
    yield _checked("settings", _settings)
    yield from _others()
    yield _checked("models", lambda: _folder(settings.models_dir(), _LEAST_FREE_BYTES))
    yield _checked("logs", lambda: _folder(settings.log_dir(), _LEAST_FREE_BYTES))
    yield _checked("state", lambda: _folder(settings.state_dir()))


def _checked(name: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding("ok", name, check())
    except LocalInferError as error:
        return Finding("bad", name, error.message, error.hint)


# The machine


def choice(here: Machine) -> Finding:
    """What models run with and why; bad, with the fix, where the machine could do better."""
    chosen = machine.choose(here)
    if not chosen.warning:
        return Finding("ok", "choice", chosen.reason)
    return Finding("bad", "choice", chosen.warning, chosen.fix, chosen.command)


def _cores(here: Machine) -> str:
    return f"{here.cpu.cores} {'core' if here.cpu.cores == 1 else 'cores'}"


def _device(device: Device) -> str:
    facts = []
    if device.total_bytes is not None and device.kind != "cpu":  # the machine's memory has a line of its own
        facts.append(f"{_gib(device.free_bytes or 0)} of {_gib(device.total_bytes)} free")
    if device.bandwidth is not None:
        source = {"table": " (published)", "measured": " (measured)"}.get(device.bandwidth_source, "")
        facts.append(f"{device.bandwidth / 1e9:.0f} GB/s{source}")
    if device.gpu_cores is not None:
        facts.append(f"{device.gpu_cores} GPU cores")
    if device.compute_capability:
        facts.append(f"compute capability {device.compute_capability}")
    if device.driver:
        facts.append(f"driver {device.driver}")
    if device.wired_limit_bytes is not None:
        facts.append(f"limited to {_gib(device.wired_limit_bytes)}")
    if not device.usable:
        facts.append("not usable")
    return f"{device.id}: {', '.join([device.name, *facts])}"


def _power(power: Power) -> str:
    facts = [
        power.source or "",
        f"battery at {power.battery_percent:.0f} %" if power.battery_percent is not None else "",
        power.throttled,
    ]
    return ", ".join(fact for fact in facts if fact)


# The engine


def _features(system_info: str) -> str:
    """llama.cpp's own line, "CPU : SSE3 = 1 | AVX = 1 |", as a line for each part: "CPU: SSE3 AVX"."""
    text = ""
    for entry in system_info.split("|"):
        part, colon, feature = entry.rpartition(" : ")
        if colon:
            text += f"\n{part.strip()}:"
        name, _, value = (word.strip() for word in feature.partition("="))
        text += f" {name}" if value in ("", "1") else f" {name}={value}"
    return text.strip()


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.1f} GiB"


# The fix of a build that does not work


def _install(*options: str) -> str:
    """The command that puts llama.cpp into the environment of this interpreter, however that was made."""
    command = [sys.executable, "-m", "pip", "install", "--force-reinstall", "--no-deps", "--no-cache-dir"]
    command += [*options, _requirement()]
    return subprocess.list2cmdline(command) if os.name == "nt" else shlex.join(command)


def _requirement() -> str:
    """The version of the library that this localinfer is made for."""
    try:
        required = metadata.requires("localinfer") or []
    except metadata.PackageNotFoundError:
        required = []
    return next(
        (requirement.split(";")[0] for requirement in required if requirement.startswith(builds.LIBRARY)),
        builds.LIBRARY,
    )


# The files


def _settings() -> str:
    settings.load()
    file = settings.config_file()
    return str(file) if file.exists() else f"defaults; {file} would change them"


def _others() -> Iterator[Finding]:
    """What is wrong with the folders of models that are not our own, as far as the person names them."""
    try:
        wanted = settings.load()
    except LocalInferError:  # it has a line of its own
        wanted = Settings()
    for shelf in shelves(wanted):
        if not shelf.named and shelf.origin != "huggingface":
            continue
        looker = Looker()
        if looker.there(shelf):
            looker.entries(shelf.folder)
        elif not looker.notices and os.path.lexists(shelf.folder):
            looker.notices.append(f"{printable(str(shelf.folder))} is not a folder.")
        fix = "Correct the setting model_folders." if shelf.named else "Set HF_HUB_CACHE to a folder of your own."
        yield from (Finding("bad", "folders", notice, fix) for notice in looker.notices)


def _folder(path: Path, least_free_bytes: int = 0) -> str:
    """The folder and its free space. Raises ``StorageUnavailable``, also for less than ``least_free_bytes``."""
    settings.make_folder(path)
    try:
        with os.scandir(path), tempfile.TemporaryFile(dir=path):
            free = shutil.disk_usage(path).free
    except OSError as error:
        raise StorageUnavailable(
            f"{path} cannot be read and written: {error.strerror or error}.",
            "Free some space, or set LOCALINFER_HOME to a folder where you may write.",
        ) from error
    if free < least_free_bytes:
        raise StorageUnavailable(
            f"Only {_gib(free)} are free where {path} is.",
            "Free some space, or set LOCALINFER_HOME to a folder on another disk.",
        )
    return f"{path} ({_gib(free)} free)"
