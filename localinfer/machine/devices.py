"""The devices of a machine: what its drivers report, merged with what the installed builds can compute on.

A card that no build can use stays in the list, with a problem that says why and what to do.
"""

import re
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from localinfer.machine import bandwidth
from localinfer.machine.nvidia import UNKNOWN, NvidiaGpu
from localinfer.machine.sources import plain
from localinfer.machine.values import Build, BuildDevice, Cpu, Device, Kind, Problem

SETUP_GPU = "localinfer setup-gpu"

# llama.cpp's words; accelerators without memory (BLAS) help the processor and are no place for a model.
_KINDS: dict[str, Kind] = {"GPU": "gpu", "integrated GPU": "integrated", "accelerator": "accelerator"}
_BEST_FIRST: tuple[Kind, ...] = ("gpu", "integrated", "accelerator", "cpu")
# Ways to one and the same card, the fastest first.
_WAYS = ("CUDA", "ROCm", "MTL", "SYCL", "Vulkan")
_MAKERS = {
    "nvidia": re.compile(r"nvidia|geforce|quadro|tesla|\brtx\b|\bgtx\b", re.IGNORECASE),
    "amd": re.compile(r"\bamd\b|radeon", re.IGNORECASE),
    "intel": re.compile(r"intel|\barc\b", re.IGNORECASE),
    "apple": re.compile(r"apple", re.IGNORECASE),
}
# The processor in disguise, and a card behind a translation that costs more than it gives.
_NOT_CARDS = re.compile(r"llvmpipe|swiftshader|softpipe|direct3d12", re.IGNORECASE)
_UNNAMED = re.compile(r"^\w+ GPU (\d+$|\([0-9a-f]{4}:)")

_VULKAN = (
    "Build llama.cpp with Vulkan for it: set CMAKE_ARGS to “-DGGML_VULKAN=on” and run “python -m pip install "
    "--force-reinstall --no-deps --no-cache-dir --no-binary llama-cpp-python llama-cpp-python”."
)
_OTHER_BUILDS = {"apple": "Install llama.cpp again: on a Mac it is built for its GPU."}
_LOST = (
    "If the machine has slept since it was started, restart it, or on Linux run “sudo rmmod nvidia_uvm && sudo "
    "modprobe nvidia_uvm”. If not, the driver may be older than the CUDA version of this build: update it, and restart."
)


def short(name: str) -> str:
    """The name of a card as people say it."""
    return name if _UNNAMED.match(name) else re.sub(r"^(NVIDIA |AMD )?(GeForce )?(?=\w)", "", name)


def nvidia_device(index: int, card: NvidiaGpu) -> Device:
    """What the NVIDIA driver tells of one card, as a device that no build is known to use."""
    total = card.total_bytes
    if total is not None:
        total -= card.reserved_bytes or 0
    speed = card.bandwidth or bandwidth.of_card(card.name, card.total_bytes)
    return Device(
        id=f"CUDA{index}",
        name=card.name,
        kind="gpu",
        total_bytes=total,
        free_bytes=card.free_bytes,
        bandwidth=speed,
        bandwidth_source=("driver" if card.bandwidth else "table") if speed else "",
        shares_ram=total is None,
        compute_capability="" if card.compute_capability == UNKNOWN else card.compute_capability,
        driver="" if card.driver == UNKNOWN else card.driver,
    )


def cpu_device(cpu: Cpu, total_bytes: int, free_bytes: int, speed: float | None, builds: Iterable[Build]) -> Device:
    """The processor as a device; ``speed`` is the measured bandwidth of its memory."""
    return Device(
        id="cpu",
        name=cpu.name,
        kind="cpu",
        total_bytes=total_bytes,
        free_bytes=free_bytes,
        bandwidth=speed,
        bandwidth_source="measured" if speed else "",
        shares_ram=True,
        usable=any(device.kind == "CPU" for build in builds for device in build.devices),
    )


def merge(cards: Iterable[Device], builds: Sequence[Build]) -> tuple[Device, ...]:
    """``cards`` as the drivers report them and what ``builds`` can use, each device once, best first."""
    waiting, found = list(cards), list[Device]()
    for build, offer in sorted(_offers(builds), key=lambda pair: _way(pair[1])):
        card = _match(offer, waiting)
        if card is not None:
            waiting.remove(card)
            found.append(_used(card, build, offer))
        elif _match(offer, found) is None:  # else it is another way to a card that is found already
            found.append(_used(_unreported(offer), build, offer))
    return tuple(sorted(_distinct(found, waiting), key=_order))


def problem(device: Device, builds: Sequence[Build], hidden: str | None) -> Problem:
    """Why no build can use ``device``, and what to do. ``hidden`` is CUDA_VISIBLE_DEVICES, if it is set."""
    build = next((build for build in builds if build.library == "llama.cpp"), builds[0])
    this, name = f"This build of {build.library}", f"the {short(device.name)}"
    made_by, cannot = maker(device.name), f"{this} cannot use {name}."
    if made_by != "nvidia":
        return Problem(message=cannot, hint=_OTHER_BUILDS.get(made_by, _VULKAN), device=device.id)
    old = _too_old(device, build)
    if old or not _for_cuda(build):
        no_code = f"{this} has no code for {name} (compute capability {device.compute_capability})."
        return Problem(
            message=no_code if old else cannot,
            hint=f"Run “{SETUP_GPU}”, which installs a build for it.",
            command=SETUP_GPU,
            device=device.id,
        )
    message = f"{this} can use {name}, but does not find it."
    hint = _LOST if hidden is None else f"CUDA_VISIBLE_DEVICES is “{plain(hidden)}”, which hides cards. Unset it."
    return Problem(message=message, hint=hint, device=device.id)


def maker(name: str) -> str:
    """Who made the card of that name: nvidia, amd, intel, apple, or "" where the name does not say."""
    return next((maker for maker, words in _MAKERS.items() if words.search(name)), "")


def _offers(builds: Iterable[Build]) -> list[tuple[Build, BuildDevice]]:
    return [
        (build, device)
        for build in builds
        for device in build.devices
        if device.kind in _KINDS
        and (device.kind != "accelerator" or device.total_bytes)
        and not _NOT_CARDS.search(device.description)
    ]


def _way(offer: BuildDevice) -> int:
    return next((rank for rank, way in enumerate(_WAYS) if offer.name.startswith(way)), len(_WAYS))


def _match(offer: BuildDevice, cards: Iterable[Device]) -> Device | None:
    """The card that ``offer`` most likely is: of the same maker and name, then of the same kind and free memory."""

    def unlike(card: Device) -> tuple[bool, int]:
        return card.kind != _KINDS[offer.kind], abs((card.free_bytes or 0) - offer.free_bytes)

    return min((card for card in cards if _may_be(offer, card)), key=unlike, default=None)


def _may_be(offer: BuildDevice, card: Device) -> bool:
    made_by = maker(offer.description)
    if made_by != maker(card.name):
        return False
    if made_by != "nvidia" or _UNNAMED.match(card.name):  # other drivers' names are not those that builds tell
        return bool(made_by) or card.name == plain(offer.description)
    return bandwidth.bare(card.name) == bandwidth.bare(offer.description)


def _used(card: Device, build: Build, offer: BuildDevice) -> Device:
    """``card`` as ``build`` can use it. What the driver says of its memory counts, where it says anything."""
    return replace(
        card,
        id=plain(offer.name) if build.library == "llama.cpp" else card.id,
        name=plain(offer.description) if _UNNAMED.match(card.name) else card.name,
        kind=_KINDS[offer.kind],
        total_bytes=offer.total_bytes or None if card.total_bytes is None else card.total_bytes,
        free_bytes=offer.free_bytes if card.free_bytes is None and offer.total_bytes else card.free_bytes,
        shares_ram=card.shares_ram or offer.kind == "integrated GPU",
        usable=not _too_old(card, build),
    )


def _unreported(offer: BuildDevice) -> Device:
    """A device that a build knows and no driver told of."""
    name = plain(offer.description) or plain(offer.name)
    speed = bandwidth.of_card(name, offer.total_bytes)
    return Device(
        id=plain(offer.name),
        name=name,
        kind=_KINDS[offer.kind],
        bandwidth=speed,
        bandwidth_source="table" if speed else "",
    )


def _for_cuda(build: Build) -> bool:
    """Whether ``build`` was made for NVIDIA cards; one for other GPUs shows those."""
    others = any(device.kind in ("GPU", "integrated GPU") for device in build.devices)
    return build.gpu_offload and ("CUDA" in build.system_info or not others)


def _too_old(card: Device, build: Build) -> bool:
    """Whether ``build`` names the generations of cards that it has code for, and all of them are newer than this."""
    listed = re.search(r"\bARCHS = ([\d,]+)", build.system_info)
    major, _, minor = card.compute_capability.partition(".")
    if not listed or not (major.isdecimal() and minor.isdecimal()):
        return False
    generations = [int(each) for each in listed[1].split(",") if each]
    return bool(generations) and min(generations) > int(major) * 100 + int(minor) * 10


def _distinct(found: list[Device], waiting: list[Device]) -> list[Device]:
    """All of them, the ids of unusable ones changed where a usable one has the same."""
    taken = {device.id.lower() for device in found}
    for card in waiting:
        id, number = card.id, 0
        while id.lower() in taken:
            id, number = f"GPU{number}", number + 1
        taken.add(id.lower())
        found = [*found, replace(card, id=id)]
    return found


def _order(device: Device) -> tuple[int, bool, int]:
    return _BEST_FIRST.index(device.kind), not device.usable, -(device.total_bytes or 0)
