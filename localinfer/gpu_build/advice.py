"""What to install or update, in the words of the system it is for. Knows package managers and no plans."""

from localinfer.builds import SETUP
from localinfer.gpu_build.found import Found
from localinfer.machine.cuda import Cuda

_TOOLKIT = {
    "apt": "sudo apt install nvidia-cuda-toolkit",
    "dnf": "sudo dnf install cuda-toolkit (from NVIDIA's repository)",
    "pacman": "sudo pacman -S cuda",
    "zypper": "sudo zypper install cuda-toolkit (from NVIDIA's repository)",
    "winget": "winget install Nvidia.CUDA",
}
_COMPILER = {
    "apt": "sudo apt install g++",
    "dnf": "sudo dnf install gcc-c++",
    "pacman": "sudo pacman -S gcc",
    "zypper": "sudo zypper install gcc-c++",
    "winget": "winget install Microsoft.VisualStudio.2022.BuildTools --override "
    '"--wait --add Microsoft.VisualStudio.Workload.VCTools --includeRecommended"',
}
_OLDER_COMPILER = {
    "apt": "sudo apt install g++-{0}",
    "dnf": "sudo dnf install gcc{0}-c++",
    "pacman": "sudo pacman -S gcc{0}",
    "zypper": "sudo zypper install gcc{0}-c++",
}
_CUBLAS = {
    "apt": "sudo apt install libcublas-dev-{0}-{1}",
    "dnf": "sudo dnf install libcublas-devel-{0}-{1}",
    "zypper": "sudo zypper install libcublas-devel-{0}-{1}",
}
_PAGE = "https://developer.nvidia.com/cuda-downloads"
_AGAIN = f"Then run “{SETUP}” again. Nothing was changed."


def no_card(found: Found) -> str:
    """What to do where no NVIDIA card is to be seen."""
    if found.system == "macos":
        return "Models run on the CPU of this Mac."
    return "If there is one, install its driver and restart the machine. Without one, models run on the CPU."


def update_driver(found: Found) -> str:
    """How to get a newer driver."""
    where = " in Windows, not in WSL," if found.wsl else ""
    return f"Update the driver{where} from https://www.nvidia.com/drivers and restart the machine. {_AGAIN}"


def install_toolkit(found: Found, oldest: Cuda, newest_major: int) -> str:
    """How to get a CUDA toolkit from version ``oldest`` on, up to major version ``newest_major``."""
    versions = f"{oldest[0]}.{oldest[1]} to {newest_major}.x"
    if found.wsl:
        how = f"from {_PAGE}: choose WSL-Ubuntu, and the package cuda-toolkit (it brings no driver)"
    elif command := _TOOLKIT.get(found.manager):
        how = f"{command}, or from {_PAGE} if that is another version"
    else:
        how = f"from {_PAGE}"
    return f"Install the CUDA toolkit {versions}: {how}. {_AGAIN}"


def install_cublas(found: Found, toolkit: Cuda) -> str:
    """How to complete a toolkit."""
    command = _CUBLAS.get(found.manager, "").format(*toolkit)
    return f"Install the rest of the toolkit: {command or f'from {_PAGE}'}. {_AGAIN}"


def install_compiler(found: Found, newest_gcc: int | None = None) -> str:
    """How to get a C++ compiler, GCC up to ``newest_gcc`` if the newest is too new."""
    commands = _COMPILER if newest_gcc is None else _OLDER_COMPILER
    command = commands.get(found.manager, "").format(newest_gcc)
    name = "a C++ compiler" if newest_gcc is None else f"GCC {newest_gcc} beside it"
    return f"Install {name}{f': {command}' if command else ''}. {_AGAIN}"
