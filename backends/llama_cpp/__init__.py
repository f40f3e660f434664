"""llama.cpp through llama-cpp-python's low-level API: any GGUF model on CUDA, Metal, Vulkan or any CPU."""

import os
from contextlib import ExitStack

import msgspec

from backends.base import Load, Progress, SequenceJob, StepEvent
from backends.drafting import CPU_GUESS, GPU_GUESS, PassCosts, Speculator, one_part
from backends.llama_cpp.draft_model import NativeDrafter, open_drafter
from backends.llama_cpp.library import devices, lib, notice
from backends.llama_cpp.native import KV_TYPES, ContextOptions, NativeContext, NativeModel
from backends.llama_cpp.passes import Calibration, streams
from backends.llama_cpp.prefix import PrefixCache
from backends.llama_cpp.room import Need, Room, make_room, padded
from backends.llama_cpp.scheduler import Scheduler
from backends.llama_cpp.threads import FreeCores
from backends.llama_cpp.tokenizer import LlamaTokenizer
from localinfer.errors import BackendUnavailable, BadRequest, LocalInferError
from localinfer.machine import available_cores, available_memory_bytes
from localinfer.models.sizes import outputs
from localinfer.types import DraftModel, LoadOptions, ModelInfo

BATCH = 2048
SNAPSHOT_BYTES = 64 * 1024 * 1024


class LlamaCppBackend:
    """``backends.base.Backend`` over one GGUF model."""

    def __init__(self, options: LoadOptions, progress: Progress) -> None:
        if options.kv_type not in KV_TYPES:
            raise BadRequest(
                f"There is no KV cache type “{options.kv_type}”.", f"Choose one of: {', '.join(KV_TYPES)}.", param="kv"
            )
        cores = os.cpu_count() or 1
        if options.threads is not None and options.threads > cores:
            raise BadRequest(
                f"{options.threads:,} threads are too many: this machine has {cores} cores.",
                "Leave --threads out to follow the free cores.",
                param="threads",
            )
        # Created before the load, so that the first step knows how busy the machine is.
        self._cores = None if options.threads else FreeCores(available_cores())
        lib.llama_backend_init()
        with ExitStack() as resources:
            self._model = NativeModel(
                options.model,
                gpu_layers=options.gpu_layers,
                device=options.device,
                progress=progress,
                parts=(options.model, *options.parts),
                expert_layers=options.expert_layers,
            )
            resources.callback(self._model.close)
            if options.require_gpu and not self._model.offloaded[0]:
                raise BackendUnavailable(
                    "No layer of the model was placed on a GPU.",
                    "Run “localinfer doctor” for the reason, or leave out --require-gpu.",
                )
            self._threads = options.threads or (self._cores.poll() if self._cores else 1)
            room = _room(self._model, options)
            self._context = NativeContext(
                self._model,
                ContextOptions(
                    cells=room.cells,
                    sequences=options.slots,
                    outputs=outputs(options.slots),
                    batch=BATCH,
                    threads=self._threads,
                    kv_type=options.kv_type,
                    unified=room.unified,
                ),
            )
            resources.callback(self._context.close)
            self.tokenizer = LlamaTokenizer(self._model)
            self.info = self._describe(options, room.context)
            cache = self._prefix_cache(options, room.context)
            self.drafter: NativeDrafter | None = None
            if options.draft is not None:
                self._open_drafter(options.draft, options, room, resources)
            drafted = outputs(options.slots) - options.slots
            costs = PassCosts(1 + drafted, GPU_GUESS if self._model.offloaded[0] else CPU_GUESS)
            self.speculator = Speculator(
                costs,
                one_part if room.unified else streams,
                budget=drafted,
                equalises=not room.unified and cache.trims,
                model=self.drafter,
                rollback_s=lambda: cache.rollback_s,
            )
            self._scheduler = Scheduler(
                self._model, self._context, cache, self.tokenizer, room.context, self.speculator
            )
            self._calibration = Calibration(self._context, costs, 1 + drafted, self._model.n_vocab)
            self._resources = resources.pop_all()

    def submit(self, job: SequenceJob) -> None:
        """Queue a sequence."""
        self._calibration.stop()
        self._scheduler.submit(job)

    def cancel(self, sequence_id: int) -> None:
        """Free the slot before the next step."""
        self._scheduler.cancel(sequence_id)

    def step(self) -> list[StepEvent]:
        """One forward pass on as many threads as there are cores free."""
        if self._cores is not None and (threads := self._cores.poll()) != self._threads:
            self._threads = threads
            self._context.set_threads(threads)
            if self.drafter is not None:
                self.drafter.set_threads(threads)
        return self._scheduler.step()

    def prepare(self) -> bool:
        """Measure one more pass of those that the choice of drafts rests on."""
        return self._calibration.step()

    def load(self) -> Load:
        """What it is doing now."""
        load = self._scheduler.load()
        return Load(running=load.running, queued=load.queued, threads=self._threads)

    def close(self) -> None:
        """Free the context, then the model."""
        self._resources.close()

    def _open_drafter(self, draft: DraftModel, options: LoadOptions, room: Room, resources: ExitStack) -> None:
        """Load the draft model; without it the model runs all the same, and says why."""
        try:
            self.drafter = open_drafter(
                draft,
                self._model,
                resources,
                slots=options.slots,
                length=room.context,
                threads=self._threads,
                cells=padded(room.context) * options.slots,
            )
        except LocalInferError as error:
            reason = f"{error.message} {error.hint}".strip()
            self.info = msgspec.structs.replace(self.info, no_draft=f"{draft.name} does not draft: {reason}")
        else:
            self.info = msgspec.structs.replace(self.info, draft=draft.name)

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
        trained = int(lib.llama_model_n_ctx_train(self._model.pointer))
        beyond = f"The model was trained with {trained:,} tokens; beyond them its text gets worse."
        return ModelInfo(
            name=options.name,
            backend="llama.cpp",
            description=self._model.describe(),
            quantization=self._model.quantization,
            context=length,
            slots=options.slots,
            vocabulary=self._model.n_vocab,
            parameters=int(lib.llama_model_n_params(self._model.pointer)),
            weights_bytes=int(lib.llama_model_size(self._model.pointer)),
            kv_bytes=self._context.kv_bytes,
            placement=placement,
            threads=self._threads,
            gpu_layers=done,
            layers=total,
            notices=tuple(text for text in (notice, beyond if 0 < trained < length else "") if text),
        )


def _room(model: NativeModel, options: LoadOptions) -> Room:
    """Cells for the cache, from the memory of where it will be: the GPUs if layers were placed there."""
    gpus = [device.free_bytes for device in devices() if "GPU" in device.kind] if model.offloaded[0] else []
    need = Need(
        cell_bytes=model.kv_bytes_per_token(options.kv_type),
        dense=not (model.window or model.hybrid),
        trained_context=int(lib.llama_model_n_ctx_train(model.pointer)),
        available_bytes=sum(gpus) or available_memory_bytes(),
    )
    return make_room(need, context=options.context, slots=options.slots, unified=options.unified)


def load(options: LoadOptions, progress: Progress) -> LlamaCppBackend:
    """Load a GGUF model; see ``backends.load``."""
    return LlamaCppBackend(options, progress)
