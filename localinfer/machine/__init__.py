"""What this machine is: devices, memory, bandwidth, power, and what to run models with."""

from localinfer.machine.choice import choose, way
from localinfer.machine.cpu import available_cores, usable_cores
from localinfer.machine.devices import short
from localinfer.machine.look import look
from localinfer.machine.memory import available_memory_bytes, total_memory_bytes
from localinfer.machine.nvidia import NvidiaGpu, nvidia_gpus
from localinfer.machine.pulse import PulseReader
from localinfer.machine.sources import Sources, usable_cpus
from localinfer.machine.values import (
    Build,
    BuildDevice,
    Choice,
    Cpu,
    Device,
    GpuPulse,
    Machine,
    Power,
    Problem,
    Pulse,
)

__all__ = [
    "Build",
    "BuildDevice",
    "Choice",
    "Cpu",
    "Device",
    "GpuPulse",
    "Machine",
    "NvidiaGpu",
    "Power",
    "Problem",
    "Pulse",
    "PulseReader",
    "Sources",
    "available_cores",
    "available_memory_bytes",
    "choose",
    "look",
    "nvidia_gpus",
    "short",
    "total_memory_bytes",
    "usable_cores",
    "usable_cpus",
    "way",
]
