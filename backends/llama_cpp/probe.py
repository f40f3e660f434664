"""What the installed llama.cpp is and sees, as one frame. Run as a child: a broken driver may end the process."""

from backends.llama_cpp.library import devices, lib, system_info, version
from localinfer.machine import Build, BuildDevice, available_cores
from localinfer.process import claim_stdio


def build() -> Build:
    """The ``Build`` that this process has loaded."""
    lib.llama_backend_init()
    return Build(
        version=version(),
        system_info=system_info(),
        gpu_offload=bool(lib.llama_supports_gpu_offload()),
        cores=available_cores(),
        devices=tuple(
            BuildDevice(
                name=device.name,
                description=device.description,
                kind=device.kind,
                free_bytes=device.free_bytes,
                total_bytes=device.total_bytes,
            )
            for device in devices()
        ),
    )


def main() -> None:
    """Send it."""
    claim_stdio().send(build())


if __name__ == "__main__":
    main()
