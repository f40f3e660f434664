"""What a transcript says around the texts of turns: heads, folds, states, sizes. Words only, no styles."""

from datetime import datetime

from localinfer.history.values import Attachment, Turn
from tui.text.cells import steady
from tui.text.clean import clean
from tui.widgets.transcript.values import OmissionMark, ShownTurn

HUGE = "too long for Markdown · shown as it was written"

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def line(text: str) -> str:
    """Foreign text as one harmless line."""
    return " ".join(steady(clean(text)).split())


def instant(then_s: float, now: datetime) -> str:
    """When a turn was made: "14:32" today, "3 Mar 14:32" this year, "3 Mar 2025 14:32" before."""
    then = datetime.fromtimestamp(then_s)
    clock = f"{then:%H:%M}"
    if then.date() == now.date():
        return clock
    day = f"{then.day} {_MONTHS[then.month - 1]}"
    return f"{day} {clock}" if then.year == now.year else f"{day} {then.year} {clock}"


def speaker(turn: Turn) -> str:
    """Whose turn it is."""
    return "you" if turn.role == "user" else line(turn.model) or "reply"


def size(count_bytes: int) -> str:
    """Bytes in decimal units: "812 B", "12.4 kB", "3.1 MB"."""
    if count_bytes < 1000:
        return f"{count_bytes} B"
    value, unit = (count_bytes / 1e3, "kB") if count_bytes < 999_950 else (count_bytes / 1e6, "MB")
    return f"{value:,.1f} {unit}"


def attachment(attached: Attachment) -> str:
    """One line for a file that was sent along."""
    return f"▤ {line(attached.name)} · {size(attached.size_bytes)}"


def _measure(seconds: float | None, tokens: int) -> str:
    parts = [f"{seconds:.1f} s"] if seconds is not None else []
    if tokens:
        parts.append(f"{tokens:,} token{'s' * (tokens != 1)}")
    return " · ".join(parts)


def thought(seconds: float | None, tokens: int, *, opened: bool, going_on: bool) -> str:
    """The line that reasoning folds to: "▸ thought for 4.2 s · 310 tokens"."""
    mark = "▾" if opened else "▸"
    measured = _measure(seconds, tokens)
    if going_on:
        return f"{mark} thinking {measured}".rstrip()
    if seconds is not None:
        return f"{mark} thought for {measured}"
    return f"{mark} thought · {measured}" if measured else f"{mark} thought"


def omission(mark: OmissionMark) -> str:
    """The line between what the model sees and what it no longer does."""
    turns = "1 turn" if mark.turns == 1 else f"{mark.turns:,} turns"
    verb = "is" if mark.turns == 1 else "are"
    what = "; the model sees this summary instead" if mark.summary else " of what the model sees"
    return f"{turns} before this {verb} left out{what}"


def ending(turn: Turn) -> str:
    """How a turn ended, where that needs a word; else nothing."""
    note = line(turn.note)
    unanswered = turn.role == "assistant" and not turn.content.strip()
    match turn.state:
        case "stopped":
            kept = "before the answer began" if unanswered else "kept as far as it came"
            return f"■ stopped · {note or kept}"
        case "cut":
            where = note or "at the limit of its length"
            return f"✂ cut {where}{' · before the answer began' if unanswered else ''}"
        case "failed":
            return f"✗ {note or 'the reply failed'}"
        case "whole" if unanswered:
            return "– the model answered nothing"
        case _:
            return ""


def branch(shown: ShownTurn) -> str:
    """Which of several branches this is: "2/3"."""
    return f"{shown.branch}/{shown.branches}"


def below(rows: int | None, key: str) -> str:
    """What waits under the view, and the key that goes there; None: an unknown number of lines."""
    if rows is None:
        return f"↓ new text · {key}"
    return f"↓ {rows:,} new line{'s' * (rows != 1)} · {key}"
