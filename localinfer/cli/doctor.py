"""``localinfer doctor``: what this installation can do here, and the exact fix for what it cannot."""

import os
import platform
import subprocess
import sys
from typing import Literal

import msgspec

from localinfer import __version__, machine, settings
from localinfer.errors import LocalInferError
from localinfer.machine import NvidiaGpu

PROBE_TIMEOUT_S = 60.0
CUDA_FIX = (
    'CMAKE_ARGS="-DGGML_CUDA=on" uv pip install --force-reinstall --no-cache-dir --no-binary llama-cpp-python '
    "llama-cpp-python"
)


class Finding(msgspec.Struct, frozen=True):
    """One line of the report; ``fix`` says what to do when the state is not "ok"."""

    state: Literal["ok", "warn", "bad"]
    name: str
    value: str
    fix: str = ""


class Device(msgspec.Struct, frozen=True):
    """A device as the probe reports it."""

    name: str
    description: str
    kind: str
    free_bytes: int
    total_bytes: int


class Probe(msgspec.Struct, frozen=True):
    """What the llama.cpp build says of itself."""

    version: str
    system_info: str
    gpu_offload: bool
    cores: int
    devices: tuple[Device, ...]


def doctor() -> bool:
    """Print the report; whether nothing is bad."""
    findings = [*_installation(), *_engine(), *_folders()]
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    marks = {"ok": ("ok  ", "32"), "warn": ("warn", "33"), "bad": ("BAD ", "1;31")}
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        mark, code = marks[finding.state]
        mark = f"\x1b[{code}m{mark}\x1b[0m" if colour else mark
        print(f"{mark}  {finding.name:<{width}}  {finding.value}")
        if finding.fix:
            print(f"      {'':<{width}}  → {finding.fix}")
    return all(finding.state != "bad" for finding in findings)


def offload(probe: Probe, cards: tuple[NvidiaGpu, ...]) -> Finding:
    """Whether the build can use the graphics cards that the driver reports."""
    gpus = [device for device in probe.devices if device.kind in ("GPU", "integrated GPU")]
    if gpus:
        names = ", ".join(f"{gpu.name}: {gpu.description} ({gpu.total_bytes / 2**30:.1f} GiB)" for gpu in gpus)
        return Finding("ok", "GPU", names)
    if cards:
        names = ", ".join(f"{card.name} (driver {card.driver})" for card in cards)
        if probe.gpu_offload:
            return Finding("bad", "GPU", f"{names}, but llama.cpp finds no device", "Check “nvidia-smi”, then restart.")
        return Finding("bad", "GPU", f"{names}, but this build of llama.cpp is for the CPU only", CUDA_FIX)
    return Finding("ok", "GPU", "none found; models run on the CPU")


def probe() -> Probe:
    """Ask the build, in a child, because a broken driver may end the process. Raises ``LocalInferError``."""
    command = [sys.executable, "-P", "-m", "backends.llama_cpp.probe"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            timeout=PROBE_TIMEOUT_S,
            env=environment,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LocalInferError("llama.cpp did not answer.", "A GPU driver may hang: restart the machine.") from None
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise LocalInferError(
            f"llama.cpp cannot be loaded: {lines[-1] if lines else f'it ended with code {done.returncode}'}",
            "Install it again: uv pip install --force-reinstall --no-cache-dir llama-cpp-python",
        )
    return msgspec.json.decode(done.stdout, type=Probe)


def _installation() -> list[Finding]:
    return [
        Finding("ok", "localinfer", __version__),
        Finding("ok", "Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
    ]


def _engine() -> list[Finding]:
    try:
        found = probe()
    except LocalInferError as error:
        return [Finding("bad", "llama.cpp", error.message, error.hint)]
    return [
        Finding("ok", "llama.cpp", f"llama-cpp-python {found.version}"),
        offload(found, machine.nvidia_gpus()),
        Finding("ok", "threads", f"up to {found.cores}, following the cores that are free"),
        Finding("ok", "CPU build", found.system_info),
    ]


def _folders() -> list[Finding]:
    findings = []
    for name, path in (("models", settings.models_dir()), ("logs", settings.log_dir())):
        try:
            settings.make_folder(path)
            writable = os.access(path, os.W_OK)
        except LocalInferError as error:
            findings.append(Finding("bad", name, error.message, error.hint))
            continue
        fix = "" if writable else "Set LOCALINFER_HOME to a folder where you may write."
        findings.append(Finding("ok" if writable else "bad", name, str(path), fix))
    return findings
