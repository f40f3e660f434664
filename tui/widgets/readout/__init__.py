"""The live figures: what they are (``Reading``), how they come about (``Meter``), and two ways to show them.

``Readout`` is a slim column, ``StatusLine`` one line for narrow terminals. Neither has a timer: the owner calls
``show(meter.read(...))``, ten times a second while something runs and once a second otherwise.
"""

from tui.widgets.readout.column import Readout
from tui.widgets.readout.line import StatusLine
from tui.widgets.readout.meter import Meter
from tui.widgets.readout.values import Budget, DeviceMemory, Parts, Phase, Reading

__all__ = ["Budget", "DeviceMemory", "Meter", "Parts", "Phase", "Reading", "Readout", "StatusLine"]
