"""The graphics cards that Linux lists below /sys, whoever made them and whether or not their driver works.

AMD's driver tells of memory there; Intel's and the free one for NVIDIA tell that there is a card.
"""

import contextlib
import re

from localinfer.machine import bandwidth
from localinfer.machine.sources import Sources, plain
from localinfer.machine.values import Device, GpuPulse

NVIDIA, AMD, INTEL = "10DE", "1002", "8086"

_MAKERS = {NVIDIA: "NVIDIA", AMD: "AMD", INTEL: "Intel"}
_INTEL_ARC = {"56A0": "A770", "56A1": "A750", "56A2": "A580", "56A5": "A380", "E20B": "B580", "E20C": "B570"}
_AMD_NAMES = "/usr/share/libdrm/amdgpu.ids"
_INTEL_INTEGRATED_SLOT = "0000:00:02.0"


def cards(sources: Sources, available_bytes: int) -> tuple[Device, ...]:
    """Every graphics card below /sys. ``available_bytes`` is the machine's memory that is free."""
    return tuple(card for _, _, card in _listed(sources, available_bytes))


def amd_cards(sources: Sources) -> list[tuple[str, Device]]:
    """AMD's cards, each with its folder below /sys."""
    return [(folder, card) for folder, maker, card in _listed(sources, 0) if maker == AMD]


def amd_pulse(sources: Sources, folder: str, card: Device) -> GpuPulse:
    """What AMD's driver tells of ``card`` now: of its own memory, and of what it borrows where it shares RAM."""
    pools = ("vram", "gtt") if card.shares_ram else ("vram",)
    used, total = (
        sum(_number(sources, f"{folder}/mem_info_{pool}_{what}") for pool in pools) for what in ("used", "total")
    )
    monitor = next((f"{folder}/hwmon/{entry}" for entry in sources.entries(f"{folder}/hwmon")), "")
    busy = _told(sources, f"{folder}/gpu_busy_percent")
    millidegrees = _told(sources, f"{monitor}/temp1_input")
    microwatts = _told(sources, f"{monitor}/power1_average") or _told(sources, f"{monitor}/power1_input")
    return GpuPulse(
        id=card.id,
        name=card.name,
        load=None if busy is None else min(1.0, busy / 100),
        temperature_c=None if millidegrees is None else millidegrees / 1000,
        used_bytes=used if total else None,
        total_bytes=total or None,
        power_w=None if microwatts is None else microwatts / 1e6,
    )


def _listed(sources: Sources, available_bytes: int) -> list[tuple[str, str, Device]]:
    """The folder below /sys, the maker and the device of every card."""
    found: list[tuple[str, str, Device]] = []
    for entry in sources.entries("/sys/class/drm") if sources.system == "linux" else ():
        if re.fullmatch(r"card\d{1,3}", entry):
            folder = f"/sys/class/drm/{entry}/device"
            facts = dict(re.findall(r"(?m)^([A-Z_]+)=(.+)$", sources.read(f"{folder}/uevent")))
            maker, _, model = facts.get("PCI_ID", "").upper().partition(":")
            if maker in _MAKERS:
                card = _card(sources, folder, f"GPU{len(found)}", maker, model, facts, available_bytes)
                found.append((folder, maker, card))
    return found


def is_nvidia(card: Device) -> bool:
    """Whether it is an NVIDIA card, which the driver's own library tells more of."""
    return card.name.startswith("NVIDIA")


def _card(
    sources: Sources, folder: str, id: str, maker: str, model: str, facts: dict[str, str], available_bytes: int
) -> Device:
    slot = facts.get("PCI_SLOT_NAME", "")
    unnamed = plain(f"{_MAKERS[maker]} GPU ({maker.lower()}:{model.lower()})")
    if maker == AMD:
        return _amd(sources, folder, id, _amd_name(sources, folder, model) or unnamed, available_bytes)
    if maker == INTEL:
        arc = _INTEL_ARC.get(model)
        discrete = bool(arc) or slot not in ("", _INTEL_INTEGRATED_SLOT)
        name = f"Intel Arc {arc}" if arc else unnamed
        return _plain_card(id, name, discrete=discrete)
    told = re.search(r"(?m)^Model:\s*(.+)$", sources.read(f"/proc/driver/nvidia/gpus/{slot}/information"))
    name = plain(told[1]) if told else unnamed
    return _plain_card(id, name if name.startswith("NVIDIA") else f"NVIDIA {name}", discrete=True)


def _plain_card(id: str, name: str, *, discrete: bool) -> Device:
    speed = bandwidth.of_card(name, None)
    return Device(
        id=id,
        name=name,
        kind="gpu" if discrete else "integrated",
        shares_ram=not discrete,
        bandwidth=speed,
        bandwidth_source="table" if speed else "",
    )


def _amd(sources: Sources, folder: str, id: str, name: str, available_bytes: int) -> Device:
    """A card has memory of a known maker; a processor's GPU has a part of the machine's, and borrows more (GTT)."""
    total = _number(sources, f"{folder}/mem_info_vram_total")
    free = max(0, total - _number(sources, f"{folder}/mem_info_vram_used"))
    discrete = sources.read(f"{folder}/mem_info_vram_vendor").strip() not in ("", "unknown")
    if not discrete:
        borrowed = _number(sources, f"{folder}/mem_info_gtt_total")
        lent = max(0, borrowed - _number(sources, f"{folder}/mem_info_gtt_used"))
        total, free = total + borrowed, free + min(lent, available_bytes)
    speed = bandwidth.of_card(name, total)
    return Device(
        id=id,
        name=name,
        kind="gpu" if discrete else "integrated",
        total_bytes=total or None,
        free_bytes=free if total else None,
        bandwidth=speed,
        bandwidth_source="table" if speed else "",
        shares_ram=not discrete,
    )


def _amd_name(sources: Sources, folder: str, model: str) -> str:
    """The name that the graphics library's list has for this model and revision."""
    revision = sources.read(f"{folder}/revision").strip().removeprefix("0x").upper()
    for line in sources.read(_AMD_NAMES).splitlines():
        fields = [field.strip() for field in line.split(",", 2)]
        if len(fields) == 3 and fields[0].upper() == model and fields[1].upper().zfill(2) == revision.zfill(2):
            name = plain(fields[2])
            return name if name.startswith("AMD") else f"AMD {name}"
    return ""


def _number(sources: Sources, path: str) -> int:
    return _told(sources, path) or 0


def _told(sources: Sources, path: str) -> int | None:
    with contextlib.suppress(ValueError):
        return max(0, int(sources.read(path)))
    return None
