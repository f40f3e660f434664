"""Which backend and which device to run models with, always with the reason.

A choice is made from what the machine is; whether a given model fits there is not its business.
"""

import re

from localinfer.errors import BackendUnavailable, BadRequest
from localinfer.machine.devices import maker, short
from localinfer.machine.values import Choice, Device, Machine, Problem

LLAMA_CPP, MLX = "llama.cpp", "mlx"

_WAYS = {"MTL": "Metal", "Metal": "Metal"}


def choose(machine: Machine, *, device: str | None = None, require_gpu: bool = False) -> Choice:
    """What to run with: ``device`` if it is given, else the best that an installed build can use.

    Raises ``BadRequest`` for a ``device`` that is not there, ``BackendUnavailable`` for one that cannot be used, and
    with ``require_gpu`` where it would be the CPU.
    """
    if device is not None:
        found = _named(machine, device)
        if found.kind == "cpu" and require_gpu:
            raise BadRequest("The CPU is asked for and a GPU required.", "Leave out one of the two.", param="device")
        if found.kind == "cpu":
            return Choice(backend=LLAMA_CPP, device=found.id, reason="llama.cpp on the CPU, as asked for.")
        if not found.usable:
            raise _unusable(f"The {short(found.name)} cannot be used.", _problem(machine, found))
        return _on(machine, found, asked=True)
    usable = [found for found in machine.devices if found.usable and found.kind != "cpu"]
    if usable:
        return _on(machine, usable[0], asked=False)
    problem = next(iter(machine.problems), None)
    if require_gpu:
        raise _unusable("There is no GPU that can be used.", problem)
    return _fallback(machine, problem)


def _named(machine: Machine, name: str) -> Device:
    """The device of that id; Metal and MTL0 are the same."""
    for found in machine.devices:
        if name.lower() in (found.id.lower(), way(found).lower() if maker(found.name) == "apple" else None):
            return found
    ids = ", ".join(found.id for found in reversed(machine.devices))
    raise BadRequest(f"There is no device “{name}”.", f"Choose one of: {ids}.", param="device")


def way(device: Device) -> str:
    """The programming interface by which a device is used: CUDA, Metal, Vulkan, ROCm."""
    letters = re.sub(r"\d+$", "", device.id)
    return _WAYS.get(letters, letters)


def _on(machine: Machine, device: Device, *, asked: bool) -> Choice:
    name = short(device.name)
    if any(build.library == MLX for build in machine.builds) and maker(device.name) == "apple":
        return Choice(backend=MLX, device=device.id, reason=f"MLX on the {name}: the engine made for Apple Silicon.")
    what = f"llama.cpp with {way(device)} on the {name}"
    if asked:
        return Choice(backend=LLAMA_CPP, device=device.id, reason=f"{what}, as asked for.")
    better = _better(machine, device)
    problem = _problem(machine, better) if better else None
    return Choice(
        backend=LLAMA_CPP,
        device=device.id,
        reason=f"{what}{_because(machine, device, better)}.",
        warning=f"Models run on the {name}. {problem.message}" if problem else "",
        fix=problem.hint if problem else "",
        command=problem.command if problem else "",
    )


def _better(machine: Machine, device: Device) -> Device | None:
    """The device that would be chosen if it could be used."""
    first = machine.devices[0]
    return first if first.kind != device.kind else None


def _because(machine: Machine, device: Device, better: Device | None) -> str:
    """Why this GPU, if there are others."""
    if better:
        return f": the {short(better.name)} cannot be used"
    if maker(device.name) == "apple":
        return ": there is no build of MLX"
    others = [other for other in machine.devices if other.kind != "cpu" and other.id != device.id]
    equal = [other for other in others if other.kind == device.kind]
    if any(not other.usable for other in equal):
        return ": the other card cannot be used" if len(equal) == 1 else ": other cards cannot be used"
    if equal:
        alike = {other.total_bytes for other in equal} == {device.total_bytes}
        return f": the {'first' if alike else 'largest'} of {len(equal) + 1} GPUs"
    return ": it has memory of its own, unlike the integrated GPU" if others else ""


def _fallback(machine: Machine, problem: Problem | None) -> Choice:
    if problem is not None:
        clause = problem.message.rstrip(".")
        clause = clause[0].lower() + clause[1:]
        to_do = f"; run {problem.command}" if problem.command else ""
        return Choice(
            backend=LLAMA_CPP,
            device="cpu",
            reason=f"CPU: {clause}{to_do}.",
            warning=f"Models run on the CPU. {problem.message}",
            fix=problem.hint,
            command=problem.command,
        )
    if not machine.builds:
        reason = "CPU: it is not known what the installed build can use."
    elif any(device.kind != "cpu" for device in machine.devices):
        reason = "CPU: this build of llama.cpp does not use the integrated GPU."
    else:
        reason = "CPU: there is no GPU."
    return Choice(backend=LLAMA_CPP, device="cpu", reason=reason)


def _problem(machine: Machine, device: Device) -> Problem | None:
    about = [problem for problem in machine.problems if problem.device == device.id]
    return next(iter([*about, *machine.problems]), None)


def _unusable(message: str, problem: Problem | None) -> BackendUnavailable:
    if problem is None:
        hint = "Leave out --require-gpu and --device to run on the CPU. “localinfer doctor” says what there is."
        return BackendUnavailable(message, hint)
    return BackendUnavailable(problem.message, problem.hint)
