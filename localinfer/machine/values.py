"""What a machine is: its processor, memory, devices, power, and what the installed builds can use of it."""

from typing import Literal

from localinfer.types import Value

Kind = Literal["cpu", "gpu", "integrated", "accelerator"]


class BuildDevice(Value, frozen=True):
    """A device an inference library can compute on. ``kind`` is CPU, GPU, integrated GPU, accelerator or other.

    Memory is 0 where the library's driver does not say; on Apple Silicon its total is what Metal recommends to hold.
    """

    name: str
    description: str
    kind: str
    free_bytes: int
    total_bytes: int


class Build(Value, frozen=True):
    """What the installed build of an inference library says of itself, on this machine.

    ``library`` is llama.cpp or mlx. ``system_info`` is the library's own line about what it uses of the processor;
    ``cores`` is how many it may use.
    """

    version: str
    system_info: str
    gpu_offload: bool
    cores: int
    devices: tuple[BuildDevice, ...]
    library: str = "llama.cpp"


class Device(Value, frozen=True):
    """Something to compute on. What is not known is None.

    ``id`` is as ``LoadOptions.device`` names it: cpu, CUDA0, Metal, Vulkan0. ``total_bytes`` is what models can have of
    its memory at most (Apple: the recommended working set; NVIDIA: without what the driver keeps), ``free_bytes`` what
    they can have now. ``bandwidth`` is bytes per second, and ``bandwidth_source`` says where it is from.
    ``shares_ram``: its memory is the machine's. ``usable``: an installed build can compute on it. ``gpu_cores`` and
    ``wired_limit_bytes`` (a limit that the person has set) are Apple's.
    """

    id: str
    name: str
    kind: Kind
    total_bytes: int | None = None
    free_bytes: int | None = None
    bandwidth: float | None = None
    bandwidth_source: Literal["", "driver", "table", "measured"] = ""
    shares_ram: bool = False
    compute_capability: str = ""
    driver: str = ""
    usable: bool = False
    gpu_cores: int | None = None
    wired_limit_bytes: int | None = None


class Cpu(Value, frozen=True):
    """The processor. ``cores`` are physical ones this process may use, ``features`` as in avx2, avx512f, neon."""

    name: str
    cores: int
    features: tuple[str, ...] = ()


class Power(Value, frozen=True):
    """Where the power comes from; None where the system does not tell. ``throttled`` has its reason in words."""

    source: Literal["mains", "battery"] | None = None
    battery_percent: float | None = None
    throttled: str = ""


class Problem(Value, frozen=True):
    """Something that keeps the machine from being used as it could, and what to do about it.

    ``command`` does it, where there is one. ``device`` is the id of the device it is about, "" for none in particular.
    """

    message: str
    hint: str
    command: str = ""
    device: str = ""


class Machine(Value, frozen=True):
    """One machine. ``devices`` are best first: the discrete GPU before an integrated one, the CPU last and always.

    ``ram_available_bytes`` can be used now without swapping, within the limits of this process's cgroup.
    """

    system: Literal["linux", "macos", "windows"]
    cpu: Cpu
    ram_total_bytes: int
    ram_available_bytes: int
    devices: tuple[Device, ...]
    wsl: bool = False
    builds: tuple[Build, ...] = ()
    power: Power = Power()
    problems: tuple[Problem, ...] = ()


class Choice(Value, frozen=True):
    """What to run models with, and why, in one sentence.

    ``backend`` and ``device`` are as in ``LoadOptions``. ``warning`` is there where the machine could do better;
    ``fix`` says then what to do, and ``command`` does it, where there is one.
    """

    backend: str
    device: str
    reason: str
    warning: str = ""
    fix: str = ""
    command: str = ""


class GpuPulse(Value, frozen=True):
    """What a graphics card is doing now; ``id`` is that of its ``Device``. What its driver does not tell is None.

    ``load`` is 0 to 1. The bytes are those of the card's memory; ``used_bytes`` counts every program's.
    """

    id: str
    name: str
    load: float | None = None
    temperature_c: float | None = None
    used_bytes: int | None = None
    total_bytes: int | None = None
    power_w: float | None = None


class Pulse(Value, frozen=True):
    """How a machine is doing at ``at_s`` (``time.monotonic``). What it does not tell is None.

    ``cpu_load`` is the share, 0 to 1, of the processor time this process may use that everybody together has used over
    the last second or so. The memory is what this process may use, within its control groups.
    """

    at_s: float
    ram_used_bytes: int
    ram_total_bytes: int
    cpu_load: float | None = None
    cpu_temperature_c: float | None = None
    gpus: tuple[GpuPulse, ...] = ()
    power: Power = Power()
