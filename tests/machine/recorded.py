"""Machines from ``tests/data/machines``: sources that answer as recorded, and a driver's library that does."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

import msgspec
import pynvml

from localinfer.machine import Build, Sources

FOLDER = Path(__file__).parents[1] / "data" / "machines"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
MIB = 2**20


class Nvml:
    """The driver's library with ``cards``; each call named in ``failing`` answers with that NVML error instead.

    A field of a card that is None is not supported by it.
    """

    NVMLError = pynvml.NVMLError
    NVML_ERROR_LIBRARY_NOT_FOUND = pynvml.NVML_ERROR_LIBRARY_NOT_FOUND
    NVML_ERROR_DRIVER_NOT_LOADED = pynvml.NVML_ERROR_DRIVER_NOT_LOADED
    NVML_ERROR_NOT_SUPPORTED = pynvml.NVML_ERROR_NOT_SUPPORTED
    NVML_ERROR_FUNCTION_NOT_FOUND = pynvml.NVML_ERROR_FUNCTION_NOT_FOUND
    NVML_CLOCK_MEM = pynvml.NVML_CLOCK_MEM
    NVML_TEMPERATURE_GPU = pynvml.NVML_TEMPERATURE_GPU
    nvmlMemory_v2 = pynvml.nvmlMemory_v2  # noqa: N815  the library's own names

    def __init__(
        self, *cards: SimpleNamespace, driver: str | bytes = "550.90.07", failing: Mapping[str, int] | None = None
    ):
        self.cards = cards
        self.driver = driver
        self.failing = failing or {}
        self.open = 0
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., object]:
        def call(*arguments: object, version: int | None = None) -> object:
            asked = f"{name}_v2" if version else name
            self.calls.append(asked)
            if asked in self.failing:
                raise pynvml.NVMLError(self.failing[asked])
            return getattr(self, f"_{asked.removeprefix('nvml')}")(*arguments)

        return call

    def _Init(self) -> None:  # noqa: N802  the library's own names
        self.open += 1

    def _Shutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def _SystemGetDriverVersion(self) -> str | bytes:  # noqa: N802
        return self.driver

    def _DeviceGetCount(self) -> int:  # noqa: N802
        return len(self.cards)

    def _DeviceGetHandleByIndex(self, index: int) -> SimpleNamespace:  # noqa: N802
        return self.cards[index]

    def _DeviceGetMemoryInfo(self, card: SimpleNamespace | None) -> SimpleNamespace:  # noqa: N802
        total, reserved, used = self._memory(card)
        return SimpleNamespace(total=total, used=used + reserved, free=total - reserved - used)

    def _DeviceGetMemoryInfo_v2(self, card: SimpleNamespace | None) -> SimpleNamespace:  # noqa: N802
        total, reserved, used = self._memory(card)
        return SimpleNamespace(total=total, reserved=reserved, used=used, free=total - reserved - used)

    def _DeviceGetName(self, card: SimpleNamespace | None) -> object:  # noqa: N802
        return _told(card, "name")

    def _DeviceGetCudaComputeCapability(self, card: SimpleNamespace | None) -> object:  # noqa: N802
        return _told(card, "capability")

    def _DeviceGetMaxClockInfo(self, card: SimpleNamespace | None, kind: int) -> object:  # noqa: N802
        assert kind == self.NVML_CLOCK_MEM
        return _told(card, "memory_clock_mhz")

    def _DeviceGetMemoryBusWidth(self, card: SimpleNamespace | None) -> object:  # noqa: N802
        return _told(card, "bus_width")

    def _DeviceGetCurrentClocksThrottleReasons(self, card: SimpleNamespace | None) -> object:  # noqa: N802
        return _told(card, "clock_reasons")

    def _DeviceGetTemperature(self, card: SimpleNamespace | None, sensor: int) -> object:  # noqa: N802
        assert sensor == self.NVML_TEMPERATURE_GPU
        return _told(card, "temperature")

    def _DeviceGetUtilizationRates(self, card: SimpleNamespace | None) -> object:  # noqa: N802
        return SimpleNamespace(gpu=_told(card, "busy_percent"))

    def _DeviceGetPowerUsage(self, card: SimpleNamespace | None) -> object:  # noqa: N802
        return _told(card, "milliwatts")

    def _memory(self, card: SimpleNamespace | None) -> tuple[int, int, int]:
        sizes = (_told(card, field) for field in ("total_mib", "reserved_mib", "used_mib"))
        total, reserved, used = (int(size) * MIB for size in sizes)
        return total, reserved, used


def _told(card: SimpleNamespace | None, field: str) -> Any:
    if card is None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
    if getattr(card, field, None) is None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
    return getattr(card, field)


class Recorded(Sources):
    """One of the recorded machines. ``files``, ``commands`` and ``environment`` may be changed."""

    def __init__(self, name: str) -> None:
        super().__init__(FOLDER / "no files of this machine")
        record = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
        self.system = record["system"]
        self.files: dict[str, str] = {path: "\n".join(lines) for path, lines in record["files"].items()}
        self.commands: dict[str, str] = {words: "\n".join(lines) for words, lines in record["commands"].items()}
        self._environment: dict[str, str] = record["environment"]
        self._cores: list[int] = record["cores"]
        self._memory: list[int] = record["memory"]
        self._battery: list[Any] | None = record["battery"]
        self.seconds = (0.0, 0.0)
        driver = record["nvml"]
        cards = [SimpleNamespace(**card) for card in driver.get("cards", [])]
        self.nvml = Nvml(*cards, driver=driver.get("driver", ""), failing=driver.get("failing"))
        self.builds: dict[str, Build] = msgspec.convert(record["builds"], dict[str, Build])

    @property
    def environment(self) -> dict[str, str]:
        return self._environment

    def read(self, path: str) -> str:
        return self.files.get(path, "")

    def entries(self, path: str) -> list[str]:
        inside = (PurePosixPath(file).relative_to(path).parts[0] for file in self.files if file.startswith(f"{path}/"))
        return sorted(set(inside))

    def run(self, *command: str) -> str:
        return self.commands.get(" ".join(command), "")

    def memory(self) -> tuple[int, int]:
        total, available = self._memory
        return total, available

    def cores(self) -> tuple[int | None, int]:
        physical, usable = self._cores
        return physical, usable

    def processor_seconds(self) -> tuple[float, float]:
        return self.seconds

    def battery(self) -> tuple[float | None, bool | None] | None:
        return (self._battery[0], self._battery[1]) if self._battery else None

    def processor_feature(self, number: int) -> bool:
        return False
