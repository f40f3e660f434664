"""What this machine is: devices, memory, bandwidth, power."""

from localinfer.machine.memory import available_memory_bytes
from localinfer.machine.nvidia import NvidiaGpu, nvidia_gpus
from localinfer.machine.values import Build, BuildDevice, Cpu, Device, Machine, Power, Problem

__all__ = [
    "Build",
    "BuildDevice",
    "Cpu",
    "Device",
    "Machine",
    "NvidiaGpu",
    "Power",
    "Problem",
    "available_memory_bytes",
    "nvidia_gpus",
]
