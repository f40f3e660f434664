"""A llama-cpp-python of a few lines, as a wheel and as a source: what a build of llama.cpp shows when it is loaded.

Its libraries are real ones, compiled here, and need a CUDA runtime that only the package beside them brings.
"""

import hashlib
import io
import shutil
import subprocess
import tarfile
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from localinfer.builds import required_version

Devices = Literal["cuda", "cpu"]
VERSION = required_version()
SYSTEM_INFO = "CPU : SSE3 = 1 | AVX = 1 | AVX2 = 1 | CUDA : ARCHS = 860 | "

_CORE = """
extern int cuda_runtime(void);
unsigned long ggml_backend_dev_count(void) { return COUNT + cuda_runtime(); }
void *ggml_backend_dev_get(unsigned long index) { return (void *)(COUNT + cuda_runtime() - index); }
"""
_BASE = """
const char *ggml_backend_dev_name(void *device) { return device == (void *)1 ? "CPU" : "CUDA0"; }
const char *ggml_backend_dev_description(void *device) {
    return device == (void *)1 ? "A processor" : "NVIDIA GeForce RTX 3060";
}
int ggml_backend_dev_type(void *device) { return device == (void *)1 ? 0 : 1; }
void ggml_backend_dev_memory(void *device, unsigned long *free, unsigned long *total) {
    *total = 12ul << 30, *free = 11ul << 30;
}
"""
_BINDINGS = """
import ctypes
import os
from pathlib import Path

_folder = Path(__file__).parent / "lib"
_core = ctypes.CDLL(str(_folder / "libggml.so"))
llama_log_callback = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)


def llama_log_set(callback, user):
    pass


def llama_backend_init():
    if {signal}:
        os.kill(os.getpid(), {signal})


def llama_supports_gpu_offload():
    return {offload}


def llama_print_system_info():
    return {info!r}.encode()


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return 0
"""
_BACKEND = """
import os, pathlib, subprocess, sys

def prepare_metadata_for_build_wheel(folder, config_settings=None):
    info = pathlib.Path(folder, "llama_cpp_python-{version}.dist-info")
    info.mkdir()
    info.joinpath("METADATA").write_text("Metadata-Version: 2.1\\nName: llama_cpp_python\\nVersion: {version}\\n")
    return info.name

def build_wheel(folder, config_settings=None, metadata_directory=None):
    here = pathlib.Path(__file__).parent
    here.joinpath("environment").write_text(os.environ["CMAKE_ARGS"])
    print("[1/2] Building CUDA object ggml-cuda.cu.o", flush=True)
    done = subprocess.run(["nvcc", "-c", "ggml-cuda.cu"])
    if done.returncode:
        print("ninja: build stopped: subcommand failed.")
        sys.exit(1)
    name = "{name}"
    pathlib.Path(folder, name).write_bytes(here.joinpath("built.whl").read_bytes())
    return name
"""


def compile_libraries(folder: Path) -> dict[str, bytes]:
    """The shared libraries of both kinds of build and the CUDA runtime they need, by name."""
    compiler = shutil.which("cc") or "cc"
    sources = {
        "libcudart.so.12": ("int cuda_runtime(void) { return 1; }", "-Wl,-soname,libcudart.so.12"),
        "libggml-base.so": (_BASE,),
        "cuda/libggml.so": (_CORE, "-DCOUNT=1", str(folder / "libcudart.so.12")),
        "cpu/libggml.so": (_CORE, "-DCOUNT=0", str(folder / "libcudart.so.12")),
    }
    for name, (text, *flags) in sources.items():
        output = folder / name
        output.parent.mkdir(exist_ok=True)
        code = folder / f"{output.name}.c"
        code.write_text(text)
        subprocess.run([compiler, "-shared", "-fPIC", "-o", output, code, *flags], check=True)
    return {name: (folder / name).read_bytes() for name in sources}


def llama_wheel(
    libraries: Mapping[str, bytes],
    devices: Devices = "cuda",
    *,
    version: str = VERSION,
    offload: bool = True,
    signal: int = 0,
    info: str = SYSTEM_INFO,
) -> bytes:
    """A wheel that sees ``devices`` and a CPU. ``signal`` ends the process when it is first used."""
    bindings = _BINDINGS.format(signal=signal, offload=offload, info=info)
    members = {
        "llama_cpp/__init__.py": b"raise ImportError('the high-level API is not wanted')\n",
        "llama_cpp/llama_cpp.py": bindings.encode(),
        "llama_cpp/lib/libggml.so": libraries[f"{devices}/libggml.so"],
        "llama_cpp/lib/libggml-base.so": libraries["libggml-base.so"],
    }
    return wheel("llama_cpp_python", version, members)


def runtime_wheels(libraries: Mapping[str, bytes]) -> dict[str, bytes]:
    """NVIDIA's packages for CUDA 12.4 by file name."""
    library = "nvidia/cuda_runtime/lib/libcudart.so.12"
    packages = {
        ("nvidia_cuda_runtime_cu12", "12.4.127"): {library: libraries["libcudart.so.12"]},
        ("nvidia_cuda_runtime_cu12", "12.5.82"): {library: b"of a newer CUDA"},
        ("nvidia_cublas_cu12", "12.4.5.8"): {"nvidia/cublas/data": bytes(1_000_000)},  # pip tells how far it is
    }
    return {file_name(name, version): wheel(name, version, files) for (name, version), files in packages.items()}


def llama_source(built: bytes, version: str = VERSION) -> bytes:
    """A source archive that is "compiled" by running nvcc, and then is the wheel ``built``."""
    name = file_name("llama_cpp_python", version)
    members = {
        "pyproject.toml": b'[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        "backend.py": _BACKEND.replace("{name}", name).replace("{version}", version).encode(),
        "built.whl": built,
        "PKG-INFO": f"Metadata-Version: 2.1\nName: llama_cpp_python\nVersion: {version}\n".encode(),
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, data in members.items():
            member = tarfile.TarInfo(f"llama_cpp_python-{version}/{path}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def file_name(package: str, version: str) -> str:
    """What the wheel of a package is called."""
    return f"{package}-{version}-py3-none-any.whl"


def wheel(package: str, version: str, members: Mapping[str, bytes]) -> bytes:
    """A wheel that holds ``members``, and that pip will install."""
    info = f"{package}-{version}.dist-info"
    files = {
        **members,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},sha256={_digest(data)},{len(data)}\n" for name, data in files.items())
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in {**files, f"{info}/RECORD": f"{record}{info}/RECORD,,\n".encode()}.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def _digest(data: bytes) -> str:
    return urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
