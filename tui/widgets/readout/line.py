"""The readout in one line, for narrow terminals: the same figures, the most important ones that there is room for."""

from textual import events
from textual.content import Content
from textual.widget import Widget

from tui.widgets.readout import bars, figures
from tui.widgets.readout.rows import cell_len, fit, words
from tui.widgets.readout.values import Reading

_SEPARATOR = " · "
_SPARK = 12


class StatusLine(Widget):
    """What goes on in one line. It has no timer: the owner calls ``show``."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    StatusLine { height: 1; padding: 0 1; background: $surface; color: $text-muted; }
    """

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._reading = Reading()
        self._text = ""

    def show(self, reading: Reading) -> None:
        """Show ``reading``; nothing is painted where the line is the same."""
        self._reading = reading
        self._draw()

    def _draw(self) -> None:
        text = status(self._reading, self.size.width)
        if text != self._text:
            self._text = text
            self.refresh()

    def render(self) -> Content:
        """The line."""
        return Content(self._text)

    def _on_resize(self, event: events.Resize) -> None:
        self._draw()


def status(reading: Reading, width: int) -> str:
    """``reading`` in at most ``width`` cells; what does not fit is left out, the least important first."""
    parts = _parts(reading)
    order = sorted(range(len(parts)), key=lambda index: parts[index][0])
    kept: set[int] = set()
    for index in order:
        chosen = [parts[one][1] for one in sorted({*kept, index})]
        if cell_len(_SEPARATOR.join(chosen)) <= width:
            kept.add(index)
    if not kept:
        return fit(parts[order[0]][1], width)
    return _SEPARATOR.join(parts[index][1] for index in sorted(kept))


def _parts(reading: Reading) -> list[tuple[int, str]]:
    """What can be said, in the order of the line; the lower its number, the longer it stays."""
    elapsed = figures.seconds(reading.elapsed_s)
    match reading.phase:
        case "checking" | "loading":
            first = [(0, figures.getting(reading.phase, reading.load_progress))]
            over = reading.metrics is not None and reading.metrics.ttft_s is not None
            first += [(1, f"TTFT {elapsed}" if over else elapsed)] if reading.elapsed_s is not None else []
        case "queued":
            first = [(0, f"queued, {reading.ahead:,} ahead" if reading.ahead else "queued"), (1, elapsed)]
        case "prefill":
            rate = reading.metrics.prefill_tps if reading.metrics else None
            total = figures.count(reading.prompt_tokens)
            done = f"{figures.count(reading.prefilled):>{len(total)}}/{total}"
            first = [(0, f"prefill {done}"), (2, figures.rate(rate)), (1, elapsed)]
        case "decode":
            first = [(0, f"{figures.number(reading.live_tps):>4} tok/s{_spark(reading)}"), (1, f"TTFT {elapsed}")]
        case "done":
            mean = reading.metrics.tps if reading.metrics else None
            first = [(0, f"{figures.number(mean):>4} tok/s"), (1, f"TTFT {elapsed}")]
        case "none":
            first = [(0, "no model is loaded")]
        case _:
            first = [(0, "ready")]
    return first + _standing(reading)


def _standing(reading: Reading) -> list[tuple[int, str]]:
    """What is told in every phase, as far as it is known."""
    told = []
    metrics, budget, pulse = reading.metrics, reading.budget, reading.pulse
    if metrics is not None and metrics.completion_tokens:
        told.append((6, f"{metrics.completion_tokens:,} tokens"))
    if metrics is not None and metrics.speculation_gain is not None:
        told.append((4, f"gain {figures.factor(metrics.speculation_gain)}"))
    if budget is not None and budget.context:
        told.append((3, f"ctx {figures.percent(budget.used / budget.context)}"))
    if model_bytes := sum(device.model_bytes for device in reading.memory):
        told.append((5, figures.size(model_bytes)))
    if reading.roofline is not None:
        told.append((7, f"roofline {figures.percent(reading.roofline.share)}"))
    if pulse is not None and pulse.cpu_load is not None:
        told.append((8, f"CPU {figures.percent(pulse.cpu_load):>5}"))
    if pulse is not None and pulse.power.throttled:
        told.append((2, words(pulse.power.throttled)))
    return told


def _spark(reading: Reading) -> str:
    recent = reading.history[-_SPARK:]
    line = bars.spark(recent, _SPARK, reading.history_second).lstrip()
    return f" {line:>{_SPARK}}" if line else ""
