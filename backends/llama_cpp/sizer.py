"""What a model and a context would take, from a model opened without its weights and a context without its memory.

Nothing of the weights is read: a file that has its header and its full length gives the numbers of the whole one. It
does not know what the machine has.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from backends.llama_cpp.breakdown import BufferBytes, breakdown
from backends.llama_cpp.library import lib
from backends.llama_cpp.native import KV_TYPES, ContextOptions, NativeContext, NativeModel
from backends.llama_cpp.room import padded
from localinfer.errors import BadRequest
from localinfer.models.sizes import DeviceSizes, SizeRequest, Sizes

_HOST = "cpu"
_MOST_CELLS = 1 << 31
_MOST_BATCH = 1 << 20
_LOGIT_BYTES = 4
_F32_BYTES = 4.0
_CACHE, _STATES = "llama_kv_cache", "llama_memory_recurrent"


class _Pass(msgspec.Struct, frozen=True):
    """What one context says of itself: bytes by kind of buffer, where the build tells, and its log.

    ``rows_bytes`` are the rows of logits, which are on the host and in no kind of buffer.
    """

    buffers: tuple[BufferBytes, ...]
    log: tuple[str, ...]
    rows_bytes: int

    @property
    def context_bytes(self) -> int:
        return sum(entry.context_bytes for entry in self.buffers)


class Sizer:
    """Answers requests. The last model stays open: most requests ask for the same one again."""

    def __init__(self) -> None:
        self._key: object = None
        self._model: NativeModel | None = None
        self._repacked_bytes = 0

    def measure(self, request: SizeRequest) -> Sizes:
        """The sizes. Raises ``BadRequest`` and what keeps the model from being loaded."""
        _check(request)
        model = self._opened(request)
        said = _pass(model, request, request.kv_type)
        kv_bytes, state_bytes = _split(model, request, said)
        file_bytes = int(lib.llama_model_size(model.pointer))
        found = _from_buffers(said, file_bytes) if said.buffers else _from_log(model, said, file_bytes)
        return Sizes(
            devices=tuple(found),
            kv_bytes=kv_bytes,
            state_bytes=state_bytes,
            layers=int(lib.llama_model_n_layer(model.pointer)),
            gpu_layers=model.offloaded[0],
            exact=bool(said.buffers),
            repacked_bytes=self._repacked_bytes,
        )

    def _opened(self, request: SizeRequest) -> NativeModel:
        """The model as a worker would load it. Where that repacks weights it is opened once more without, because the
        file stays in memory beside them."""
        key = (request.paths, request.device, request.gpu_layers)
        if self._model is not None and self._key == key:
            return self._model
        self._close()
        model = _open(request, repack=True)
        smallest = msgspec.structs.replace(request, context=1, slots=1, outputs=1)
        repacked = [entry.model_bytes for entry in _pass(model, smallest, "f16").buffers if entry.repacked]
        if any(repacked):
            model.close()
            model = _open(request, repack=False)
        self._model, self._key, self._repacked_bytes = model, key, sum(repacked)
        return model

    def _close(self) -> None:
        if self._model is not None:
            self._model.close()
            self._model = None


def _check(request: SizeRequest) -> None:
    if not request.paths:
        raise BadRequest("There is no file to size.", "Name the model's files.", param="paths")
    if request.kv_type not in KV_TYPES:
        types = ", ".join(KV_TYPES)
        raise BadRequest(f"There is no KV cache type “{request.kv_type}”.", f"Choose one of: {types}.", param="kv")
    most = int(lib.llama_max_parallel_sequences())
    if not 1 <= request.slots <= most:
        raise BadRequest(f"{request.slots:,} slots cannot be had.", f"Choose 1 to {most}.", param="slots")
    if request.context < 1 or padded(request.context) * request.slots >= _MOST_CELLS:
        raise BadRequest(f"A context of {request.context:,} tokens cannot be had.", "Choose another.", param="context")
    for name in ("batch", "micro_batch", "outputs"):
        if not 1 <= getattr(request, name) <= _MOST_BATCH:
            raise BadRequest(f"{name} cannot be {getattr(request, name):,}.", "Choose another.", param=name)


def _open(request: SizeRequest, *, repack: bool) -> NativeModel:
    return NativeModel(
        request.paths[0],
        parts=request.paths,
        gpu_layers=request.gpu_layers,
        device=request.device,
        progress=lambda _: None,
        only_sizes=True,
        repack=repack,
    )


def _pass(model: NativeModel, request: SizeRequest, kv_type: str) -> _Pass:
    options = ContextOptions(
        cells=padded(request.context) * request.slots,
        sequences=request.slots,
        outputs=max(request.outputs, request.slots),
        batch=request.batch,
        micro_batch=request.micro_batch,
        threads=1,
        kv_type=kv_type,
        unified=request.unified,
    )
    context = NativeContext(model, options)
    try:
        rows_bytes = options.outputs * model.n_vocab * _LOGIT_BYTES
        return _Pass(buffers=breakdown(context.pointer) or (), log=context.log, rows_bytes=rows_bytes)
    finally:
        context.close()


def _split(model: NativeModel, request: SizeRequest, said: _Pass) -> tuple[int, int]:
    """KV cache and recurrent states. The log gives both rounded; with 32-bit elements the former alone grows."""
    cache, states = (_logged(said.log, name) for name in (_CACHE, _STATES))
    if not said.buffers:
        return sum(cache), sum(states)
    if not states or not cache:
        return (0, said.context_bytes) if states else (said.context_bytes, 0)
    element_bytes = KV_TYPES[request.kv_type][1]
    growth = _pass(model, request, "f32").context_bytes - said.context_bytes
    kv_bytes = round(growth / (_F32_BYTES - element_bytes) * element_bytes)
    return kv_bytes, said.context_bytes - kv_bytes


def _from_buffers(said: _Pass, file_bytes: int) -> Iterator[DeviceSizes]:
    """Devices, the host last. What lies on the host is the file in memory, however often a tensor of it is used."""
    kinds: defaultdict[str, list[BufferBytes]] = defaultdict(list)
    for entry in (*said.buffers, BufferBytes(compute_bytes=said.rows_bytes)):
        kinds[entry.device].append(entry)
    for device in sorted(kinds, key=lambda device: (device == _HOST, device)):
        model_bytes = sum(entry.model_bytes for entry in kinds[device])
        yield DeviceSizes(
            id=device,
            model_bytes=min(model_bytes, file_bytes) if device == _HOST else model_bytes,
            context_bytes=sum(entry.context_bytes for entry in kinds[device]),
            compute_bytes=sum(entry.compute_bytes for entry in kinds[device]),
        )


def _from_log(model: NativeModel, said: _Pass, file_bytes: int) -> Iterator[DeviceSizes]:
    """The same as far as the log tells: weights and context go to the devices by their share of the layers."""
    compute: defaultdict[str, int] = defaultdict(int, {_HOST: said.rows_bytes})
    for line in said.log:
        if "compute buffer size" in line:
            name = line.partition("compute buffer size")[0].split()[-1]
            compute[_HOST if name == "CPU" or name.endswith("_Host") else name] += _mib(line.rpartition("=")[2])
    done, layers = model.offloaded
    gpus = [name for name in compute if name != _HOST]
    share = done / layers / len(gpus) if gpus and layers else 0.0
    context = sum(_logged(said.log, _CACHE)) + sum(_logged(said.log, _STATES))
    for name in [*gpus, _HOST]:
        part = share if name != _HOST else 1 - share * len(gpus)
        yield DeviceSizes(
            id=name,
            model_bytes=round(file_bytes * part),
            context_bytes=round(context * part),
            compute_bytes=compute[name],
        )


def _logged(log: Sequence[str], part: str) -> list[int]:
    """Bytes from lines such as ``llama_kv_cache: size = 90.00 MiB (4096 cells, …``."""
    return [_mib(line.partition("=")[2]) for line in log if line.startswith(f"{part}: size =")]


def _mib(text: str) -> int:
    return round(float(text.split()[0]) * 2**20)
