"""llama.cpp through llama-cpp-python's low-level API: any GGUF model on CUDA, Metal, Vulkan or any CPU."""

from contextlib import ExitStack

from backends.base import Load, Progress, SequenceJob, StepEvent
from backends.llama_cpp.library import lib
from backends.llama_cpp.native import KV_TYPES, ContextOptions, NativeContext, NativeModel
from backends.llama_cpp.prefix import PrefixCache
from backends.llama_cpp.scheduler import Scheduler
from backends.llama_cpp.threads import FreeCores, available_cores
from backends.llama_cpp.tokenizer import LlamaTokenizer
from localinfer.errors import BackendUnavailable, BadRequest, DoesNotFit
from localinfer.machine import available_memory_bytes
from localinfer.types import LoadOptions, ModelInfo

DEFAULT_CONTEXT = 8192
LEAST_CONTEXT = 512
BATCH = 2048
SNAPSHOT_BYTES = 64 * 1024 * 1024
_MEMORY_SHARE = 0.8  # of the available memory may go to the KV cache


class LlamaCppBackend:
    """``backends.base.Backend`` over one GGUF model."""

    def __init__(self, options: LoadOptions, progress: Progress) -> None:
        if options.kv_type not in KV_TYPES:
            raise BadRequest(
                f"There is no KV cache type “{options.kv_type}”.", f"Choose one of: {', '.join(KV_TYPES)}.", param="kv"
            )
        # Created before the load, so that the first step knows how busy the machine is.
        self._cores = None if options.threads else FreeCores(available_cores())
        lib.llama_backend_init()
        with ExitStack() as resources:
            self._model = NativeModel(
                options.model, gpu_layers=options.gpu_layers, device=options.device, progress=progress
            )
            resources.callback(self._model.close)
            if options.require_gpu and not self._model.offloaded[0]:
                raise BackendUnavailable(
                    "No layer of the model was placed on a GPU.",
                    "Run “localinfer doctor” for the reason, or leave out --require-gpu.",
                )
            self._threads = options.threads or (self._cores.poll() if self._cores else 1)
            length = _context_length(self._model, options)
            self._context = NativeContext(
                self._model,
                ContextOptions(
                    context=length,
                    sequences=options.slots,
                    outputs=options.slots,
                    batch=BATCH,
                    threads=self._threads,
                    kv_type=options.kv_type,
                    unified=options.unified,
                ),
            )
            resources.callback(self._context.close)
            self.tokenizer = LlamaTokenizer(self._model)
            self.info = self._describe(options, length)
            self._scheduler = Scheduler(
                self._model, self._context, self._prefix_cache(options, length), self.tokenizer, length
            )
            self._resources = resources.pop_all()

    def submit(self, job: SequenceJob) -> None:
        """Queue a sequence."""
        self._scheduler.submit(job)

    def cancel(self, sequence_id: int) -> None:
        """Free the slot before the next step."""
        self._scheduler.cancel(sequence_id)

    def step(self) -> list[StepEvent]:
        """One forward pass on as many threads as there are cores free."""
        if self._cores is not None and (threads := self._cores.poll()) != self._threads:
            self._threads = threads
            self._context.set_threads(threads)
        return self._scheduler.step()

    def load(self) -> Load:
        """What it is doing now."""
        load = self._scheduler.load()
        return Load(running=load.running, queued=load.queued, threads=self._threads)

    def close(self) -> None:
        """Free the context, then the model."""
        self._resources.close()

    def _prefix_cache(self, options: LoadOptions, length: int) -> PrefixCache:
        budget = options.cache_tokens
        if budget is None:
            budget = SNAPSHOT_BYTES // max(1, self._model.kv_bytes_per_token(options.kv_type))
        return PrefixCache(
            self._context,
            options.slots,
            length,
            window=self._model.window,
            trims=not (self._model.recurrent or self._model.hybrid),
            snapshot_tokens=min(budget, options.slots * length),
        )

    def _describe(self, options: LoadOptions, length: int) -> ModelInfo:
        done, total = self._model.offloaded
        placement = f"GPU {done}/{total} layers" if done else "CPU"
        return ModelInfo(
            name=options.name,
            backend="llama.cpp",
            description=self._model.describe(),
            context=length,
            slots=options.slots,
            vocabulary=self._model.n_vocab,
            parameters=int(lib.llama_model_n_params(self._model.pointer)),
            weights_bytes=int(lib.llama_model_size(self._model.pointer)),
            kv_bytes=self._context.kv_bytes,
            placement=placement,
            threads=self._threads,
        )


def _context_length(model: NativeModel, options: LoadOptions) -> int:
    """Tokens per slot: what was asked for, else the smaller of 8,192, the trained context and what memory allows.

    Raises ``DoesNotFit`` for a context that certainly exceeds the machine's memory: the system would end the process.
    """
    per_token = model.kv_bytes_per_token(options.kv_type) * options.slots
    available = available_memory_bytes()
    if options.context is None:
        trained = int(lib.llama_model_n_ctx_train(model.pointer)) or DEFAULT_CONTEXT
        affordable = int(available * _MEMORY_SHARE) // max(1, per_token) // 256 * 256
        return max(LEAST_CONTEXT, min(DEFAULT_CONTEXT, trained, affordable))
    # At least this share of the layers attends to everything, in the sparsest models there are.
    least = options.context * per_token // (8 if model.window or model.hybrid else 1)
    if least > available and not model.offloaded[0]:
        slots = f" in {options.slots} slots" if options.slots > 1 else ""
        raise DoesNotFit(
            f"A context of {options.context:,} tokens{slots} needs {least / 2**30:.1f} GiB, "
            f"but {available / 2**30:.1f} GiB are free.",
            f"Ask for a smaller context, for example {max(LEAST_CONTEXT, available // 2 // max(1, per_token)):,}.",
        )
    return options.context


def load(options: LoadOptions, progress: Progress) -> LlamaCppBackend:
    """Load a GGUF model; see ``backends.load``."""
    return LlamaCppBackend(options, progress)
