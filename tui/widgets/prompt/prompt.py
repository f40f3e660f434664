"""Where a person types: the editor with its completion, its attachments and a line that says what is the matter.

It turns keys into messages, commands and attachments for its owner. It knows no model, counts no tokens and keeps
nothing between runs.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import TextArea
from textual.worker import Worker

from localinfer.errors import LocalInferError, StorageUnavailable
from localinfer.history.values import Attachment
from tui.text.clean import typed
from tui.widgets.prompt.assist import Assist
from tui.widgets.prompt.chips import Chip, Chips
from tui.widgets.prompt.commands import Command, Given, Unknown, escaped, meaning, unescaped
from tui.widgets.prompt.completion import Completion
from tui.widgets.prompt.draft import Draft
from tui.widgets.prompt.editor import Editor
from tui.widgets.prompt.files import gather, named, read
from tui.widgets.prompt.recall import Recall
from tui.widgets.prompt.sizes import count
from tui.widgets.prompt.status import Severity, Status
from tui.widgets.prompt.threads import aside

PLACEHOLDER = "Ask anything · / commands · @ files"
_PASTED = "pasted text"
_SLOW_S = 0.3
MOST_EDITED_BYTES = 200_000

T = TypeVar("T")


class Prompt(Vertical):
    """The prompt of a chat.

    Enter sends; Ctrl+J, Shift+Enter and Alt+Enter begin a new line. A paste never sends. One of 400 lines or 20 kB and
    more becomes an attachment, ``pasted text · 1,234 lines``; Tab goes to the chips, where Enter puts it into the text
    after all (up to 200 kB) and Backspace takes a chip away, as it does at the very start of the text.

    ``/`` begins a command of ``commands``, ``//`` a message that begins with a slash. An unknown ``/word`` is sent by
    a second Enter only. ``@path`` attaches a text file, relative to ``folder``: when it is chosen from the list, and
    when a message with it is sent. A file that cannot be attached is an error, and a second Enter sends without it.

    Messages: ``Submitted``, ``CommandGiven``, ``AttachmentAdded`` (answer with ``counted``), ``Changed``, ``Escaped``,
    ``ModeLeft``. A message that was submitted is gone from here; if it cannot be sent, the owner gives it back with
    ``set_text``.
    """

    DEFAULT_CSS = """
    Prompt {
        height: auto;
        & > Editor {
            height: auto; background: $surface; padding: 0 1; scrollbar-size-vertical: 1;
            border: none; border-left: outer $border-blurred;
            &:focus { border: none; border-left: outer $primary; }
        }
    }
    """

    class Submitted(Message):
        """A message is to be sent. ``mode`` is what was given to ``set_text``."""

        def __init__(self, text: str, attachments: tuple[Attachment, ...], mode: str) -> None:
            super().__init__()
            self.text, self.attachments, self.mode = text, attachments, mode

    class CommandGiven(Message):
        """A command is to be carried out, also while the prompt is locked."""

        def __init__(self, name: str, argument: str) -> None:
            super().__init__()
            self.name, self.argument = name, argument

    class AttachmentAdded(Message):
        """A file was attached or a long text pasted; the owner counts its tokens."""

        def __init__(self, id: int, attachment: Attachment) -> None:
            super().__init__()
            self.id, self.attachment = id, attachment

    class Changed(Message):
        """``draft`` is another."""

    class Escaped(Message):
        """Esc was pressed where it had nothing to close."""

    class ModeLeft(Message):
        """Esc ended a mode that ``set_text`` began; the draft from before is back."""

    def __init__(self, commands: Sequence[Command] = (), *, folder: Path | None = None, id: str | None = None) -> None:
        super().__init__(id=id)
        self._commands = tuple(commands)
        self._folder = folder or Path.cwd()
        self._completion = Completion()
        self._editor = Editor(self._take_key, self._keep_beside, PLACEHOLDER)
        self._chips = Chips()
        self._status = Status()
        self._assist = Assist(self._editor, self._completion, self._folder, self._attach_file, self._send)
        self._assist.commands = self._commands
        self._recall = Recall()
        self._before_mode = Draft()
        self._insisted: str | None = None  # Enter sends this text whatever is wrong with it
        self._reading: Worker[None] | None = None

    def compose(self) -> ComposeResult:
        yield self._completion
        yield self._editor
        yield self._chips
        yield self._status

    # What the owner does

    @property
    def text(self) -> str:
        """What is typed."""
        return self._editor.text

    @property
    def mode(self) -> str:
        """The mode that ``set_text`` began, else empty."""
        return self._status.mode

    @property
    def draft(self) -> Draft:
        """What is typed and attached; it can be set."""
        return Draft(text=self._editor.text, attachments=self._chips.attachments)

    @draft.setter
    def draft(self, draft: Draft) -> None:
        self._fill(typed(draft.text), draft.attachments)

    def set_text(self, text: str, attachments: Sequence[Attachment] = (), *, mode: str = "") -> None:
        """Put a message here to be changed and sent again. ``mode`` says what for (“editing”): it is shown until the
        message is sent or Esc is pressed, and then the draft from before comes back."""
        if mode and not self._status.mode:
            self._before_mode = self.draft
        self._status.mode = mode
        self._fill(self._as_typed(text), attachments)
        self._show_status()

    def clear(self) -> None:
        """Empty the prompt, and end its mode."""
        self._status.mode, self._before_mode = "", Draft()
        self._fill("", ())

    def insert(self, text: str) -> None:
        """Put ``text`` at the cursor, in place of what is selected."""
        self._editor.put(typed(text))

    def remember(self, texts: Sequence[str]) -> None:
        """Know the messages that ↑ goes back to, the oldest first."""
        self._recall.remember([self._as_typed(text) for text in texts])

    def lock_sending(self, reason: str) -> None:
        """Keep Enter from sending; typing and commands go on."""
        self._status.locked = reason
        self._status.show()

    def unlock_sending(self) -> None:
        """Let Enter send again."""
        self._status.locked = ""
        self._status.show()

    def hint(self, text: str, severity: Severity = "information") -> None:
        """Say something under the editor until the text changes."""
        self._status.hint(text, severity, self._editor.text)

    def counted(self, id: int, tokens: int) -> None:
        """Tell how many tokens the attachment ``id`` has."""
        self._chips.counted(id, tokens)

    def focus(self, scroll_visible: bool = True) -> "Prompt":
        """Give the editor the focus."""
        self._editor.focus(scroll_visible)
        return self

    # What keys mean

    def _take_key(self, key: str) -> bool:
        """Use a key that was pressed in the editor; whether it was of use here."""
        editor = self._editor
        if key == "enter":
            if not self._assist.key("enter"):
                self._send()
            return True
        if self._assist.key(key):
            return True
        if key == "up" and editor.on_first_row:
            return self._recalled(self._recall.back(editor.text), cursor_at_end=False)
        if key == "down" and editor.on_last_row:
            return self._recalled(self._recall.forward(editor.text), cursor_at_end=True)
        if key == "escape":
            self._escape()
            return True
        if key == "backspace" and editor.cursor_location == (0, 0) and editor.selection.is_empty and self._chips.chips:
            self._chips.drop(self._chips.chips[-1])
            return True
        return False

    def _recalled(self, text: str | None, *, cursor_at_end: bool) -> bool:
        if text is not None:
            self._editor.replace_all(text, cursor_at_end=cursor_at_end)
            self._assist.close()
        return text is not None

    def _escape(self) -> None:
        if self._reading and not self._reading.is_finished:
            self._stop_reading()
        elif self._status.mode:
            self._leave_mode()
            self.post_message(self.ModeLeft())
        else:
            self.post_message(self.Escaped())

    def _leave_mode(self) -> None:
        draft, self._status.mode, self._before_mode = self._before_mode, "", Draft()
        self.draft = draft
        self._show_status()

    # Sending

    def _send(self) -> None:
        text = self._editor.text
        what = meaning(text, self._commands)
        if isinstance(what, Given):
            self._recall.add(text)
            self._editor.load_text("")
            self.post_message(self.CommandGiven(what.command.name, what.argument))
            return
        if isinstance(what, Unknown) and self._insisted != text:
            near = f" · did you mean /{what.near}?" if what.near else ""
            self._warn(f"no command /{what.word}{near} · Enter again sends it as a message", "warning")
            return
        if not text.strip() and not self._chips.chips:
            return
        if self._status.locked:
            self.app.bell()
            return
        if self._insisted != text and any(named(text)):
            if self._reading is None or self._reading.is_finished:
                self._reading = self.run_worker(self._gather(text), group="attaching", exit_on_error=False)
            return
        self._submit(text)

    def _submit(self, text: str) -> None:
        attachments, mode = self._chips.attachments, self._status.mode
        self._recall.add(text)
        if mode:
            self._leave_mode()
        else:
            self._fill("", ())
        message = unescaped(text.strip("\n").rstrip())
        self.post_message(self.Submitted(message, attachments, mode))

    def _warn(self, text: str, severity: Severity) -> None:
        """Say what is wrong with the text; the next Enter sends it nevertheless."""
        self._insisted = self._editor.text
        self.hint(text, severity)

    async def _gather(self, text: str) -> None:
        """Attach what ``text`` names, then send it, unless it has changed or something is wrong."""
        try:
            found, refused = await self._patiently(partial(gather, text, self._folder))
        except StorageUnavailable as error:
            found, refused = [], error
        if text != self._editor.text or self._status.locked:
            return
        for attachment in found:
            self._add(attachment)
        if refused:
            self._warn(f"{refused.message} {refused.hint} Enter again sends without it.", "error")
        else:
            self._submit(text)

    def _stop_reading(self) -> None:
        if self._reading:
            self._reading.cancel()
            self._reading = None
        self.hint("")

    # Attachments

    def _attach_file(self, path: Path, token: str) -> None:
        self._reading = self.run_worker(self._read(path, token), group="attaching", exit_on_error=False)

    async def _read(self, path: Path, token: str) -> None:
        """Attach a file; what named it is in the text until it is attached."""
        try:
            attachment = await self._patiently(partial(read, path, self._folder))
        except LocalInferError as error:
            self.hint(f"{error.message} {error.hint}", "error")
        else:
            self._add(attachment)
            self._editor.take_back(token)

    async def _patiently(self, work: Callable[[], T]) -> T:
        """Work on files, and say so if it takes its time."""
        slow = self.set_timer(_SLOW_S, lambda: self.hint("reading · Esc to stop"))
        try:
            return await aside(work)
        finally:
            slow.stop()

    def _add(self, attachment: Attachment, *, pasted: bool = False) -> Chip:
        known = next((chip for chip in self._chips.chips if chip.attachment == attachment), None)
        if known and not pasted:
            return known
        chip = self._chips.add(attachment, pasted=pasted)
        self.post_message(self.AttachmentAdded(chip.id, chip.attachment))
        return chip

    def _keep_beside(self, text: str) -> None:
        """Attach a paste that is too large for the editor."""
        chip = self._add(Attachment(name=_PASTED, text=text), pasted=True)
        lines = count(text.count("\n") + 1, "line")
        self.hint(f"{chip.attachment.name}: {lines} attached · Tab, then Enter puts them into the text")

    @on(Chips.Expanded)
    def _expand(self, event: Chips.Expanded) -> None:
        event.stop()
        self._editor.focus()
        if event.chip.attachment.size_bytes > MOST_EDITED_BYTES:
            self.hint(f"{event.chip.attachment.name} is too large to be edited here; it stays attached", "warning")
            return
        self._chips.drop(event.chip)
        self._editor.put(event.chip.attachment.text)

    @on(Chips.Left)
    def _back_to_editor(self, event: Chips.Left) -> None:
        event.stop()
        self._editor.focus()

    @on(Chips.Changed)
    def _attachments_changed(self, event: Chips.Changed) -> None:
        event.stop()
        self._show_status()
        self.post_message(self.Changed())

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        self._editor.focus()
        self._editor.take(event.text)

    # Keeping up with the text

    @on(TextArea.Changed)
    def _text_changed(self, event: TextArea.Changed) -> None:
        event.stop()
        self._status.follow(self._editor.text)
        self._assist.refresh()
        self._show_status()
        self.post_message(self.Changed())

    @on(TextArea.SelectionChanged)
    def _cursor_moved(self, event: TextArea.SelectionChanged) -> None:
        event.stop()
        self._assist.refresh()
        self._show_status()

    @on(Completion.Clicked)
    def _clicked(self, event: Completion.Clicked) -> None:
        event.stop()
        self._assist.choose(event.choice, run=True)

    def on_descendant_blur(self) -> None:
        if not self._editor.has_focus:
            self._completion.close()
        self._show_status()

    def on_descendant_focus(self) -> None:
        if self._editor.has_focus:
            self._assist.refresh()
        self._show_status()

    def _fill(self, text: str, attachments: Sequence[Attachment]) -> None:
        self._editor.load_text(text)
        self._editor.move_cursor(self._editor.document.end)
        self._chips.clear()
        for attachment in attachments:
            self._add(attachment, pasted=attachment.name.startswith(_PASTED))
        self._insisted = None

    def _as_typed(self, message: str) -> str:
        return escaped(typed(message))

    def _show_status(self) -> None:
        command = self._assist.argument_of if self._editor.has_focus else None
        self._status.usage = f"/{command.name} {command.argument} · {command.summary}" if command else ""
        self._status.in_chips = self._chips.in_use
        self._status.show()
