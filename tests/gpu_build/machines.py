"""Machines with NVIDIA cards, as their drivers, files and commands tell of them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace

import pynvml

from localinfer.machine.sources import Sources, System

GIB = 1 << 30
VERSION = "0.3.36"
RTX_3060 = ("NVIDIA GeForce RTX 3060", (8, 6))
RTX_4090 = ("NVIDIA GeForce RTX 4090", (8, 9))
RTX_4060 = ("NVIDIA GeForce RTX 4060 Laptop GPU", (8, 9))
RTX_5090 = ("NVIDIA GeForce RTX 5090", (12, 0))
GTX_1050 = ("NVIDIA GeForce GTX 1050 Ti", (6, 1))
GTX_970 = ("NVIDIA GeForce GTX 970", (5, 2))
GTX_680 = ("NVIDIA GeForce GTX 680", (3, 0))
GB10 = ("NVIDIA GB10", None)
MODERN = "sse4_2 avx avx2 f16c fma bmi2"
IVY_BRIDGE = "sse4_2 avx f16c"


class Nvml:
    """The driver's library: ``cards`` are (name, compute capability), ``cuda`` as in 12040; None: it cannot tell.

    ``broken``: the driver is installed and does not answer.
    """

    NVMLError = pynvml.NVMLError
    NVML_ERROR_LIBRARY_NOT_FOUND = pynvml.NVML_ERROR_LIBRARY_NOT_FOUND
    NVML_ERROR_DRIVER_NOT_LOADED = pynvml.NVML_ERROR_DRIVER_NOT_LOADED

    def __init__(
        self,
        *cards: tuple[str, tuple[int, int] | None],
        driver: str = "550.90.07",
        cuda: int | None = 12040,
        broken: bool = False,
    ) -> None:
        self._cards = cards
        self._answers: Mapping[str, Callable[..., object]] = {
            "nvmlInit": lambda: None,
            "nvmlShutdown": lambda: None,
            "nvmlDeviceGetCount": lambda: len(cards),
            "nvmlDeviceGetHandleByIndex": lambda index: cards[index],
            "nvmlSystemGetDriverVersion": lambda: driver,
            "nvmlSystemGetCudaDriverVersion_v2": lambda: self._told(cuda),
            "nvmlDeviceGetName": lambda card: card[0],
            "nvmlDeviceGetCudaComputeCapability": lambda card: self._told(card[1]),
            "nvmlDeviceGetMemoryInfo": lambda card: SimpleNamespace(total=12 * GIB, free=11 * GIB, used=GIB),
        }
        self._code = pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH if broken else 0
        if not cards and not broken:
            self._code = pynvml.NVML_ERROR_LIBRARY_NOT_FOUND

    @staticmethod
    def _told(value: object) -> object:
        if value is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return value

    def __getattr__(self, name: str) -> Callable[..., object]:
        if self._code and name == "nvmlInit":
            raise pynvml.NVMLError(self._code)
        if name not in self._answers:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        return self._answers[name]


class Recorded(Sources):
    """A machine whose files are below ``root``; ``install`` puts programs there."""

    def __init__(
        self,
        root: Path,
        nvml: Nvml,
        *,
        system: System = "linux",
        features: str = MODERN,
        memory_gib: int = 32,
        cores: int = 8,
        kernel: str = "6.8.0-45-generic",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(root)
        self.system = system
        self.nvml = nvml
        self._memory_bytes, self._cores = memory_gib * GIB, cores
        self._environment = {"PATH": str(root / "usr/bin"), **(environment or {})}
        self._write("proc/cpuinfo", f"model name\t: A processor\nflags\t\t: fpu {features}\n")
        self._write("proc/sys/kernel/osrelease", kernel + "\n")

    @property
    def environment(self) -> Mapping[str, str]:
        """Nothing of this machine's own."""
        return self._environment

    def memory(self) -> tuple[int, int]:
        """All of it is free."""
        return self._memory_bytes, self._memory_bytes

    def cores(self) -> tuple[int | None, int]:
        """Physical and logical."""
        return self._cores, self._cores

    def program(self, path: str, says: str = "") -> str:
        """Put a program that prints ``says`` at ``path``; its absolute path."""
        file = self._write(path, f"#!/bin/sh\ncat <<'END'\n{says}\nEND\n")
        file.chmod(0o755)
        return str(file)

    def toolkit(self, folder: str, version: str, *, cublas: bool = True) -> str:
        """Put a CUDA toolkit there; the path of its compiler."""
        if cublas:
            self._write(f"{folder}/include/cublas_v2.h", "")
        release = f"Cuda compilation tools, release {version}, V{version}.131"
        return self.program(f"{folder}/bin/nvcc", f"nvcc: NVIDIA (R) Cuda compiler driver\n{release}")

    def gcc(self, version: int, name: str = "c++") -> str:
        """Put GCC on the path under ``name``; its path."""
        return self.program(f"usr/bin/{name}", f"{name} (Ubuntu {version}.3.0-1ubuntu1~22.04) {version}.3.0")

    def _write(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file
