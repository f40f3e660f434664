"""Where the figures of the chat screen are: a column beside the conversation, or, in a narrow terminal, one line under
it and the column in its place when it is asked for."""

from textual.screen import Screen

from tui.widgets.prompt import Prompt
from tui.widgets.readout import Reading, Readout, StatusLine


class Panel(Screen[None]):
    """A screen with both. ``-bare``: no column in a wide terminal; ``-figures``: the column in a narrow one."""

    prompt: Prompt
    readout: Readout
    status_line: StatusLine

    def tick(self) -> None:
        """Show the figures of now."""
        raise NotImplementedError

    def show_reading(self, reading: Reading) -> None:
        """Show it where there is room."""
        if self.readout.display:
            self.readout.show(reading)
        else:
            self.status_line.show(reading)

    async def action_readout(self) -> None:
        """Show or hide the column of figures."""
        if self.has_class("-wide"):
            self.toggle_class("-bare")
        elif not self.leave_figures():
            if self.has_class("-listing"):
                await self.run_action("conversations")  # the list gives way
            self.add_class("-figures")
            self.call_after_refresh(self.readout.focus)
        self.call_after_refresh(self.tick)

    def leave_figures(self) -> bool:
        """Give the conversation its place back; False where it has it."""
        if not self.has_class("-figures"):
            return False
        self.remove_class("-figures")
        self.call_after_refresh(self.prompt.focus)
        return True

    def on_readout_left(self) -> None:
        """Back to the prompt."""
        if not self.leave_figures():
            self.prompt.focus()

    def on_resize(self) -> None:
        """The column may have come in the place of the line, or beside the conversation."""
        self.call_after_refresh(self._resized)

    def _resized(self) -> None:
        if self.has_class("-wide"):
            self.leave_figures()
        self.tick()
