"""From what a generation tells to what the readout shows. It reads no clock: every instant is handed in.

One meter follows one conversation: one generation at a time, with what the model and the machine say of themselves.
"""

from typing import TYPE_CHECKING, Literal

from localinfer.types import EngineStatus, Event, Metrics, Piece, Speculation
from tui.widgets.readout.course import Course, Kept, Measured
from tui.widgets.readout.drafting import drafting
from tui.widgets.readout.memory import memory
from tui.widgets.readout.pace import Pace
from tui.widgets.readout.values import Budget, Parts, Phase, Reading

if TYPE_CHECKING:
    from localinfer.machine.pulse import Pulse
    from localinfer.models.plan import MemoryPlan
    from localinfer.roofline import Roofline


_USUAL = Speculation()


class Meter:
    """Makes readings: ``choose`` a model, ``begin`` with a generation or ``recall`` a reply, ``observe`` events,
    ``read`` at any time."""

    def __init__(self) -> None:
        self._pace = Pace()
        self._course: Course | None = None
        self._held: Budget | None = None
        self.choose(None)

    def choose(self, plan: "MemoryPlan | None", placement: str = "") -> None:
        """Another model is used from here on: its plan if there is one, and where it runs in words. The figures stay
        those of the last reply."""
        self._plan, self._placement = plan, placement

    def hold(self, budget: Budget | None) -> None:
        """What the context holds while nothing runs: another conversation was opened, or this one was changed. Its
        ``system`` is also that of the next generation. None: not known."""
        self._held = budget

    def recall(self, metrics: Metrics | None) -> None:
        """Another reply is looked at, of which ``metrics`` was kept; None: there is no reply, or nothing of it was
        measured. The speed of the last minute stays."""
        self._course = Course(Kept(metrics)) if metrics is not None else None

    def begin(self, generation: Measured, now_ns: int) -> None:
        """``generation`` was submitted at ``now_ns``."""
        self._course = Course(generation, now_ns, self._plan)
        self._pace.begin()

    def observe(self, event: Event) -> None:
        """Take in one event of the generation. All of them: the live speed is made of the pieces' instants."""
        if self._course is not None:
            self._course.observe(event)
        if isinstance(event, Piece):
            self._pace.take(event)

    def read(
        self,
        now_ns: int,
        status: EngineStatus | None = None,
        pulse: "Pulse | None" = None,
        *,
        getting: Literal["checking", "loading"] | None = None,
        progress: float | None = None,
        speculation: Speculation = _USUAL,
    ) -> Reading:
        """What is to be shown at ``now_ns``. ``getting`` says what is being done to have a model, and ``progress`` (0
        to 1) how far that is; ``speculation`` is what the next reply is asked for with."""
        course = self._course
        settled = course is None or course.over
        metrics = course.metrics() if course else None
        loading = getting == "loading" or (status is not None and status.state == "loading")
        phase = self._phase(status, getting, loading=loading)
        model = status.model if status is not None else None
        drafter, off = drafting(metrics, model, speculation, running=not settled)
        elapsed_s = course.elapsed_s(metrics, now_ns) if course and metrics else None
        live_tps = self._pace.live_tps(now_ns) if phase == "decode" else None
        second, history = self._pace.history(self._pace.until_ns(now_ns) if phase == "decode" else now_ns)
        if metrics is not None and not settled:
            self._held = self._budget(metrics, status)
        return Reading(
            phase=phase,
            metrics=metrics,
            load_progress=self._progress(progress) if phase == "loading" else None,
            ahead=course.queued.ahead if course and course.queued and phase == "queued" else None,
            prompt_tokens=metrics.prompt_tokens if metrics else None,
            prefilled=course.prefilled.done_tokens if course and course.prefilled else None,
            elapsed_s=elapsed_s,
            parts=course.parts(metrics, phase, elapsed_s) if course and metrics else Parts(),
            live_tps=live_tps,
            history=history,
            history_second=second,
            roofline=self._roofline(metrics, phase, live_tps),
            drafter=drafter,
            off=off,
            memory=memory(self._plan, pulse, loaded=status is not None and status.state == "ready"),
            budget=self._held,
            pulse=pulse,
            threads=status.threads if status else None,
            placement=self._placement or (model.placement if model is not None else ""),
        )

    def _phase(self, status: EngineStatus | None, getting: Phase | None, *, loading: bool) -> Phase:
        if self._course is not None and not self._course.over:
            return self._course.phase(loading=loading)
        if loading or getting is not None:
            return "loading" if loading else "checking"
        if self._course is not None:
            return "done"
        return "idle" if status is not None and status.state in ("idle", "ready") else "none"

    def _progress(self, told: float | None) -> float | None:
        course = self._course
        return told if told is not None or course is None or course.over else course.progress

    def _budget(self, metrics: Metrics, status: EngineStatus | None) -> Budget | None:
        """What the context holds with this generation in it, as soon as its prompt was counted."""
        held = self._held
        context = status.model.context if status and status.model else held.context if held else 0
        if metrics.prompt_tokens is None or not context:
            return held
        system = min(held.system if held else 0, metrics.prompt_tokens)
        return Budget(
            context=context,
            system=system,
            history=metrics.prompt_tokens - system,
            reply=metrics.completion_tokens,
            cached=metrics.cached_tokens,
        )

    def _roofline(self, metrics: Metrics | None, phase: Phase, live_tps: float | None) -> "Roofline | None":
        """By the live speed at this depth while it decodes, afterwards by the mean speed at the mean depth."""
        plan = self._course.plan if self._course else None
        if plan is None or metrics is None or not metrics.completion_tokens:
            return None
        tokens = metrics.completion_tokens
        tps = live_tps if phase == "decode" else metrics.tps
        if tps is None:
            return None
        from localinfer.roofline import roofline

        depth = (metrics.prompt_tokens or 0) + (tokens if phase == "decode" else tokens // 2)
        return roofline(plan, depth, tps * (tokens - metrics.accepted) / tokens)
