"""What a new machine is, and what to begin with on it: the facts and the offer, in words.

``look`` asks the machine, in a thread; the rest are values and pure functions.
"""

from typing import TYPE_CHECKING

from localinfer.types import Value

if TYPE_CHECKING:
    from localinfer.advice import Advice
    from localinfer.machine import Device, Machine
    from localinfer.models.catalog import ModelSpec, Quantization
    from localinfer.models.recommend import Pick

MARGIN_BYTES = 64_000_000  # left on the disk
COPIES = 2  # what comes from the package index is unpacked beside itself


class Model(Value, frozen=True):
    """A model to begin with. ``size`` is that of its download, in words; ``lacks`` says that the disk has no room;
    ``resumes``: a download that was stopped goes on from there, which one from the package index does not."""

    reference: str
    title: str
    size: str
    size_bytes: int
    speed: str = ""
    about: str = ""
    reason: str = ""
    lacks: str = ""
    resumes: bool = True

    @property
    def sized(self) -> str:
        """Its name with the size of the download."""
        return f"{self.title} ({self.size})"


class Trouble(Value, frozen=True):
    """Something that keeps the machine from doing better, what to do, and the command for it, if there is one."""

    message: str
    fix: str = ""
    command: str = ""


class Offer(Value, frozen=True):
    """``facts`` are what the machine is, each with its name. ``best`` is None where no better model than ``starter``
    runs."""

    facts: tuple[tuple[str, str], ...]
    troubles: tuple[Trouble, ...]
    starter: Model
    best: Model | None
    starter_here: bool = False


def look(advice: "Advice") -> Offer:
    """Look at the machine and choose. May take two seconds. Raises ``LocalInferError``."""
    from localinfer import settings
    from localinfer.downloads import free_disk_bytes
    from localinfer.models.catalog import catalog

    starter = catalog().starter
    pick = advice.recommended()
    choice = advice.choice
    troubles = [
        Trouble(message=problem.message, fix=problem.hint, command=problem.command)
        for problem in advice.machine.problems
    ]
    if choice.warning and not troubles:
        troubles.append(Trouble(message=choice.warning, fix=choice.fix, command=choice.command))
    return Offer(
        facts=facts(advice.machine, choice.reason.partition(":")[0] if troubles else choice.reason),
        troubles=tuple(troubles),
        starter=_starter(advice, starter, free_disk_bytes(settings.models_dir())),
        best=_best(pick, free_disk_bytes()) if pick is not None and pick.spec.rank > starter.rank else None,
        starter_here=any(entry.spec == starter for entry in advice.here()),
    )


def facts(machine: "Machine", reason: str) -> tuple[tuple[str, str], ...]:
    """What the machine is."""
    from localinfer.machine import short
    from localinfer.models.explain import gib

    cores = f"{machine.cpu.cores} core{'' if machine.cpu.cores == 1 else 's'}"
    gpus = [_gpu(device, short(device.name)) for device in machine.devices if device.kind != "cpu"]
    return (
        ("Processor", f"{machine.cpu.name} · {cores}" if machine.cpu.name else cores),
        ("Memory", f"{gib(machine.ram_total_bytes)}, {gib(machine.ram_available_bytes)} of it free"),
        ("Graphics", "; ".join(gpus) if gpus else "no GPU"),
        ("Models use", f"the {_told_once(reason, gpus)}" if reason.startswith("CPU") else reason),
    )


def _told_once(reason: str, gpus: list[str]) -> str:
    """Where there is no GPU, that has been said."""
    return reason if gpus else reason.partition(":")[0]


def _gpu(device: "Device", name: str) -> str:
    from localinfer.models.explain import gib

    parts = [name]
    if device.shares_ram:
        parts.append("shares the memory")
    elif device.total_bytes:
        parts.append(gib(device.total_bytes))
    if not device.usable:
        parts.append("not used")
    return " · ".join(parts)


def _starter(advice: "Advice", spec: "ModelSpec", free: int | None) -> Model:
    from localinfer.advice import of_spec
    from localinfer.models.explain import download_size, speed
    from localinfer.models.plan import Ask

    variant: Quantization = spec.quantizations[0]
    (planned,) = advice.planned((of_spec(spec, variant),), Ask())
    tps = planned.plan.decode_tps if planned.plan else None
    return Model(
        reference=spec.id,
        title=spec.name,
        size=download_size(variant.download_bytes),
        size_bytes=variant.download_bytes,
        speed=f"{speed(tps)} tok/s" if tps else "",
        lacks=_lacks(spec.name, COPIES * variant.size_bytes, free),
        resumes=not getattr(variant, "pypi", ()),
    )


def _best(pick: "Pick", free: int | None) -> Model:
    from localinfer.advice import of_spec
    from localinfer.models.explain import download_size, speed
    from tui.widgets.models.lines import reference

    spec, variant, tps = pick.spec, pick.variant, pick.plan.decode_tps
    about = [
        variant.name,
        f"{pick.plan.context:,} tokens of context",
        *([", ".join(spec.capabilities)] if spec.capabilities else []),
    ]
    return Model(
        reference=reference(of_spec(spec, variant)),
        title=spec.name,
        size=download_size(variant.download_bytes, approximate=variant.approximate),
        size_bytes=variant.download_bytes,
        speed=f"{speed(tps)} tok/s" if tps else "",
        about=" · ".join(about),
        reason=pick.plan.sentence,
        lacks=_lacks(spec.name, variant.size_bytes, free),
        resumes=not getattr(variant, "pypi", ()),
    )


def _lacks(name: str, needed: int, free: int | None) -> str:
    from localinfer.models.explain import download_size

    if free is None or free >= needed + MARGIN_BYTES:
        return ""
    return f"{name} needs {download_size(needed + MARGIN_BYTES)} of disk, and {download_size(free)} are free."
