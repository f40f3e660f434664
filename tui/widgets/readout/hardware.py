"""The sections of the column that tell of the machine: the memory of each device, load, temperature, power."""

from typing import TYPE_CHECKING

from tui.widgets.readout import bars, figures
from tui.widgets.readout.figures import DASH
from tui.widgets.readout.rows import Row, Span, cell_len, fit, named, pair, row, words, wrap
from tui.widgets.readout.values import DeviceMemory, Reading

if TYPE_CHECKING:
    from localinfer.machine.pulse import Pulse

_WEIGHTS = Span("█", "weights")
_KV = Span("▓", "kv")
_OTHER = Span("▒", "buffers")
_APPS = Span("░", "apps")
TROUBLE = 2
_ENTRY = 15  # cells of "█ model 4.1 GiB"


def memory(device: DeviceMemory, width: int) -> list[Row]:
    """The memory of one device as a bar, and what its parts are."""
    rest = device.free_bytes
    if rest is None:
        rest = max(0, (device.total_bytes or 0) - device.model_bytes)
    sizes = (device.weights_bytes, device.kv_bytes, device.other_bytes, device.programs_bytes)
    shares = [(float(size or 0), *glyph) for size, glyph in zip(sizes, (_WEIGHTS, _KV, _OTHER, _APPS), strict=True)]
    model, kv, other = (figures.size(size or None) for size in sizes[:3])
    entries = [
        named("weights", _WEIGHTS, "model", model),
        named("kv", _KV, "KV", kv),
        named("other", _OTHER, "other", other),
        named("apps", _APPS, "apps", figures.size(device.programs_bytes)),
    ]
    if (width - 2) // 2 >= _ENTRY:
        legend = [pair(width, entries[0], entries[1]), pair(width, entries[2], entries[3])]
    else:
        legend = [row(one.figure, width, one.name, [Span(one.value)]) for one in entries]
    return [
        row("memory", width, [Span(words(device.name), "title")], [Span(_free(device), "strong")]),
        bars.stacked("", width, [*shares, (float(rest), bars.EMPTY, "empty")]),
        *legend,
    ]


def machine(reading: Reading, width: int) -> list[Row]:
    """Where the model runs and how the machine is doing. What it cannot be asked for is left out."""
    threads = f" ×{reading.threads}" if reading.threads and reading.placement == "CPU" else ""
    place = f"{words(reading.placement)}{threads}" if reading.placement else DASH
    place = figures.getting(reading.phase, reading.load_progress) or place
    place = fit(place, min(cell_len(place), max(0, width - len("Machine "))))
    rows = [row("placement", width, [Span("Machine", "title")], [Span(place, "strong")])]
    pulse = reading.pulse
    if pulse is None:
        return [*rows, row("cpu", width, [Span("CPU", "label")], [Span(figures.percent(None))])]
    busy: list[tuple[str, str, float | None, float | None, float | None]]
    busy = [("cpu", "CPU", pulse.cpu_load, pulse.cpu_temperature_c, None)]
    busy += [
        ("gpu", f"GPU {number}" if len(pulse.gpus) > 1 else "GPU", gpu.load, gpu.temperature_c, gpu.power_w)
        for number, gpu in enumerate(pulse.gpus)
    ]
    # A column for what at least one of them tells.
    hot = any(celsius is not None for *_, celsius, _ in busy)
    fed = any(watts is not None for *_, watts in busy)
    for figure, name, load, celsius, watts in busy:
        told = f"{figures.percent(load):>6}"
        told += f"{figures.celsius(celsius):>7}" if hot else ""
        told += f"{figures.watts(watts) if figure == 'gpu' else '':>7}" if fed else ""
        bar = bars.level(load, max(0, width - len(told) - 7))
        rows.append(row(figure, width, [Span(f"{name:<6}", "label"), *bar], [Span(told)]))
    return rows + _power(pulse, width)


def trouble(reading: Reading, width: int) -> list[Row]:
    """What slows the machine down, in words; nothing if nothing does. ``TROUBLE`` rows at most."""
    told = words(reading.pulse.power.throttled) if reading.pulse is not None else ""
    lines = wrap(told[:1].upper() + told[1:], width)[:TROUBLE]
    return [row("power", width, [Span(line, "warning")]) for line in lines]


def _free(device: DeviceMemory) -> str:
    """What is free of how much: "1.6 of 8.0 GiB free"."""
    free, total = figures.size(device.free_bytes), figures.size(device.total_bytes)
    number, _, unit = free.partition(" ")
    return f"{number if total.endswith(unit) else free} of {total} free"


def _power(pulse: "Pulse", width: int) -> list[Row]:
    power = pulse.power
    if power.source is None and power.battery_percent is None:
        return []
    told = {"mains": "mains", "battery": "battery", None: ""}[power.source]
    if power.battery_percent is not None:
        charge = f"{power.battery_percent:.0f} %"
        told = f"{told} {charge}" if power.source == "battery" else f"{told} · battery {charge}".removeprefix(" · ")
    return [row("power", width, [Span("power", "label")], [Span(told)])]
