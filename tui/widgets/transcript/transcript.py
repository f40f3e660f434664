"""The transcript: a view of a branch that is told of turns and of a growing reply, and what a person can do with them.

It acts on nothing itself: it calls no engine and no store. What is wanted of a turn it says by messages; ids are those
of turns.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from tui.text.markdown import CodeBlock
from tui.widgets.bars import Keyed, KeyHint
from tui.widgets.transcript.layout import START, Place
from tui.widgets.transcript.pace import Pace
from tui.widgets.transcript.sheet import Part
from tui.widgets.transcript.values import ShownTurn
from tui.widgets.transcript.view import BookView

FENCES = ("```", "~~~")  # without one of them a text is not searched for code blocks


def _binding(keys: str, action: str, description: str, name: str, shown: str | None = None) -> Binding:
    return Binding(keys, action, description, show=False, key_display=shown, id=f"transcript.{name}")


class Transcript(Keyed, BookView):
    """A branch of a conversation and a reply that grows at its end.

    With the focus a turn is marked, at first the last in view: keys act on it. Without turns it takes no focus.
    """

    KEYS: ClassVar[tuple[KeyHint, ...]] = (
        ("Esc", "Back"),
        ("↑ ↓", "Scroll"),
        ("j k", "Message"),
        ("c", "Copy"),
        ("y", "Code"),
        ("r", "Retry"),
        ("e", "Edit"),
        ("[ ]", "Branch"),
        ("Enter", "Thinking"),
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        _binding("up", "rows(-1)", "Scroll up", "up"),
        _binding("down", "rows(1)", "Scroll down", "down"),
        _binding("pageup", "page(-1)", "Page up", "page-up"),
        _binding("pagedown", "page(1)", "Page down", "page-down"),
        _binding("home", "start", "First line", "start"),
        _binding("end", "follow", "End, and follow", "end"),
        _binding("k,alt+up", "turn(-1)", "Turn before", "turn-before"),
        _binding("j,alt+down", "turn(1)", "Turn after", "turn-after"),
        _binding("enter", "fold", "Show or fold the thinking", "fold"),
        _binding("c", "copy_turn", "Copy the turn", "copy"),
        _binding("y", "copy_code", "Copy a code block", "copy-code"),
        _binding("left_square_bracket,left", "branch(-1)", "Branch before", "branch-before", "["),
        _binding("right_square_bracket,right", "branch(1)", "Branch after", "branch-after", "]"),
        _binding("r", "retry", "Answer anew", "retry"),
        _binding("e", "edit", "Edit and send again", "edit"),
    ]

    class CopyRequested(Message):
        """``text`` is to be copied; ``what`` says what it is: "the reply", "code block 2 of 3 · python"."""

        def __init__(self, text: str, what: str) -> None:
            super().__init__()
            self.text = text
            self.what = what

    class BranchRequested(Message):
        """The branch before (``step`` -1) or after (1) the one in view is wanted at a turn."""

        def __init__(self, turn_id: int, step: int) -> None:
            super().__init__()
            self.turn_id = turn_id
            self.step = step

    class RetryRequested(Message):
        """A reply is to be made anew; ``turn_id`` is the reply's."""

        def __init__(self, turn_id: int) -> None:
            super().__init__()
            self.turn_id = turn_id

    class EditRequested(Message):
        """A message of the person's is to be changed and sent again."""

        def __init__(self, turn_id: int) -> None:
            super().__init__()
            self.turn_id = turn_id

    def __init__(self, placeholder: str = "", *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(placeholder, id=id, classes=classes)
        self._pace = Pace(self, self._draw_growth)
        self._code_copied: tuple[int, int] | None = None

    # What it is told.

    def show(self, turns: Sequence[ShownTurn], *, keep_position: bool = False) -> None:
        """Replace everything. It opens at the end, or, to keep the position, at the turn that was on top."""
        top = self._top
        on_top = self._book.turns[top.turn].turn.id if self._book.turns else None
        selected = self._book.turns[self.selected].turn.id if self.selected is not None else None
        self._unselect_text()
        self._book.reset(turns)
        kept = self._book.position(on_top) if on_top is not None and keep_position else None
        self.selected = self._book.position(selected) if selected is not None and keep_position else None
        self.following = self.following if kept is not None else True
        self._top = Place(kept, top.row) if kept is not None else START
        self._anchor, self._below = None, 0
        if self._settle():
            self._stand(self._top)
        else:
            self._laid_out = None
        self.refresh()

    def append(self, shown: ShownTurn) -> None:
        """One more turn at the end."""
        self._add(shown, growing=False)

    def begin_reply(self, shown: ShownTurn) -> None:
        """One more turn at the end, a reply that is going to grow."""
        self._add(shown, growing=True)

    def status(self, text: str) -> None:
        """What the growing reply is waiting for, shown until its text comes."""
        if (sheet := self._book.growing) is not None:
            sheet.wait(text)
            self._pace.ask()

    def think(self, text: str, tokens: int = 1) -> None:
        """The growing reply's next piece of reasoning, ``tokens`` long."""
        if (sheet := self._book.growing) is not None:
            sheet.think(text, tokens)
            self._pace.ask()

    def say(self, text: str) -> None:
        """The growing reply's next piece of text. With the first one its reasoning folds, unless it is being read."""
        if (sheet := self._book.growing) is not None:
            thinking = not sheet.answering and sheet.drawn is not None
            sheet.say(text)
            if thinking and sheet.answering and not self.following and sheet.drawn is not None:
                turn = self._top.turn
                if turn == self._book.growing_at and sheet.drawn.locate(self._top.row)[0] == Part.THOUGHT:
                    self._book.fold(turn, opened=True)
            self._pace.ask()

    def end_reply(self, shown: ShownTurn) -> None:
        """The growing reply is over; ``shown`` is what is kept of it."""
        if (turn := self._book.position(shown.turn.id)) is not None:
            before = self._book.sheet(turn).drawn
            self._book.end(shown)
            self._changed(turn, before, new=True)

    def update(self, shown: ShownTurn) -> None:
        """A turn has changed. One that is not here is left alone."""
        if (turn := self._book.position(shown.turn.id)) is not None:
            before = self._book.sheet(turn).drawn
            self._book.replace(shown)
            self._changed(turn, before)

    def set_fold(self, turn: int, *, opened: bool) -> None:
        """Show the reasoning of a turn, or only that there is some."""
        before = self._book.sheet(turn).drawn
        self._unselect_text()
        self._book.fold(turn, opened=opened)
        self._changed(turn, before)

    def _add(self, shown: ShownTurn, *, growing: bool) -> None:
        self._book.append(shown, growing=growing)
        self._changed(len(self._book.turns) - 1, None, new=True)

    def _draw_growth(self) -> None:
        if (turn := self._book.growing_at) is not None:
            self._changed(turn, self._book.sheet(turn).drawn, new=True)

    @property
    def selected_turn(self) -> ShownTurn | None:
        """The turn that the person has walked to or clicked."""
        return self._book.turns[self.selected] if self.selected is not None else None

    def select(self, turn_id: int | None) -> None:
        """Mark a turn and bring it into view; None marks none."""
        self._mark(self._book.position(turn_id) if turn_id is not None else None)
        if self.selected is not None:
            self.reveal(self.selected)

    # Keys.

    def action_rows(self, rows: int) -> None:
        """Scroll by rows."""
        self.scroll_rows(rows)

    def action_page(self, pages: int) -> None:
        """Scroll by screens."""
        self.scroll_page(pages)

    def action_start(self) -> None:
        """Scroll to the first line."""
        self.scroll_start()

    def action_follow(self) -> None:
        """Scroll to the end, follow it, and mark no turn any more."""
        self._mark(None)
        self.follow()

    def action_turn(self, step: int) -> None:
        """Walk to the turn before or after the marked one; at first to the last that is in view."""
        target = self._last_in_view() if self.selected is None else self.selected + step
        if target is not None and 0 <= target < len(self._book.turns):
            self._mark(target)
            self.reveal(target)

    def action_fold(self) -> None:
        """Show or fold the reasoning of the marked turn, else of the last that has some."""
        turn = self._latest(self._thinks)
        if turn is not None and self._thinks(turn):
            self.set_fold(turn, opened=not self._book.opened(turn))

    def action_copy_turn(self) -> None:
        """Ask for the marked turn to be copied, else the last reply."""
        turn = self._latest(lambda turn: self._book.turns[turn].turn.role == "assistant")
        if turn is not None:
            shown = self._book.turns[turn].turn
            text = self._book.sheet(turn).source
            self.post_message(self.CopyRequested(text, "your message" if shown.role == "user" else "the reply"))

    def action_copy_code(self) -> None:
        """Ask for a code block to be copied: the last of the marked turn or of the last reply with any, and the one
        before it with each further key press."""
        turn = self._latest(lambda turn: bool(self._code(turn)))
        if turn is None:
            return
        blocks = self._code(turn)
        if not blocks:
            return
        before = self._code_copied
        number = (before[1] - 1) % len(blocks) if before is not None and before[0] == turn else len(blocks) - 1
        self._code_copied = (turn, number)
        block = blocks[number]
        which = f"code block {number + 1} of {len(blocks)}" if len(blocks) > 1 else "the code block"
        what = f"{which} · {block.language}" if block.language else which
        self.post_message(self.CopyRequested(block.text, what))

    def action_branch(self, step: int) -> None:
        """Ask for another branch at the marked turn, else at the last that has several."""
        turn = self._latest(lambda turn: self._book.turns[turn].branches > 1)
        if turn is not None and self._book.turns[turn].branches > 1:
            self.post_message(self.BranchRequested(self._book.turns[turn].turn.id, step))

    def action_retry(self) -> None:
        """Ask for the marked reply to be made anew, or the one to the marked message."""
        turns = self._book.turns
        after = turns[self.selected :] if self.selected is not None else ()
        reply = next((shown.turn.id for shown in after if shown.turn.role == "assistant"), None)
        if reply is not None:
            self.post_message(self.RetryRequested(reply))

    def action_edit(self) -> None:
        """Ask for the marked message to be edited, or the one that the marked reply answers."""
        if self.selected is not None:
            self.edit()

    def edit(self) -> None:
        """Ask for the marked message to be edited, or the one that the marked reply answers; else the last."""
        turns = self._book.turns
        message = next((turns[turn].turn.id for turn in self._backwards() if turns[turn].turn.role == "user"), None)
        if message is not None:
            self.post_message(self.EditRequested(message))

    # Focus and mouse.

    def allow_focus(self) -> bool:
        """Whether there is anything to do here."""
        return super().allow_focus() and bool(self._book.turns)

    def on_focus(self, event: events.Focus) -> None:
        """Show what the keys act on."""
        if self.selected is None and not event.from_app_focus:
            self._mark(self._last_in_view())

    def on_blur(self) -> None:
        """The mark goes with the focus, unless it is the terminal that has lost it."""
        if self.app.app_focus:
            self._mark(None)

    def on_mouse_down(self) -> None:
        """Text is going to be selected; a click marks the turn that it is on."""
        self._mark(None)

    def on_click(self, event: events.Click) -> None:
        """A click marks a turn, opens what is folded, pages branches, goes to the end. The end of a drag does not."""
        if self.text_selection is not None:
            return
        meta = event.style.meta
        if meta.get("follow"):
            self.action_follow()
        elif (line := self.line_at(event.y)) is not None:
            self._mark(line.turn)
            if meta.get("fold"):
                self.set_fold(line.turn, opened=not self._book.opened(line.turn))
            elif step := meta.get("branch"):
                self.post_message(self.BranchRequested(self._book.turns[line.turn].turn.id, int(step)))

    # Which turn is meant.

    def _last_in_view(self) -> int | None:
        line = self.line_at(self.scrollable_size.height - 1)
        return line.turn if line is not None else len(self._book.turns) - 1 if self._book.turns else None

    def _backwards(self) -> Iterator[int]:
        last = self.selected if self.selected is not None else len(self._book.turns) - 1
        return iter(range(last, -1, -1))

    def _latest(self, fits: Callable[[int], bool]) -> int | None:
        """The marked turn, whether it fits or not; without one the last that does."""
        return self.selected if self.selected is not None else next(filter(fits, self._backwards()), None)

    def _thinks(self, turn: int) -> bool:
        if turn == self._book.growing_at:
            return self._book.sheet(turn).thinks
        return bool(self._book.turns[turn].turn.reasoning.strip())

    def _code(self, turn: int) -> tuple[CodeBlock, ...]:
        shown = self._book.turns[turn].turn
        if shown.role == "user" or (shown.state != "growing" and not any(map(shown.content.__contains__, FENCES))):
            return ()
        self._book.drawn(turn)
        return self._book.sheet(turn).code()

    def _mark(self, turn: int | None) -> None:
        if turn != self.selected:
            self.selected = turn
            self._code_copied = None
            self.refresh()
