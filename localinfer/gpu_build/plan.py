"""How llama.cpp can be had for the NVIDIA cards of a machine: a prebuilt wheel or a build from source, and the command.

Pure, but for the index that is asked through a function. Nothing is installed here.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from localinfer.builds import LIBRARY
from localinfer.errors import BackendUnavailable, DownloadFailed, Offline
from localinfer.gpu_build import advice
from localinfer.gpu_build.found import Compiler, Found, Toolkit
from localinfer.gpu_build.index import Wheel
from localinfer.machine.cuda import Cuda
from localinfer.types import Value

AskIndex = Callable[[tuple[Cuda, ...]], Wheel | None]
Capability = tuple[int, int]

OLDEST_CUDA = (11, 8)  # the oldest that llama.cpp is built with upstream
OLDEST_CARD = (5, 0)  # the oldest that CUDA 12 builds for
TURING = (7, 5)  # the oldest that CUDA 13 builds for
WHEEL_CARD = (6, 0)  # the oldest that the wheels for CUDA 11 and 12 hold code for
WHEEL_FEATURES = ("avx2", "fma", "f16c", "bmi2")  # wheels are compiled for the processors of upstream's builders

# The first CUDA that builds for a compute capability, and the newest GCC that a CUDA version takes: release notes and
# installation guide of the CUDA toolkit.
_FIRST_CUDA: tuple[tuple[Capability, Cuda], ...] = (
    *(((12, 1), (12, 9)), ((12, 0), (12, 8)), ((11, 0), (13, 0)), ((10, 3), (12, 9)), ((10, 0), (12, 8))),
    *(((8, 9), (11, 8)), ((8, 7), (11, 4)), ((8, 6), (11, 1)), ((8, 0), (11, 0))),
)
_NEWEST_GCC: tuple[tuple[Cuda, int], ...] = (
    *(((13, 0), 15), ((12, 8), 14), ((12, 4), 13), ((12, 0), 12), ((11, 8), 11)),
)

# Generous: what pip unpacks, what it installs from, and what a compiler leaves.
_WHEEL_BYTES, _SOURCE_BYTES = 6_000_000_000, 5_000_000_000
_JOB_BYTES = 2_500_000_000  # what one nvcc takes of memory for the largest kernels
_CORE_MINUTES = (50, 110)  # of compiling for one kind of card


class Plan(Value, frozen=True):
    """What will be done. ``requirements`` and ``options`` are pip's, ``environment`` is set for it.

    ``reasons`` are sentences: why not something better. ``needs_bytes`` of disk space are wanted at the most;
    ``minutes`` is how long compiling takes, roughly, at least and at most. ``toolkit`` is what it is compiled with.
    """

    kind: Literal["wheel", "source"]
    version: str
    cuda: Cuda
    cards: tuple[str, ...]
    requirements: tuple[str, ...]
    options: tuple[str, ...] = ()
    environment: dict[str, str] = msgspec.field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    needs_bytes: int = 0
    minutes: tuple[int, int] = (0, 0)
    toolkit: Toolkit | None = None
    jobs: int = 1

    @property
    def origin(self) -> str:
        """What the build is, in words."""
        made = "prebuilt" if self.kind == "wheel" else "built here"
        return f"{LIBRARY} {self.version}, {made} for CUDA {dotted(self.cuda)}"

    def command(self, folder: Path) -> tuple[str, ...]:
        """The command that puts the build into ``folder``."""
        return (
            *(sys.executable, "-P", "-m", "pip", "install", "--target", str(folder)),
            *("--no-deps", "--no-cache-dir", "--disable-pip-version-check", "--no-input", "--no-color"),
            *self.options,
            *self.requirements,
        )

    def shown(self, folder: Path) -> str:
        """The command with its environment, as it is typed into a shell."""
        if os.name == "nt":
            values = "".join(f'set "{name}={value}" && ' for name, value in self.environment.items())
            return values + subprocess.list2cmdline(self.command(folder))
        values = "".join(f"{name}={shlex.quote(value)} " for name, value in self.environment.items())
        return values + shlex.join(self.command(folder))


def make(found: Found, version: str, ask: AskIndex, *, source: bool = False) -> Plan:
    """The plan for ``version`` of llama-cpp-python. ``source``: build it, even if there is a wheel.

    ``ask`` is asked for the wheel of the first of some CUDA versions that has one. Raises ``BackendUnavailable`` when
    nothing can be done, with what to install or update.
    """
    cards = usable_cards(found)
    cuda = _checked_driver(found)
    why_not = "A build from source was asked for." if source else _no_wheel(found, cards)
    if not why_not:
        versions = wheel_versions(cuda, [capability for _, capability in cards])
        try:
            wheel = ask(versions)
        except (Offline, DownloadFailed) as error:
            why_not = error.message
        else:
            if wheel is not None:
                return _from_wheel(wheel, version, cards)
            newest = dotted(versions[0]) if versions else dotted(cuda)
            why_not = f"There is no prebuilt wheel of {version} for this system and a CUDA version up to {newest}."
    return _from_source(found, version, cuda, cards, why_not)


def usable_cards(found: Found) -> list[tuple[str, Capability | None]]:
    """The cards that llama.cpp can use, with their compute capability. Raises ``BackendUnavailable`` for none."""
    if not found.cards:
        raise BackendUnavailable("There is no NVIDIA card that can be used here.", advice.no_card(found))
    cards = [(card.name, _numbers(card.compute_capability)) for card in found.cards]
    usable = [(name, capability) for name, capability in cards if capability is None or capability >= OLDEST_CARD]
    if not usable:
        names = ", ".join(name for name, _ in cards)
        message = f"{names} has compute capability {found.cards[0].compute_capability}, which is too old for llama.cpp."
        raise BackendUnavailable(message, f"It needs {dotted(OLDEST_CARD)} or newer. Models run on the CPU.")
    return usable


def wheel_versions(newest: Cuda, capabilities: list[Capability | None]) -> tuple[Cuda, ...]:
    """The CUDA versions, newest first, whose wheels have code for all cards and which the driver can run."""
    known = [capability for capability in capabilities if capability is not None]
    oldest_card, newest_card = min(known, default=TURING), max(known, default=TURING)
    versions = [(major, minor) for major in (13, 12) for minor in range(9, -1, -1)] + [OLDEST_CUDA]
    return tuple(
        cuda
        for cuda in versions
        if cuda <= newest
        and not (cuda >= (13, 0) and oldest_card < TURING)
        # Wheels for CUDA 11.8 hold code for cards up to 8.9 and none that a driver could translate for newer ones.
        and not (cuda < (12, 0) and newest_card >= (9, 0))
    )


def dotted(version: tuple[int, int]) -> str:
    """As in "12.4"."""
    return f"{version[0]}.{version[1]}"


def _numbers(capability: str) -> Capability | None:
    major, _, minor = capability.partition(".")
    return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else None


def _checked_driver(found: Found) -> Cuda:
    driver = found.cards[0].driver
    if found.cuda is None:
        raise BackendUnavailable(
            f"The NVIDIA driver ({driver}) does not say which CUDA it can run.", advice.update_driver(found)
        )
    if found.cuda < OLDEST_CUDA:
        message = f"The NVIDIA driver {driver} is too old: it runs CUDA up to {dotted(found.cuda)}, and"
        raise BackendUnavailable(f"{message} llama.cpp needs {dotted(OLDEST_CUDA)}.", advice.update_driver(found))
    return found.cuda


def _no_wheel(found: Found, cards: list[tuple[str, Capability | None]]) -> str:
    """Why no prebuilt wheel can run here, as a sentence."""
    if found.arch != "x86_64":
        return f"Wheels are prebuilt for x86-64 processors only, and this is {found.arch}."
    if found.features and (missing := [name for name in WHEEL_FEATURES if name not in found.features]):
        names = ", ".join(missing).upper()
        return f"Prebuilt wheels need {names}, which this processor does not have: they would stop at once."
    if old := [name for name, capability in cards if capability is not None and capability < WHEEL_CARD]:
        return f"Prebuilt wheels hold no code for {', '.join(old)}."
    return ""


def _from_wheel(wheel: Wheel, version: str, cards: list[tuple[str, Capability | None]]) -> Plan:
    newer = [name for name, capability in cards if capability is not None and capability >= (10, 0)]
    note = (
        f"The wheel holds no code for {', '.join(newer)}: the driver translates it, which takes minutes the first time "
        "(--source builds one that does)."
    )
    return Plan(
        kind="wheel",
        version=version,
        cuda=wheel.cuda,
        cards=tuple(name for name, _ in cards),
        requirements=(wheel.url, *_runtime(wheel.cuda)),
        options=("--only-binary", ":all:", "--progress-bar", "raw"),
        reasons=(note,) if newer else (),
        needs_bytes=_WHEEL_BYTES,
    )


def _runtime(cuda: Cuda) -> tuple[str, ...]:
    """NVIDIA's own libraries that a wheel needs beside it and leaves out, in the versions of its CUDA."""
    major, minor = cuda
    if major == 11:
        return ("nvidia-cuda-runtime-cu11==11.8.*", "nvidia-cublas-cu11==11.11.*")
    libraries = ("cuda-runtime", "cublas") if major == 12 else ("cuda-runtime", "cublas", "cuda-nvrtc")
    suffix = "-cu12" if major == 12 else ""
    return tuple(f"nvidia-{name}{suffix}>={major}.0,<{major}.{minor + 1}" for name in libraries)


def _from_source(
    found: Found, version: str, cuda: Cuda, cards: list[tuple[str, Capability | None]], why_not: str
) -> Plan:
    capabilities = [capability for _, capability in cards]
    bounds = _toolkit_bounds(cuda, capabilities)
    toolkit = _toolkit(found, cuda, bounds, why_not)
    compiler = _compiler(found, toolkit, why_not)
    kinds = sorted({capability for capability in capabilities if capability is not None})
    arguments = ["-DGGML_CUDA=on"]
    if None not in capabilities:
        arguments.append(f"-DCMAKE_CUDA_ARCHITECTURES={';'.join(f'{a}{b}-real' for a, b in kinds)}")
    if not toolkit.on_path:
        arguments.append(f"-DCMAKE_CUDA_COMPILER={_cmake_path(toolkit.compiler)}")
    if compiler is not found.compilers[0]:
        arguments.append(f"-DCMAKE_CUDA_HOST_COMPILER={_cmake_path(compiler.path)}")
    jobs = found.jobs or max(1, min(found.cores, found.memory_bytes // _JOB_BYTES))
    mine = [found.cmake_args] if found.cmake_args else []
    return Plan(
        kind="source",
        version=version,
        cuda=toolkit.version,
        cards=tuple(name for name, _ in cards),
        requirements=(f"{LIBRARY}=={version}",),
        options=("--no-binary", LIBRARY, "--verbose"),
        environment={
            "CMAKE_ARGS": " ".join([*mine, *map(_quoted, arguments)]),
            "CMAKE_BUILD_PARALLEL_LEVEL": str(jobs),
        },
        reasons=(why_not,),
        needs_bytes=_SOURCE_BYTES,
        minutes=_minutes(jobs, max(1, len(kinds))),
        toolkit=toolkit,
        jobs=jobs,
    )


def _minutes(jobs: int, kinds: int) -> tuple[int, int]:
    least, most = (round(minutes * (1 + 0.5 * (kinds - 1)) / jobs) for minutes in _CORE_MINUTES)
    return max(2, least), max(4, most)


def _toolkit_bounds(cuda: Cuda, capabilities: list[Capability | None]) -> tuple[Cuda, int]:
    """The oldest CUDA version and the newest major one that build for all cards and run with the driver."""
    known = [capability for capability in capabilities if capability is not None]
    needed = [next((cuda for oldest, cuda in _FIRST_CUDA if card >= oldest), OLDEST_CUDA) for card in known]
    newest = 12 if known and min(known) < TURING else cuda[0]
    return max([OLDEST_CUDA, *needed]), min(newest, cuda[0])


def _toolkit(found: Found, cuda: Cuda, bounds: tuple[Cuda, int], why_not: str) -> Toolkit:
    """The newest toolkit that will do: one that the driver knows before a newer one of the same major version."""
    oldest, newest_major = bounds
    fitting = [kit for kit in found.toolkits if kit.version >= oldest and kit.version[0] <= newest_major]
    complete = [kit for kit in fitting if kit.cublas]
    if complete:
        return max(complete, key=lambda kit: (kit.version <= cuda, kit.version))
    names = ", ".join(card.name for card in found.cards)
    if fitting:
        message = f"The CUDA toolkit {dotted(fitting[0].version)} ({fitting[0].compiler}) lacks cuBLAS. {why_not}"
        raise BackendUnavailable(message, advice.install_cublas(found, fitting[0].version))
    if found.toolkits:
        there = ", ".join(dotted(kit.version) for kit in found.toolkits)
        message = f"The CUDA toolkit here ({there}) cannot build for {names} and this driver. {why_not}"
    else:
        message = f"Building llama.cpp for {names} takes the CUDA toolkit, which is not here. {why_not}"
    raise BackendUnavailable(message, advice.install_toolkit(found, oldest, newest_major))


def _compiler(found: Found, toolkit: Toolkit, why_not: str) -> Compiler:
    """The first compiler that the toolkit takes."""
    if not found.compilers:
        raise BackendUnavailable(
            f"Building llama.cpp takes a C++ compiler, which is not here. {why_not}", advice.install_compiler(found)
        )
    newest = next((gcc for cuda, gcc in _NEWEST_GCC if toolkit.version >= cuda), None)
    if toolkit.version >= (13, 1):  # newer than what is known here
        newest = None
    for compiler in found.compilers:
        if newest is None or compiler.gcc is None or compiler.gcc <= newest:
            return compiler
    here = f"here is {found.compilers[0].gcc}. {why_not}"
    raise BackendUnavailable(
        f"The CUDA toolkit {dotted(toolkit.version)} takes GCC up to {newest}; {here}",
        advice.install_compiler(found, newest),
    )


def _quoted(argument: str) -> str:
    """As scikit-build-core takes ``CMAKE_ARGS`` apart: like a shell, for which ";" is nothing special."""
    return f'"{argument}"' if " " in argument else argument


def _cmake_path(path: str) -> str:
    return path.replace("\\", "/") if os.name == "nt" else path
