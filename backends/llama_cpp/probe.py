"""What the installed llama.cpp is and sees, as one JSON object on standard output. Run as a child: a broken driver may
end the process."""

import sys

import msgspec

from backends.llama_cpp.library import devices, lib, system_info, version
from backends.llama_cpp.threads import available_cores


def main() -> None:
    """Print the object."""
    lib.llama_backend_init()
    report = {
        "version": version(),
        "system_info": system_info(),
        "gpu_offload": bool(lib.llama_supports_gpu_offload()),
        "cores": available_cores(),
        "devices": devices(),
    }
    sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")


if __name__ == "__main__":
    main()
