"""What this machine has that decides how llama.cpp can be had for its NVIDIA cards.

Asks through ``machine.sources``; what follows from the answers is the business of ``plan``.
"""

import os
import platform
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from localinfer.machine.cpu import available_cores, cpu
from localinfer.machine.cuda import Cuda, newest_cuda
from localinfer.machine.memory import available_memory_bytes
from localinfer.machine.nvidia import NvidiaGpu, nvidia_gpus
from localinfer.machine.sources import HERE, Sources, System
from localinfer.types import Value

Manager = Literal["apt", "dnf", "pacman", "zypper", "winget", ""]

_MANAGERS: tuple[Manager, ...] = ("apt", "dnf", "pacman", "zypper", "winget")
_VSWHERE = r"C:\Program Files (x86)\Microsoft Visual Studio\Installer\vswhere.exe"
_CUBLAS = ("include/cublas_v2.h", "targets/*/include/cublas_v2.h")


class Toolkit(Value, frozen=True):
    """One CUDA toolkit. ``compiler`` is its nvcc; ``cublas``: it has that library's header, which llama.cpp needs."""

    compiler: str
    version: Cuda
    on_path: bool = False
    cublas: bool = False


class Compiler(Value, frozen=True):
    """One C++ compiler. ``gcc`` is its major version if it is GCC."""

    path: str
    gcc: int | None = None


class Found(Value, frozen=True):
    """What there is. ``cuda`` is the newest version that the driver can run; None where that is not known.

    ``arch`` is as in x86_64, arm64. ``features`` are the processor's; none: not known. ``compilers`` has the default
    one first. ``manager`` installs packages here. ``cmake_args`` and ``jobs`` (compilers at once) are what the person
    has set in the environment.
    """

    system: System
    arch: str
    wsl: bool = False
    cards: tuple[NvidiaGpu, ...] = ()
    cuda: Cuda | None = None
    toolkits: tuple[Toolkit, ...] = ()
    compilers: tuple[Compiler, ...] = ()
    features: tuple[str, ...] = ()
    cores: int = 1
    memory_bytes: int = 0
    manager: Manager = ""
    cmake_args: str = ""
    jobs: int | None = None


def look(sources: Sources = HERE) -> Found:
    """Everything at once. Raises ``BackendUnavailable`` when an NVIDIA driver is installed and does not answer."""
    cards = nvidia_gpus(sources.nvml) if sources.system != "macos" else ()
    processor = cpu(sources)
    jobs = sources.environment.get("CMAKE_BUILD_PARALLEL_LEVEL", "")
    return Found(
        system=sources.system,
        arch=platform.machine().lower().replace("amd64", "x86_64").replace("aarch64", "arm64"),
        wsl="microsoft" in sources.read("/proc/sys/kernel/osrelease").lower(),
        cards=cards,
        cuda=newest_cuda(cards[0].driver, sources.nvml) if cards else None,
        toolkits=tuple(_toolkits(sources)) if cards else (),
        compilers=tuple(_compilers(sources)) if cards else (),
        features=processor.features,
        cores=available_cores(sources),
        memory_bytes=available_memory_bytes(sources),
        manager=next((name for name in _MANAGERS if _which(sources, name)), ""),
        cmake_args=sources.environment.get("CMAKE_ARGS", ""),
        jobs=int(jobs) if jobs.isdecimal() and int(jobs) else None,
    )


def _toolkits(sources: Sources) -> list[Toolkit]:
    """The toolkits, one of each version: the one on the path before one in a usual place."""
    on_path = _which(sources, "nvcc")
    found: dict[Cuda, Toolkit] = {}
    for compiler in ([Path(on_path)] if on_path else []) + list(_usual_places(sources)):
        if not compiler.is_file():
            continue
        release = re.search(r"release (\d+)\.(\d+)", sources.run(str(compiler), "--version"))
        if release is None:
            continue
        version = (int(release[1]), int(release[2]))
        kit = found.get(version) or Toolkit(compiler=str(compiler), version=version, on_path=str(compiler) == on_path)
        # What is on the path may be a script: the same toolkit in its own place tells more.
        found[version] = msgspec.structs.replace(kit, cublas=kit.cublas or _has_cublas(sources, compiler.resolve()))
    return list(found.values())


def _usual_places(sources: Sources) -> Iterator[Path]:
    name = "nvcc.exe" if sources.system == "windows" else "nvcc"
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if folder := sources.environment.get(variable):
            yield Path(folder) / "bin" / name
    folders = [f"/usr/local/{entry}" for entry in sources.entries("/usr/local") if entry.startswith("cuda")]
    for folder in (*folders, "/opt/cuda"):
        yield sources.root / folder.lstrip("/") / "bin" / name
    if sources.system == "windows":
        toolkits = Path(sources.environment.get("ProgramFiles", r"C:\Program Files"))
        yield from sorted(toolkits.glob("NVIDIA GPU Computing Toolkit/CUDA/v*/bin/nvcc.exe"), reverse=True)


def _has_cublas(sources: Sources, compiler: Path) -> bool:
    """Whether cuBLAS' header is where nvcc's own headers are; distributions put both where the system's are."""
    folders = [compiler.parent.parent, sources.root / "usr"]
    headers = [header for folder in folders for pattern in _CUBLAS for header in folder.glob(pattern)]
    return bool(headers)


def _compilers(sources: Sources) -> Iterator[Compiler]:
    if sources.system == "windows":
        asked = ("-latest", "-products", "*", "-property", "installationPath")
        needs = ("-requires", "Microsoft.VisualStudio.Component.VC.Tools.x86.x64")
        if visual_studio := sources.run(_VSWHERE, *asked, *needs).strip():
            yield Compiler(path=visual_studio)
        return
    names = [sources.environment.get("CXX", ""), "c++", "g++", *(f"g++-{version}" for version in range(20, 8, -1))]
    seen: set[str] = set()
    for name in filter(None, names):
        path = _which(sources, name)
        if path and path not in seen:
            seen.add(path)
            yield Compiler(path=path, gcc=_gcc(sources, path))


def _gcc(sources: Sources, path: str) -> int | None:
    first = sources.run(path, "--version").partition("\n")[0]
    version = re.search(r"\) (\d+)\.\d+", first)
    return int(version[1]) if version and "clang" not in first.lower() else None


def _which(sources: Sources, name: str) -> str | None:
    return shutil.which(name, path=sources.environment.get("PATH", os.defpath))
