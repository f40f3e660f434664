"""A stage for transcripts: an application that holds one, turns to show, and what is on the screen."""

import time
from collections.abc import Callable, Sequence

from textual.app import App, ComposeResult
from textual.message import Message
from textual.pilot import Pilot

from localinfer.history.values import Attachment, Turn, TurnState
from tui.widgets.transcript import OmissionMark, ShownTurn, Transcript

WORDS = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau upsilon"


class Stage(App[None]):
    """One transcript that fills the screen; its messages are kept."""

    def __init__(self, turns: Sequence[ShownTurn] = (), placeholder: str = "") -> None:
        super().__init__()
        self.transcript = Transcript(placeholder)
        self.transcript.show(turns)
        self.said: list[Message] = []

    def compose(self) -> ComposeResult:
        yield self.transcript

    def on_mount(self) -> None:
        self.transcript.focus()

    def on_transcript_copy_requested(self, message: Transcript.CopyRequested) -> None:
        self.said.append(message)

    def on_transcript_branch_requested(self, message: Transcript.BranchRequested) -> None:
        self.said.append(message)

    def on_transcript_retry_requested(self, message: Transcript.RetryRequested) -> None:
        self.said.append(message)

    def on_transcript_edit_requested(self, message: Transcript.EditRequested) -> None:
        self.said.append(message)

    def rows(self) -> list[str]:
        """What is on the screen, as it was painted."""
        width = self.transcript.scrollable_size.width
        painted = self.screen._compositor.render_strips()
        return [strip.crop(0, width).text.rstrip() for strip in painted[: self.transcript.scrollable_size.height]]

    def text(self) -> str:
        """The rows as one text."""
        return "\n".join(self.rows())


def shown(
    id: int,
    content: str,
    *,
    reply: bool = False,
    state: TurnState = "whole",
    reasoning: str = "",
    note: str = "",
    model: str = "M",
    branch: int = 1,
    branches: int = 1,
    figures: str = "",
    omission: OmissionMark | None = None,
    attachments: tuple[Attachment, ...] = (),
    thought_s: float | None = None,
    thought_tokens: int = 0,
) -> ShownTurn:
    """A turn made a moment ago."""
    turn = Turn(
        id=id,
        parent=id - 1 or None,
        role="assistant" if reply else "user",
        content=content,
        created_s=time.time(),
        reasoning=reasoning,
        attachments=attachments,
        state=state,
        model=model if reply else "",
        thought_s=thought_s,
        thought_tokens=thought_tokens,
        note=note,
    )
    return ShownTurn(turn=turn, branch=branch, branches=branches, figures=figures, omission=omission)


def talk(turns: int, lines: int = 6) -> list[ShownTurn]:
    """Questions and replies; every line of every turn says which it is."""
    return [
        shown(id, "\n\n".join(f"t{id}l{line} {WORDS}" for line in range(lines)), reply=id % 2 == 0)
        for id in range(1, turns + 1)
    ]


def growing(id: int) -> ShownTurn:
    """A reply that has nothing yet."""
    return shown(id, "", reply=True, state="growing")


async def until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    """Go on once something holds; a test that waits for what never comes fails."""
    end_s = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end_s, "it never came"
        await pilot.pause(0.005)
    await pilot.pause()
