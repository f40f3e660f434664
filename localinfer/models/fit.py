"""Whether a model fits this machine, and how: a pure function from a shape and a machine to a memory plan.

It tries, best first: everything on the GPU, the same with a shorter context, experts in the machine's own memory, some
layers on the GPU, the CPU. Nothing is loaded here.
"""

from collections.abc import Callable, Iterator

import msgspec

from localinfer.machine import Device, Machine
from localinfer.models import speed
from localinfer.models.explain import sentence
from localinfer.models.layout import NOTHING_LEARNT, Layout, Lessons, Oracle, Placement, learnt_factor
from localinfer.models.plan import HOST, Ask, DeviceLoad, MemoryPlan, Range, Term, Verdict
from localinfer.models.shape import ModelShape

GIB = 2**30
MIB = 2**20
DEFAULT_CONTEXT = 8192
SHORT_CONTEXT = 4096  # below it a conversation is over too soon: then other placements are tried first
LEAST_CONTEXT = 512
GRAIN = 256


def plan(
    shape: ModelShape,
    machine: Machine,
    ask: Ask,
    *,
    lessons: Lessons = NOTHING_LEARNT,
    oracle: Oracle | None = None,
) -> MemoryPlan:
    """The best way to hold ``shape`` in ``machine``. Raises nothing: what cannot be held is a verdict too."""
    return _Planner(shape, machine, ask, lessons, oracle).best()


def draft_bytes(shape: ModelShape, ask: Ask, context: int) -> int:
    """What a model that drafts takes on the host, or on the devices together, with ``context`` tokens per slot."""
    host = Device(id=HOST, name="", kind="cpu")
    alone = msgspec.structs.replace(ask, draft=shape, draft_device=HOST)
    terms = Layout(shape, alone, host, NOTHING_LEARNT).terms(Placement(), context)
    return sum(term.size_bytes for term in terms if term.kind == "draft")


def margin_bytes(device: Device, machine: Machine) -> int:
    """What is left free on a device on purpose. A GPU under Windows does not fail when it is full: it spills into
    shared memory and is ten times slower, so more is left there."""
    if device.id == HOST:
        available = machine.ram_available_bytes
        return max(available // 10, min(2 * GIB, available // 4))
    total = device.total_bytes or 0
    if machine.system == "macos":
        return total // 10
    if device.shares_ram or device.kind == "integrated":
        return max(4 * GIB, machine.ram_total_bytes * 15 // 100)
    if machine.wsl or machine.system == "windows":
        return GIB + total // 25
    return 512 * MIB + total // 50


class _Planner:
    def __init__(self, shape: ModelShape, machine: Machine, ask: Ask, lessons: Lessons, oracle: Oracle | None) -> None:
        self.shape = shape
        self.machine = machine
        self.ask = ask
        self.lessons = lessons
        self.asked = ask.context or min(DEFAULT_CONTEXT, shape.context or DEFAULT_CONTEXT)
        self.host = next(device for device in machine.devices if device.id == HOST)
        self.layout = Layout(shape, ask, self.host, lessons, oracle)

    # The order in which placements are tried

    def best(self) -> MemoryPlan:
        shape = self.shape
        if not shape.layers:
            return self._unknown()
        groups = list(self._groups())
        for group in groups:
            if self._fits(placement := self._spread(group, len(shape.layers)), self.asked):
                return self._plan("full", placement, self.asked)
        for group in groups:
            placement = self._spread(group, len(shape.layers))
            if (context := self._longest(placement, SHORT_CONTEXT)) >= min(SHORT_CONTEXT, self.asked):
                return self._plan("full_short_ctx", placement, context)
        for group in groups:
            if (offloaded := self._offload_experts(group)) is not None:
                return self._plan("moe_offload", *offloaded)
        for group in reversed(groups):
            if (some := self._some_layers(group)) is not None:
                return self._plan("partial", *some)
        if context := self._longest(Placement(), LEAST_CONTEXT):
            return self._plan("cpu", Placement(), context)
        nowhere = self._spread(groups[-1], len(shape.layers)) if groups and self.ask.device != HOST else Placement()
        return self._plan("too_big", nowhere, self.asked)

    def _groups(self) -> Iterator[tuple[Device, ...]]:
        """Sets of GPUs to place layers on: the best one alone, then all discrete ones together."""
        if self.ask.device == HOST:
            return
        gpus = [device for device in self.machine.devices if device.id != HOST and device.usable]
        if self.ask.device is not None:
            gpus = [device for device in gpus if device.id.lower() == self.ask.device.lower()]
        if gpus:
            yield (gpus[0],)  # the machine lists the best first
        discrete = tuple(device for device in gpus if device.kind == "gpu" and not device.shares_ram)
        if len(discrete) > 1 and self.shape.format == "gguf":
            yield discrete

    def _spread(self, group: tuple[Device, ...], blocks: int, expert_layers: int = 0) -> Placement:
        """``blocks`` over the GPUs of a group, in proportion to what is free on each, as llama.cpp does it."""
        room = [max(0, self._room(device)) for device in group]
        shares: list[tuple[Device, int]] = []
        begin = taken = 0
        for device, free in zip(group, room, strict=True):
            taken += free
            end = round(blocks * taken / sum(room)) if sum(room) else blocks
            shares.append((device, end - begin))
            begin = end
        return Placement(shares=tuple(shares), expert_layers=expert_layers)

    def _offload_experts(self, group: tuple[Device, ...]) -> tuple[Placement, int] | None:
        """The fewest layers whose experts must stay on the host for all the rest to fit on the GPUs."""
        layers = len(self.shape.layers)
        if not self.shape.experts or self.shape.format == "mlx":
            return None
        context = min(self.asked, max(SHORT_CONTEXT, LEAST_CONTEXT))
        for wanted in (self.asked, context):
            count = _least(1, layers, lambda n, wanted=wanted: self._fits(self._spread(group, layers, n), wanted))  # type: ignore[misc]
            if count is not None:
                return self._spread(group, layers, count), wanted
        return None

    def _some_layers(self, group: tuple[Device, ...]) -> tuple[Placement, int] | None:
        if self.shape.format == "mlx":
            return None
        layers = len(self.shape.layers)
        for context in dict.fromkeys((self.asked, min(self.asked, SHORT_CONTEXT))):
            away = _least(1, layers - 1, lambda n, c=context: self._fits(self._spread(group, layers - n), c))  # type: ignore[misc]
            if away is not None:
                return self._spread(group, layers - away), context
        return None

    # Whether it fits

    def _room(self, device: Device) -> int:
        free = device.free_bytes if device.id != HOST else self.machine.ram_available_bytes
        return (free or 0) + self.ask.freed.get(device.id, 0) - margin_bytes(device, self.machine)

    def _loads(self, placement: Placement, terms: tuple[Term, ...]) -> tuple[DeviceLoad, ...]:
        devices = [*(device for device, _ in placement.shares), self.host]
        # What is repacked need not stay mapped as well: the system drops those pages of the file when it has to.
        terms = tuple(term for term in terms if term.kind != "repacked")
        shared = sum(t.size_bytes for d, _ in placement.shares if d.shares_ram for t in terms if t.device == d.id)
        return tuple(
            DeviceLoad(
                id=device.id,
                name=device.name,
                needed_bytes=sum(t.size_bytes for t in terms if t.device == device.id)
                + (shared if device.id == HOST else 0),
                free_bytes=(device.free_bytes or 0) if device.id != HOST else self.machine.ram_available_bytes,
                freed_bytes=self.ask.freed.get(device.id, 0),
                margin_bytes=margin_bytes(device, self.machine),
            )
            for device in devices
        )

    def _spare(self, placement: Placement, context: int) -> int:
        """What is left over on the device that has least left."""
        loads = self._loads(placement, self.layout.terms(placement, context))
        return min(load.spare_bytes for load in loads)

    def _fits(self, placement: Placement, context: int) -> bool:
        return self._spare(placement, context) >= 0

    def _longest(self, placement: Placement, least: int, most: int | None = None) -> int:
        """The longest context up to what was asked for (or ``most``) that fits; 0 where not even ``least`` does."""
        most = self.asked if most is None else most
        least = min(least, most)
        if (over := self._spare(placement, most)) >= 0:
            return most
        if (spare := self._spare(placement, least)) < 0:
            return 0
        low, high = least // GRAIN, -(-most // GRAIN)
        while high - low > 1:  # memory grows almost evenly with the context: the first guess is nearly right
            guess = low + int((high - low) * (spare + 1) / (spare + 1 - over))
            guess = min(max(guess, low + 1), high - 1)
            left = self._spare(placement, guess * GRAIN)
            low, spare, high, over = (guess, left, high, over) if left >= 0 else (low, spare, guess, left)
        return max(least, low * GRAIN)

    # The result

    def _plan(self, verdict: Verdict, placement: Placement, context: int) -> MemoryPlan:
        shape, ask = self.shape, self.ask
        terms = self.layout.terms(placement, context)
        longest = 0 if verdict == "too_big" else self._longest(placement, LEAST_CONTEXT, max(context, shape.context))
        device = placement.shares[0][0] if placement.shares else self.host
        traffic = self.layout.traffic(placement)
        read = speed.read_bytes(traffic, context)
        decode = learnt_factor(self.lessons.decode.get(device.id, ()), read)
        slowest = self._slowest(placement, device)
        prefill = learnt_factor(self.lessons.prefill.get(slowest.id, ()), read)
        draft = MemoryPlan(
            verdict=verdict,
            context=context,
            asked_context=self.asked,
            trained_context=self.shape.context,
            slots=ask.slots,
            kv_type=ask.kv_type,
            device=device.id,
            gpu_layers=placement.gpu_layers,
            layers=len(shape.layers),
            expert_layers=placement.expert_layers,
            terms=terms,
            devices=self._loads(placement, terms),
            max_context=longest,
            sentence="",
            decode_tps=None if verdict == "too_big" else speed.decode_tps(traffic, min(context, speed.DEPTH), decode),
            prefill_tps=None if verdict == "too_big" else self._prefill_tps(slowest, prefill),
            decode_learnt=decode or 1.0,
            prefill_learnt=prefill or 1.0,
            notes=self._notes(context),
            traffic=traffic,
        )
        return msgspec.structs.replace(
            draft, sentence=sentence(draft, self._grown(placement), self._smaller_kv(verdict, context))
        )

    def _grown(self, placement: Placement) -> Callable[[int], int]:
        """Bytes that a context needs beyond what is free, on the device that lacks most."""

        def missing(context: int) -> int:
            return -self._spare(placement, context)

        return missing

    def _smaller_kv(self, verdict: Verdict, context: int) -> bool:
        """Whether the smaller type of KV cache would give a better verdict."""
        whole = verdict in ("full", "unknown") or (
            verdict == "cpu" and context == self.asked and not any(self._groups())
        )
        if self.ask.kv_type != "f16" or whole or self.shape.format == "mlx":
            return False
        ask = msgspec.structs.replace(self.ask, kv_type="q8_0")
        smaller = _Planner(self.shape, self.machine, ask, self.lessons, None)
        wanted = [smaller._spread(group, len(self.shape.layers)) for group in smaller._groups()] or [Placement()]
        return any(smaller._fits(placement, self.asked) for placement in wanted)

    def _notes(self, context: int) -> tuple[str, ...]:
        notes = []
        if 0 < self.shape.context < context:
            notes.append(f"The model was trained with {self.shape.context:,} tokens; beyond them its text gets worse.")
        return tuple(notes)

    def _unknown(self) -> MemoryPlan:
        """The architecture is not understood: only the weights are known."""
        terms = (Term(kind="weights", device=HOST, size_bytes=self.shape.weights_bytes),)
        loads = self._loads(Placement(), terms)
        device = next((group[0].id for group in self._groups()), HOST)
        made = MemoryPlan(
            verdict="unknown" if loads[-1].spare_bytes >= 0 or device != HOST else "too_big",
            context=self.asked,
            asked_context=self.asked,
            trained_context=self.shape.context,
            slots=self.ask.slots,
            kv_type=self.ask.kv_type,
            device=device,
            gpu_layers=0,
            layers=0,
            expert_layers=0,
            terms=terms,
            devices=loads,
            max_context=0,
            sentence="",
        )
        return msgspec.structs.replace(made, sentence=sentence(made, lambda context: 0, False))

    def _slowest(self, placement: Placement, device: Device) -> Device:
        """Where the prompt is read: a part that stays on the host sets the pace."""
        whole = placement.blocks == len(self.shape.layers) and not placement.expert_layers
        return device if whole else self.host

    def _prefill_tps(self, slowest: Device, factor: float | None) -> Range | None:
        return speed.prefill_tps(self.shape.active_parameters, slowest, self.machine.cpu, factor)


def _least(low: int, high: int, good: Callable[[int], bool]) -> int | None:
    """The least number from ``low`` to ``high`` that is good, where all above a good one are good; None without one."""
    if low > high or not good(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if good(middle) else (middle + 1, high)
    return high
