"""The conversation in view."""

from tui.widgets.transcript.transcript import Transcript
from tui.widgets.transcript.values import OmissionMark, ShownTurn

__all__ = ["OmissionMark", "ShownTurn", "Transcript"]
