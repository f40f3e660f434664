"""Which CUDA versions the NVIDIA driver of this machine can run."""

import contextlib
from importlib import import_module
from typing import Any

Cuda = tuple[int, int]

# The newest CUDA of each branch of the driver, by the first number of the driver's version: release notes of the CUDA
# toolkit, "CUDA Toolkit and Corresponding Driver Versions".
_BRANCHES: tuple[tuple[int, Cuda], ...] = (
    *((590, (13, 1)), (580, (13, 0)), (575, (12, 9)), (570, (12, 8)), (565, (12, 7)), (560, (12, 6)), (555, (12, 5))),
    *((550, (12, 4)), (545, (12, 3)), (535, (12, 2)), (530, (12, 1)), (525, (12, 0)), (520, (11, 8)), (515, (11, 7))),
    *((510, (11, 6)), (495, (11, 5)), (470, (11, 4)), (465, (11, 3)), (460, (11, 2)), (455, (11, 1)), (450, (11, 0))),
    *((440, (10, 2)), (418, (10, 1)), (410, (10, 0)), (396, (9, 2)), (390, (9, 1))),
)


def newest_cuda(driver: str, nvml: Any = None) -> Cuda | None:
    """The newest CUDA version that the driver can run, as in (12, 4): by its own word, else by its version ``driver``.

    None when neither tells. ``nvml`` stands in for the ``pynvml`` module.
    """
    if nvml is None:
        nvml = import_module("pynvml")
    with contextlib.suppress(nvml.NVMLError, TypeError, ValueError):
        nvml.nvmlInit()
        try:
            told = int(nvml.nvmlSystemGetCudaDriverVersion_v2())
        finally:
            nvml.nvmlShutdown()
        if told >= 1000:
            return told // 1000, told % 1000 // 10
    branch, _, _ = driver.partition(".")
    if not branch.isdecimal():
        return None
    return next((cuda for first, cuda in _BRANCHES if int(branch) >= first), None)
