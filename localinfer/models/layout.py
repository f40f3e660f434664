"""What lies where: the terms of a placement of a model's blocks on the devices of a machine, and what each reads.

By closed forms, corrected by what the library itself said for one placement (``Oracle``). It does not judge whether
anything fits.
"""

import statistics
from collections.abc import Iterable, Iterator

import msgspec

from localinfer.machine import Device
from localinfer.models.compute_form import compute_bytes
from localinfer.models.memory_forms import kv_bytes, state_bytes, token_bytes
from localinfer.models.plan import HOST, Ask, Term, TermKind
from localinfer.models.shape import ModelShape
from localinfer.models.sizes import SizeRequest, Sizes, outputs
from localinfer.models.traffic import Cached, Traffic
from localinfer.types import Value

MIB = 2**20

_MLX_COMPUTE_BYTES = 800_000_000  # mlx-lm with prefill steps of 2,048: 0.64-0.80 GB published, for every bit width
_COMPARABLE = 4  # times as many bytes, or a fourth of them
_SEVERAL = 3  # replies
_HOST_OVERHEAD_BYTES = 68_000_000  # the worker process itself, measured on Linux: 57 to 70 MB
_GPU_OVERHEAD_BYTES = {"CUDA": 512 * MIB, "ROCm": 300 * MIB, "Vulkan": 300 * MIB}  # outside every buffer


class Pace(Value, frozen=True):
    """One reply of a model that reads ``read_bytes`` for a token: ``ratio`` is its measured ÷ expected speed."""

    read_bytes: int
    ratio: float


class Lessons(Value, frozen=True):
    """What earlier loads on this machine taught, by device: bytes beyond the plan's, and how fast replies were."""

    overhead_bytes: dict[str, int] = msgspec.field(default_factory=dict)
    decode: dict[str, tuple[Pace, ...]] = msgspec.field(default_factory=dict)
    prefill: dict[str, tuple[Pace, ...]] = msgspec.field(default_factory=dict)


def learnt_factor(paces: Iterable[Pace], read_bytes: int) -> float | None:
    """The median of measured ÷ expected for a model that reads ``read_bytes`` for a token; None where too little is
    known. Only models of comparable size count: a small one waits for other things than the memory. One odd reply on a
    busy machine changes nothing."""
    ratios = [one.ratio for one in paces if read_bytes / _COMPARABLE <= one.read_bytes <= read_bytes * _COMPARABLE]
    return statistics.median(ratios) if len(ratios) >= _SEVERAL else None


NOTHING_LEARNT = Lessons()


class Oracle(Value, frozen=True):
    """What the library said for one request; it corrects the forms for every other placement."""

    request: SizeRequest
    sizes: Sizes


class Placement(Value, frozen=True):
    """Which blocks lie on which GPU, in order; the others and the first ``expert_layers``' experts are on the host."""

    shares: tuple[tuple[Device, int], ...] = ()
    expert_layers: int = 0

    @property
    def blocks(self) -> int:
        """How many blocks lie on GPUs."""
        return sum(count for _, count in self.shares)

    @property
    def gpu_layers(self) -> int:
        """As llama.cpp counts them: the output layer is the first."""
        return self.blocks + 1 if self.blocks else 0


class Layout:
    """The memory of one model under one request. ``host`` is the machine's own memory; ``rows`` of logits may be asked
    for in a pass, by default as many as a worker asks for."""

    def __init__(
        self,
        shape: ModelShape,
        ask: Ask,
        host: Device,
        lessons: Lessons,
        oracle: Oracle | None = None,
        *,
        rows: int | None = None,
    ) -> None:
        self._shape = shape
        self._ask = ask
        self._host = host
        self._lessons = lessons
        self._oracle = oracle
        self._rows = outputs(ask.slots) if rows is None else rows
        self._draft: Layout | None = None
        self._parts: dict[tuple[int, int], ModelShape] = {}
        self._computes: dict[int, int] = {}
        self._corrections: dict[str, int] = {}
        if oracle is not None:
            self._corrections = self._compared(oracle)

    def terms(self, placement: Placement, context: int) -> tuple[Term, ...]:
        """Everything that takes memory with ``context`` tokens per slot."""
        ask = self._ask
        matched = self._matched(placement, context)
        terms = [*(_measured(matched) if matched is not None else self._formed(placement, context))]
        if self._oracle is not None and not placement.blocks:
            repacked = self._oracle.sizes.repacked_bytes
            terms.append(Term(kind="repacked", device=HOST, size_bytes=repacked, source="oracle"))
        first = placement.shares[0][0].id if placement.shares else HOST
        terms.append(Term(kind="projector", device=first, size_bytes=ask.projector_bytes))
        if ask.draft is not None:
            terms += self._drafting(ask.draft, placement, context)
        terms.append(Term(kind="speech", device=HOST, size_bytes=ask.speech_bytes))
        used = {HOST: self._host, **{device.id: device for device, _ in placement.shares}}
        terms += [self._overhead(device) for device in used.values()]
        return tuple(term for term in terms if term.size_bytes)

    def traffic(self, placement: Placement) -> tuple[Traffic, ...]:
        """What each device reads to decode one token."""
        layers = self._shape.layers
        start = len(layers) - placement.blocks
        parts = [self._reading(self._host, 0, start, 0, head=not placement.blocks)]
        begin = start
        for number, (device, count) in enumerate(placement.shares):
            head = number == len(placement.shares) - 1
            parts.append(self._reading(device, begin, begin + count, placement.expert_layers, head=head))
            begin += count
        away = int(self._used * sum(layer.expert_bytes for layer in layers[start : placement.expert_layers]))
        parts.append(Traffic(device=self._host, fixed_bytes=away, expert_bytes=away))
        return tuple(part for part in parts if part.fixed_bytes or part.caches)

    @property
    def _used(self) -> float:
        """The part of the routed experts that computes a token."""
        return self._shape.experts_used / self._shape.experts if self._shape.experts else 0.0

    def _reading(self, device: Device, begin: int, end: int, host_experts: int, *, head: bool) -> Traffic:
        shape = self._shape
        plain = sum(layer.weights_bytes - layer.expert_bytes for layer in shape.layers[begin:end])
        experts = int(self._used * sum(layer.expert_bytes for layer in shape.layers[max(begin, host_experts) : end]))
        part = self._part(begin, end)
        output = shape.output_bytes + shape.head_bytes if head else 0
        by_window = token_bytes(part, kv_type=self._ask.kv_type)
        return Traffic(
            device=device,
            fixed_bytes=plain + experts + state_bytes(part, slots=1) + output,
            expert_bytes=experts,
            caches=tuple(Cached(token_bytes=size, window=window) for window, size in by_window.items()),
        )

    def _formed(self, placement: Placement, context: int) -> Iterator[Term]:
        """The terms by closed forms. The output layer lies on the last GPU; the embeddings stay with the host."""
        shape = self._shape
        layers = shape.layers
        start = len(layers) - placement.blocks
        host_weights = shape.embedding_bytes if shape.format == "gguf" or not placement.blocks else 0
        host_weights += sum(layer.weights_bytes for layer in layers[:start])
        host_weights += sum(layer.expert_bytes for layer in layers[start : placement.expert_layers])
        if start:
            yield from self._cache(HOST, 0, start, context)
        begin = start
        for number, (device, count) in enumerate(placement.shares):
            end = begin + count
            weights = sum(layer.weights_bytes for layer in layers[begin:end])
            weights -= sum(layer.expert_bytes for layer in layers[begin : min(end, placement.expert_layers)])
            if number == len(placement.shares) - 1:
                weights += shape.output_bytes + (shape.head_bytes if shape.format == "gguf" else 0)
            if shape.format == "mlx":
                weights += shape.embedding_bytes
            yield Term(kind="weights", device=device.id, size_bytes=weights)
            yield from self._cache(device.id, begin, end, context)
            compute = self._compute(context) + self._corrections.get(device.id, 0)
            yield Term(kind="compute", device=device.id, size_bytes=max(0, compute))
            begin = end
        if not placement.blocks:
            host_weights += shape.output_bytes
        yield Term(kind="weights", device=HOST, size_bytes=host_weights)
        on_host = self._compute(context) if start or placement.expert_layers else self._inputs(context)
        yield Term(kind="compute", device=HOST, size_bytes=max(0, on_host + self._corrections.get(HOST, 0)))

    def _cache(self, device: str, begin: int, end: int, context: int) -> Iterator[Term]:
        """KV cache and recurrent states of some blocks."""
        part = self._part(begin, end)
        slots = self._ask.slots
        kv = kv_bytes(part, context=context, slots=slots, kv_type=self._ask.kv_type, micro_batch=self._ask.micro_batch)
        yield Term(kind="kv", device=device, size_bytes=kv)
        yield Term(kind="state", device=device, size_bytes=state_bytes(part, slots=slots))

    def _compute(self, context: int) -> int:
        if self._shape.format == "mlx":
            return _MLX_COMPUTE_BYTES
        if context not in self._computes:
            slots, micro_batch = self._ask.slots, self._ask.micro_batch
            self._computes[context] = compute_bytes(
                self._shape, context=context, slots=slots, micro_batch=micro_batch, outputs=self._rows
            )
        return self._computes[context]

    def _inputs(self, context: int) -> int:
        """What the host keeps of a pass that runs on a GPU: inputs and the mask."""
        if self._shape.format == "mlx":
            return 0
        return self._ask.micro_batch * (2 * context + 8 * self._shape.embedding)

    def _drafting(self, draft: ModelShape, placement: Placement, context: int) -> Iterator[Term]:
        """A whole model beside this one: weights, an f16 cache for as many tokens, buffers with a row for each slot."""
        gpu = placement.shares[0][0] if placement.shares and self._ask.draft_device != HOST else None
        if not draft.layers:
            yield Term(kind="draft", device=gpu.id if gpu else HOST, size_bytes=draft.weights_bytes)
            return
        if self._draft is None:
            alone = msgspec.structs.replace(self._ask, draft=None, kv_type="f16")
            self._draft = Layout(draft, alone, self._host, self._lessons, rows=alone.slots)
        whole = Placement(shares=((gpu, len(draft.layers)),)) if gpu else Placement()
        sizes: dict[str, int] = {}
        for term in self._draft._formed(whole, context):
            sizes[term.device] = sizes.get(term.device, 0) + term.size_bytes
        for device, size_bytes in sizes.items():
            yield Term(kind="draft", device=device, size_bytes=size_bytes)

    def _overhead(self, device: Device) -> Term:
        learnt = self._lessons.overhead_bytes.get(device.id)
        if learnt is not None:
            return Term(kind="overhead", device=device.id, size_bytes=max(0, learnt), source="measured")
        if device.id == HOST:
            return Term(kind="overhead", device=HOST, size_bytes=_HOST_OVERHEAD_BYTES)
        api = device.id.rstrip("0123456789")
        return Term(kind="overhead", device=device.id, size_bytes=_GPU_OVERHEAD_BYTES.get(api, 0))

    def _matched(self, placement: Placement, context: int) -> Sizes | None:
        """What the oracle said, if it was asked for exactly this."""
        if self._oracle is None or placement.expert_layers or len(placement.shares) > 1:
            return None
        request = self._oracle.request
        device = placement.shares[0][0].id if placement.shares else HOST
        asked = (request.context, request.slots, request.kv_type, _layers(request, self._shape), _device(request))
        wanted = (context, self._ask.slots, self._ask.kv_type, placement.gpu_layers, device)
        return self._oracle.sizes if asked == wanted else None

    def _compared(self, oracle: Oracle) -> dict[str, int]:
        """By device: how much more than the forms the library would take, in the placement it was asked for."""
        request = oracle.request
        device = Device(id=_device(request), name="", kind="gpu")
        blocks = max(0, min(_layers(request, self._shape) - 1, len(self._shape.layers)))
        placement = Placement(shares=((device, blocks),)) if device.id != HOST and blocks else Placement()
        formed = list(self._formed(placement, request.context))
        correction = {}
        for entry in oracle.sizes.devices:
            form = sum(term.size_bytes for term in formed if term.device == entry.id)
            correction[entry.id] = entry.model_bytes + entry.context_bytes + entry.compute_bytes - form
        return correction

    def _part(self, begin: int, end: int) -> ModelShape:
        if (begin, end) not in self._parts:
            self._parts[begin, end] = msgspec.structs.replace(self._shape, layers=self._shape.layers[begin:end])
        return self._parts[begin, end]


def _measured(sizes: Sizes) -> Iterator[Term]:
    """The oracle's terms; the context is split into KV and state in the proportion of the whole."""
    context = sum(entry.context_bytes for entry in sizes.devices) or 1
    for entry in sizes.devices:
        state = entry.context_bytes * sizes.state_bytes // context
        parts: tuple[tuple[TermKind, int], ...] = (
            ("weights", entry.model_bytes),
            ("kv", entry.context_bytes - state),
            ("state", state),
            ("compute", entry.compute_bytes),
        )
        for kind, size in parts:
            yield Term(kind=kind, device=entry.id, size_bytes=size, source="oracle")


def _device(request: SizeRequest) -> str:
    return request.device or HOST


def _layers(request: SizeRequest, shape: ModelShape) -> int:
    whole = len(shape.layers) + 1
    if _device(request) == HOST:
        return 0
    return whole if request.gpu_layers < 0 else min(request.gpu_layers, whole)
