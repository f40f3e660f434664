"""What completes the text at the cursor: when the list is open, what is in it, and what choosing does."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from textual.worker import Worker

from localinfer.errors import StorageUnavailable
from tui.widgets.prompt.commands import Command, complete
from tui.widgets.prompt.completion import Choice, Completion
from tui.widgets.prompt.editor import Editor
from tui.widgets.prompt.files import open_token
from tui.widgets.prompt.paths import Listing, listing
from tui.widgets.prompt.threads import aside


class Assist:
    """Keeps the list in step with the text. ``attach`` gets a chosen file and what the text has of it; ``run`` is told
    to do what the text says.

    ``argument_of`` is the command whose argument is being typed.
    """

    def __init__(
        self,
        editor: Editor,
        completion: Completion,
        folder: Path,
        attach: Callable[[Path, str], None],
        run: Callable[[], None],
    ) -> None:
        self.commands: Sequence[Command] = ()
        self.argument_of: Command | None = None
        self._editor, self._completion, self._folder = editor, completion, folder
        self._attach, self._run = attach, run
        self._seen = ""  # the line before the cursor that the list is for
        self._replaces = 0  # so many characters before the cursor make way for a choice
        self._closed_at: int | None = None  # where the word begins for which the person closed the list
        self._listed: Listing | None = None
        self._lister: Worker[None] | None = None

    def refresh(self) -> None:
        """Open, change or close the list as the line before the cursor asks for."""
        self._seen = before = self._before
        commands = () if self._editor.cursor_location[0] else self.commands
        choices, self._replaces, self.argument_of = complete(before, commands)
        footer = ""
        token = None if choices or self.argument_of else open_token(before)
        if token is None:
            self._listed = None  # the folder may be another the next time
        else:
            self._replaces = len(token) + 1
            if self._listed is None or self._listed.token != token:
                self._list()
                return  # what is shown stays until the new list is there
            choices = list(self._listed.choices)
            footer = f"{self._listed.left_off:,} more: type on to find them" if self._listed.left_off else ""
        start = len(before) - self._replaces
        typed = before[start:]
        if self._closed_at != start or not (typed or self.argument_of):
            self._closed_at = None
        else:
            choices = []
        meant = before == "/" or not (typed in ("", "@", '@"') or typed.endswith("/"))
        self._completion.open(choices, choose=meant, room=self._room, footer=footer)

    def key(self, key: str) -> bool:
        """Use a key for an open list; whether it was of use."""
        if self._before != self._seen:
            self.refresh()
        completion = self._completion
        if not completion.is_open:
            return False
        if key in ("up", "down"):
            completion.move(-1 if key == "up" else 1)
        elif key == "escape":
            self.close()
        elif key == "tab":
            self.choose(completion.chosen or completion.first, run=False)
        elif key == "enter" and completion.chosen and not self._is_typed(completion.chosen):
            self.choose(completion.chosen, run=True)
        else:
            return False
        return True

    def close(self) -> None:
        """Close the list, until something else is to be completed."""
        before = self._before
        token = open_token(before)
        self._closed_at = len(before) - (self._replaces if token is None else len(token) + 1)
        self._completion.close()

    def choose(self, choice: Choice, *, run: bool) -> None:
        """Put ``choice`` in the place of what was typed. A file is attached; with ``run`` a finished
        command is done."""
        row, column = self._editor.cursor_location
        start = (row, column - self._replaces)
        self._completion.close()
        value = f"@{choice.value}" if choice.path else choice.value
        self._editor.replace(value, start, (row, column), maintain_selection_offset=False)
        if choice.path and choice.final:
            self._attach(Path(choice.path), value)
            self.close()
        elif run and choice.final:
            self._run()
        else:
            self.refresh()

    @property
    def _before(self) -> str:
        """The line before the cursor; empty while something is selected."""
        return self._editor.before_cursor if self._editor.selection.is_empty else ""

    @property
    def _room(self) -> int:
        """The rows above the editor."""
        return max(4, self._editor.region.y)

    def _is_typed(self, choice: Choice) -> bool:
        typed = self._before[len(self._before) - self._replaces :]
        return typed in (choice.value.rstrip(), f"@{choice.value}")

    def _list(self) -> None:
        if self._lister is None or self._lister.is_finished:
            self._lister = self._editor.run_worker(self._list_latest(), group="paths", exit_on_error=False)

    async def _list_latest(self) -> None:
        """One folder is read at a time; what is typed meanwhile is looked up after it."""
        while (token := open_token(self._before)) is not None and (not self._listed or self._listed.token != token):
            try:
                self._listed = await aside(partial(listing, token, self._folder))
            except StorageUnavailable:
                self._listed = Listing(token=token)
        self.refresh()
