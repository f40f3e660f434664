"""Ownership of llama.cpp's objects: the model, its context and the batch. Everything acquired here is released here.

Pointers never leave this module except as the ``pointer`` of an object that owns it. Sequence ids are slot numbers.
"""

import ctypes
import os
import re
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from backends.base import Progress
from backends.llama_cpp.library import capture_log, cpu_buffer_type, devices, lib
from localinfer.errors import BackendUnavailable, BadRequest, LocalInferError, ModelFileInvalid, OutOfMemory

Logits = npt.NDArray[np.float32]
State = npt.NDArray[np.uint8]

KV_TYPES = {
    "f16": (lib.GGML_TYPE_F16, 2.0),
    "q8_0": (lib.GGML_TYPE_Q8_0, 34 / 32),
    "q4_0": (lib.GGML_TYPE_Q4_0, 18 / 32),
}
PARTIAL = 1  # LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY: the recurrent or sliding-window part
_QUANTIZATION = re.compile(r"\s((?:I?Q|TQ|F|BF|MXFP|NVFP)\d[\w]*)(?: - ([SML])\w+)?")
_MEMORY_WORDS = ("failed to allocate", "out of memory", "unable to allocate")


class NativeModel:
    """One model in memory. ``offloaded`` is (layers on a GPU, layers) as the library reported it.

    ``parts`` are the files of a model that is split, the first of them included; without them the library finds them
    by their names. The experts of the first ``expert_layers`` stay in the machine's own memory. ``only_sizes``: no
    weight is read and no memory taken, so that contexts can be asked for their sizes and nothing else. ``repack`` False
    keeps the CPU from storing some weights in an order of its own.
    """

    def __init__(
        self,
        path: str,
        *,
        gpu_layers: int,
        device: str | None,
        progress: Progress,
        parts: Sequence[str] = (),
        expert_layers: int = 0,
        only_sizes: bool = False,
        repack: bool = True,
    ) -> None:
        params = lib.llama_model_default_params()
        params.n_gpu_layers = 0 if device == "cpu" else gpu_layers
        params.use_extra_bufts = repack
        if only_sizes:
            params.no_alloc, params.load_mode = True, lib.LLAMA_LOAD_MODE_NONE
        chosen = _device_list(device)
        if chosen is not None:
            params.devices = ctypes.cast(chosen, ctypes.c_void_p)
        kept = _kept_experts(expert_layers)
        if kept is not None:
            params.tensor_buft_overrides = ctypes.cast(kept, ctypes.c_void_p)

        def on_progress(fraction: float, _user: object) -> bool:
            progress(fraction)
            return True

        params.progress_callback = callback = lib.llama_progress_callback(on_progress)
        with capture_log() as log:
            if len(parts) > 1:
                names = (ctypes.c_char_p * len(parts))(*map(os.fsencode, parts))
                pointer = lib.llama_model_load_from_splits(names, len(parts), params)
            else:
                pointer = lib.llama_model_load_from_file(os.fsencode(path), params)
        del callback
        if not pointer:
            raise _load_error(path, log.errors)
        self.pointer = pointer
        self.vocab = lib.llama_model_get_vocab(pointer)
        self.n_vocab = int(lib.llama_vocab_n_tokens(self.vocab))
        self.offloaded = _offloaded(log.lines)

    def meta(self, key: str) -> str | None:
        """A metadata value as text."""
        size = 1024
        while True:
            buffer = ctypes.create_string_buffer(size)
            length = lib.llama_model_meta_val_str(self.pointer, key.encode(), buffer, size)
            if length < 0:
                return None
            if length < size:
                return buffer.value.decode("utf-8", "replace")
            size = length + 1

    def describe(self) -> str:
        """Architecture, size class and quantisation, as llama.cpp names them."""
        buffer = ctypes.create_string_buffer(256)
        lib.llama_model_desc(self.pointer, buffer, len(buffer))
        return buffer.value.decode("utf-8", "replace")

    @property
    def quantization(self) -> str:
        """The type most weights have, in the usual short form: Q4_K_M for what llama.cpp calls "Q4_K - Medium"."""
        match = _QUANTIZATION.search(self.describe())
        return f"{match[1]}_{match[2][0]}" if match and match[2] else match[1] if match else ""

    def kv_bytes_per_token(self, kv_type: str) -> int:
        """KV cache bytes of one token if every layer kept every token: layers x KV heads x (key + value) x type.

        An upper bound: sliding-window layers keep fewer tokens, recurrent layers none.
        """
        # A hybrid model's first layer may have no KV heads.
        kv_heads = int(lib.llama_model_n_head_kv(self.pointer)) or int(lib.llama_model_n_head(self.pointer))
        arch = self.meta("general.architecture") or ""
        default = int(lib.llama_model_n_embd(self.pointer)) // max(1, int(lib.llama_model_n_head(self.pointer)))
        key = int(self.meta(f"{arch}.attention.key_length") or default)
        value = int(self.meta(f"{arch}.attention.value_length") or default)
        layers = int(lib.llama_model_n_layer(self.pointer))
        return 0 if self.recurrent else int(layers * kv_heads * (key + value) * KV_TYPES[kv_type][1])

    @property
    def window(self) -> int:
        """Sliding window in tokens, 0 when there is none."""
        return int(lib.llama_model_n_swa(self.pointer))

    @property
    def recurrent(self) -> bool:
        """Whether it keeps a state instead of a KV cache."""
        return bool(lib.llama_model_is_recurrent(self.pointer))

    @property
    def hybrid(self) -> bool:
        """Whether some layers are recurrent and others attend."""
        return bool(lib.llama_model_is_hybrid(self.pointer))

    def close(self) -> None:
        """Free the model; its context must be closed before."""
        if self.pointer:
            lib.llama_model_free(self.pointer)
            self.pointer = None


class ContextOptions(msgspec.Struct, frozen=True, kw_only=True):
    """``cells`` are for all sequences together; ``outputs`` is how many rows of logits one pass may ask for, at least
    one of each sequence. ``micro_batch`` is the tokens computed at once, of the ``batch`` that one pass may hold.
    ``kv_type`` is one of ``KV_TYPES``, or ``f32`` for comparison."""

    cells: int
    sequences: int
    outputs: int
    batch: int
    threads: int
    kv_type: str
    unified: bool
    micro_batch: int = 512


def _context_parameters(options: ContextOptions) -> Any:
    params = lib.llama_context_default_params()
    params.n_ctx = options.cells
    params.n_seq_max = options.sequences
    params.n_batch = options.batch
    params.n_ubatch = min(options.micro_batch, options.batch)
    params.n_outputs_max = options.outputs
    params.n_threads = params.n_threads_batch = options.threads
    params.flash_attn_type = lib.LLAMA_FLASH_ATTN_TYPE_AUTO
    params.type_k = params.type_v = lib.GGML_TYPE_F32 if options.kv_type == "f32" else KV_TYPES[options.kv_type][0]
    params.swa_full = False
    params.kv_unified = options.unified
    params.no_perf = True
    return params


class NativeContext:
    """The KV cache of a model and the machinery of one forward pass."""

    def __init__(self, model: NativeModel, options: ContextOptions) -> None:
        with capture_log() as log:
            self.pointer = lib.llama_init_from_model(model.pointer, _context_parameters(options))
        if not self.pointer:
            raise _context_error(options, log.errors)
        self.log = tuple(log.lines)
        self.kv_bytes = _buffer_bytes(log.lines, ("KV buffer size", "RS buffer size"))
        self._memory = lib.llama_get_memory(self.pointer)
        self._n_vocab = model.n_vocab
        self._views: dict[int, Logits] = {}
        self.batch = Batch(int(lib.llama_n_batch(self.pointer)))

    def decode(self) -> None:
        """One forward pass over ``batch``. Raises ``OutOfMemory`` when there is no room, ``LocalInferError`` else."""
        code = lib.llama_decode(self.pointer, self.batch.struct)
        if code == 0:
            return
        if code in (1, -2):
            raise OutOfMemory(
                "The context has no room for this step.", "Use fewer slots, a smaller context or a shorter prompt."
            )
        raise LocalInferError(f"llama.cpp could not compute this step (code {code}).", "See the log for its reason.")

    def logits(self, row: int) -> Logits:
        """Logits of batch row ``row``, shape (n_vocab,); valid until the next pass."""
        address = ctypes.addressof(lib.llama_get_logits_ith(self.pointer, row).contents)
        view = self._views.get(address)
        if view is None:  # the rows stay where they are: making a view costs more than a token has to spare
            block = (ctypes.c_float * self._n_vocab).from_address(address)
            view = self._views[address] = np.frombuffer(memoryview(block), np.float32)
        return view

    def set_threads(self, threads: int) -> None:
        """Use this many threads from the next pass on."""
        lib.llama_set_n_threads(self.pointer, threads, threads)

    # Memory of sequences

    def trim(self, sequence: int, length: int) -> bool:
        """Keep the first ``length`` tokens. False where this kind of memory cannot drop its tail."""
        return bool(lib.llama_memory_seq_rm(self._memory, sequence, length, -1))

    def clear(self, sequence: int) -> None:
        """Forget a whole sequence; always possible."""
        lib.llama_memory_seq_rm(self._memory, sequence, -1, -1)

    def copy(self, source: int, target: int) -> None:
        """Make ``target`` hold what ``source`` holds; between separate streams the copy runs with the next pass."""
        self.clear(target)
        lib.llama_memory_seq_cp(self._memory, source, target, -1, -1)

    def first_position(self, sequence: int) -> int:
        """The earliest position still held (later than 0 in a sliding window), -1 when empty."""
        return int(lib.llama_memory_seq_pos_min(self._memory, sequence))

    def save(self, sequence: int, *, partial: bool) -> State:
        """State of a sequence; ``partial``: only what cannot be trimmed (recurrent or sliding-window layers)."""
        flags = PARTIAL if partial else 0
        state = np.empty(lib.llama_state_seq_get_size_ext(self.pointer, sequence, flags), np.uint8)
        pointer = _pointer(state, ctypes.c_uint8)
        written = lib.llama_state_seq_get_data_ext(self.pointer, pointer, len(state), sequence, flags)
        return state[:written]

    def restore(self, sequence: int, state: State, *, partial: bool) -> bool:
        """Put a saved state back; False when it does not fit."""
        pointer = _pointer(state, ctypes.c_uint8)
        flags = PARTIAL if partial else 0
        return bool(lib.llama_state_seq_set_data_ext(self.pointer, pointer, len(state), sequence, flags))

    def close(self) -> None:
        """Free the context."""
        if self.pointer:
            lib.llama_free(self.pointer)
            self.pointer = None


class Batch:
    """A ``llama_batch`` over memory that numpy owns. Rows are (token, position, sequence, wants logits)."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._token = np.zeros(capacity, np.int32)
        self._pos = np.zeros(capacity, np.int32)
        self._sequence = np.zeros(capacity, np.int32)
        self._logits = np.zeros(capacity, np.int8)
        self._count = np.ones(capacity, np.int32)
        # Single items are written through these: half the price of numpy's, and a pass writes three for each stream.
        self._token_at, self._pos_at = self._token.data, self._pos.data
        self._sequence_pointers = (
            self._sequence.ctypes.data + np.arange(capacity, dtype=np.uintp) * self._sequence.itemsize
        ).astype(np.uintp)
        self.struct = lib.llama_batch()
        self.struct.token = _pointer(self._token, ctypes.c_int32)
        self.struct.pos = _pointer(self._pos, ctypes.c_int32)
        self.struct.n_seq_id = _pointer(self._count, ctypes.c_int32)
        self.struct.seq_id = _pointer(self._sequence_pointers, ctypes.POINTER(ctypes.c_int32))
        self.struct.logits = _pointer(self._logits, ctypes.c_int8)
        self.rows = 0

    def clear(self) -> None:
        """Start a new pass."""
        self.rows = self.struct.n_tokens = 0

    def add(self, sequence: int, position: int, token: int) -> int:
        """Add one token whose logits are wanted; its row."""
        row = self.rows
        self._token_at[row] = token
        self._pos_at[row] = position
        self._sequence[row] = sequence
        self._logits[row] = 1
        self.rows = self.struct.n_tokens = row + 1
        return row

    def advance(self, tokens: Sequence[int]) -> None:
        """Make it the next pass of the same sequences: in every row its next token, one position further."""
        for row, token in enumerate(tokens):
            self._token_at[row] = token
            self._pos_at[row] += 1

    def extend(
        self, sequence: int, position: int, tokens: npt.NDArray[np.int32] | Sequence[int], *, wanted: range
    ) -> int:
        """Add tokens from ``position`` on, of which those at the indices ``wanted`` are to have logits; the row of the
        first."""
        start, end = self.rows, self.rows + len(tokens)
        self._token[start:end] = tokens
        self._pos[start:end] = np.arange(position, position + len(tokens), dtype=np.int32)
        self._sequence[start:end] = sequence
        self._logits[start:end] = 0
        self._logits[start + wanted.start : start + wanted.stop] = 1
        self.rows = self.struct.n_tokens = end
        return start


def _pointer(array: npt.NDArray[Any], kind: Any) -> Any:
    return ctypes.cast(array.ctypes.data, ctypes.POINTER(kind))


def _device_list(name: str | None) -> "ctypes.Array[ctypes.c_void_p] | None":
    if name in (None, "cpu"):
        return None
    found = devices()
    chosen = [device.handle for device in found if device.name.lower() == str(name).lower()]
    if not chosen:
        names = ", ".join(["cpu", *(device.name for device in found if device.kind != "CPU")])
        raise BadRequest(f"There is no device “{name}”.", f"This build can use: {names}.", param="device")
    return (ctypes.c_void_p * 2)(chosen[0], None)


class _Override(ctypes.Structure):
    """``llama_model_tensor_buft_override``: tensors whose names match ``pattern`` go to the buffer type."""

    _fields_ = [("pattern", ctypes.c_char_p), ("buffer_type", ctypes.c_void_p)]


def _kept_experts(layers: int) -> "ctypes.Array[_Override] | None":
    """What keeps the routed experts of the first layers off the GPU."""
    if not layers:
        return None
    names = "|".join(map(str, range(layers)))
    pattern = rf"blk\.({names})\.ffn_(up|down|gate|gate_up)_(ch|)exps"
    return (_Override * 2)(_Override(pattern.encode(), cpu_buffer_type()), _Override(None, None))


def _offloaded(lines: Sequence[str]) -> tuple[int, int]:
    """From a line such as ``offloaded 33/33 layers to GPU``; (0, 0) when there was none."""
    for line in lines:
        words = line.split()
        if "offloaded" in words:
            done, _, total = words[words.index("offloaded") + 1].partition("/")
            if done.isdigit() and total.isdigit():
                return int(done), int(total)
    return 0, 0


def _buffer_bytes(lines: Sequence[str], names: Sequence[str]) -> int:
    """Sum of the sizes in lines such as ``CPU KV buffer size = 48.00 MiB``."""
    sizes = [line.rpartition("=")[2].split() for line in lines if any(name in line for name in names)]
    return sum(int(float(size[0]) * 2**20) for size in sizes if len(size) == 2 and size[1] == "MiB")


def _context_error(options: ContextOptions, errors: Sequence[str]) -> LocalInferError:
    reason = f": {errors[-1].split(': ', 1)[-1]}" if errors else ""
    if "cache type" in reason or "cache quantization" in reason:
        message = f"This model cannot have a KV cache of the type {options.kv_type}{reason}."
        return BadRequest(message, "Use the type f16.", param="kv")
    message = f"A context of {options.cells:,} tokens cannot be created{reason}."
    return OutOfMemory(message, "Ask for a smaller context or fewer slots.")


def _load_error(path: str, errors: Sequence[str]) -> LocalInferError:
    reasons = [line.split(": ", 1)[-1] for line in errors]
    if any(word in line.lower() for line in errors for word in _MEMORY_WORDS):
        return OutOfMemory("There is not enough memory to load the model.", "Choose a smaller model or quantisation.")
    reason = reasons[0] if reasons else "llama.cpp gave no reason"
    if "unknown model architecture" in reason:
        return BackendUnavailable(
            f"This build of llama.cpp does not know the model's architecture: {reason}.",
            "Update localinfer, or choose another model.",
        )
    return ModelFileInvalid(f"{path} cannot be loaded: {reason}.", "Fetch the file again, or choose another model.")
