"""``localinfer doctor``: what this installation can do here, and the exact fix for what it cannot."""

import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Literal

import msgspec

from localinfer import __version__, machine, settings
from localinfer.cli import console
from localinfer.errors import BackendUnavailable, LocalInferError, StorageUnavailable
from localinfer.machine import Build, BuildDevice, NvidiaGpu
from localinfer.process import Child

PROBE = "backends.llama_cpp.probe"
PROBE_TIMEOUT_S = 60.0
LIBRARY = "llama-cpp-python"
OLDEST_FOR_CUDA_13 = (7, 5)  # its compilers build for no older compute capability

_INDENT = 15  # columns of the mark and the name
_CUDA_FOLDERS = ("/usr/local/cuda", "/opt/cuda")


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
    yield from _engine()
    yield Finding("ok", "memory", f"{_gib(machine.available_memory_bytes())} free")
    yield _checked("settings", _settings)
    yield _checked("models", lambda: _folder(settings.models_dir()))
    yield _checked("logs", lambda: _folder(settings.log_dir()))


def _checked(name: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding("ok", name, check())
    except LocalInferError as error:
        return Finding("bad", name, error.message, error.hint)


# The engine


def _engine() -> Iterator[Finding]:
    try:
        build = probe()
    except LocalInferError as error:
        yield Finding("bad", "build", error.message, error.hint, _install())
        return
    kind = "with GPU offload" if build.gpu_offload else "for the CPU only"
    yield Finding("ok", "build", f"{LIBRARY} {build.version}, {kind}\n{_features(build.system_info)}")
    yield Finding("ok", "devices", "\n".join(map(_device, build.devices)))
    try:
        yield offload(build, machine.nvidia_gpus())
    except BackendUnavailable as error:
        yield Finding("bad", "offload", error.message, error.hint)
    yield Finding("ok", "threads", f"up to {build.cores}, following the cores that are free")


def offload(build: Build, cards: tuple[NvidiaGpu, ...]) -> Finding:
    """Whether the build can use the graphics cards that the driver reports, and the fix when it cannot."""
    gpus = [device for device in build.devices if "GPU" in device.kind]
    if gpus and (not cards or any(card.name in gpu.description for card in cards for gpu in gpus)):
        return Finding("ok", "offload", f"models go to {', '.join(gpu.name for gpu in gpus)}")
    if not cards:
        return Finding("ok", "offload", "none: there is no GPU, models run on the CPU")
    names = "\n".join(map(_card, cards))
    if not build.gpu_offload or gpus:
        return Finding("bad", "offload", f"{names}\nThis build of llama.cpp cannot use it.", *_cuda_fix(cards))
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    if hidden is not None:
        fix = f"CUDA_VISIBLE_DEVICES is “{hidden}”, which hides cards. Unset it."
    else:
        fix = "The driver may be older than the CUDA version of this build: update the driver, restart the machine."
    return Finding("bad", "offload", f"{names}\nThis build of llama.cpp can use it, but finds no device.", fix)


def probe() -> Build:
    """Ask the build, in a child that may die of it. Raises ``BackendUnavailable``, ``StorageUnavailable``."""
    late = threading.Event()
    with tempfile.TemporaryDirectory() as folder:
        child: Child[Build] = Child(PROBE, Build, Path(folder) / "probe.log")

        def give_up() -> None:
            late.set()
            child.kill()

        timer = threading.Timer(PROBE_TIMEOUT_S, give_up)
        timer.start()
        try:
            build = next(child.reports(), None)
            death = child.death()
        finally:
            timer.cancel()
            child.kill()
    if build is not None:
        return build
    if late.is_set():
        raise BackendUnavailable(
            f"llama.cpp did not answer within {PROBE_TIMEOUT_S:.0f} s.",
            "A GPU driver may hang: restart the machine. If that does not help, install llama.cpp again:",
        )
    last = death.log_tail[-1] if death.log_tail else ""
    reason = last.partition("BackendUnavailable: ")[2] or f"{death.cause}. {last}".strip()
    raise BackendUnavailable(f"llama.cpp cannot be used: {reason}", "Install it again:")


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


def _device(device: BuildDevice) -> str:
    own = device.total_bytes and device.kind != "CPU"  # the machine's memory has a line of its own
    memory = f", {_gib(device.free_bytes)} of {_gib(device.total_bytes)} free" if own else ""
    return f"{device.name}: {device.description}{memory}"


def _card(card: NvidiaGpu) -> str:
    memory = f"{_gib(card.total_bytes)}, " if card.total_bytes is not None else ""
    return f"{card.name} ({memory}compute capability {card.compute_capability}, driver {card.driver})"


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.1f} GiB"


# The fixes


def _cuda_fix(cards: tuple[NvidiaGpu, ...]) -> tuple[str, str]:
    """In words, and the command that builds llama.cpp for NVIDIA cards."""
    old = any(_before_cuda_13(card.compute_capability) for card in cards)
    toolkit = "CUDA toolkit 12 (13 is too new for this card)" if old else "CUDA toolkit"
    compiler = _cuda_compiler()
    arguments = "-DGGML_CUDA=on"
    if compiler and not shutil.which("nvcc"):
        arguments += f";-DCMAKE_CUDA_COMPILER={compiler}"
    words = f"Build it with the {toolkit}:" if compiler else f"Install the {toolkit}, which has “nvcc”, then run:"
    return words, _install("--no-binary", LIBRARY, "-C", f"cmake.args={arguments}")


def _before_cuda_13(capability: str) -> bool:
    major, _, minor = capability.partition(".")
    return major.isdecimal() and minor.isdecimal() and (int(major), int(minor)) < OLDEST_FOR_CUDA_13


def _cuda_compiler() -> str | None:
    folders = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    candidates = (Path(folder) / "bin" / "nvcc" for folder in (*folders, *_CUDA_FOLDERS) if folder)
    return shutil.which("nvcc") or next((str(path) for path in candidates if path.is_file()), None)


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
    return next((requirement.split(";")[0] for requirement in required if requirement.startswith(LIBRARY)), LIBRARY)


# The files


def _settings() -> str:
    settings.load()
    file = settings.config_file()
    return str(file) if file.exists() else f"defaults; {file} would change them"


def _folder(path: Path) -> str:
    """The folder and its free space. Raises ``StorageUnavailable``."""
    settings.make_folder(path)
    try:
        with tempfile.TemporaryFile(dir=path):
            return f"{path} ({_gib(shutil.disk_usage(path).free)} free)"
    except OSError as error:
        raise StorageUnavailable(
            f"Nothing can be written to {path}: {error.strerror or error}.",
            "Free some space, or set LOCALINFER_HOME to a folder where you may write.",
        ) from error
