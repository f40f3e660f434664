"""The application: its life from the first paint to a clean terminal, its theme, and what all screens share."""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from textual import work
from textual.app import App
from textual.binding import BindingType

from localinfer import settings
from localinfer.engines import Engines
from localinfer.errors import LocalInferError
from localinfer.history.sessions import Session
from localinfer.history.store import History
from localinfer.history.values import Hit
from tui import clipboard, keys, theme
from tui.aside import aside
from tui.start import Start
from tui.text.clean import clean

if TYPE_CHECKING:
    from textual.command import Provider
    from textual.driver import Driver

    from localinfer.downloads import Download, Downloads
    from tui.screens.chat import ChatScreen

RECENT = 30
TWICE_S = 3.0
HANG_UP_S = 1.0
ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
HANG_UP = getattr(signal, "SIGHUP", signal.SIGTERM)


class LocalInfer(App[None]):
    """``failure`` is what it did not survive, ``ended_by`` the signal that ended it. Both are for the caller."""

    TITLE = "localinfer"
    CSS = """
    ToastRack { margin-bottom: 1; scrollbar-size-vertical: 0; }
    Toast { width: 100%; max-width: 100%; margin: 0; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, start: Start) -> None:
        super().__init__()
        self.start = start
        self.settings = settings.load()
        self.offline = start.offline or self.settings.offline
        self.history = History()
        self.session = Session()
        self.engines = Engines()
        self.failure: Exception | None = None
        self._home: ChatScreen | None = None
        self.ended_by: signal.Signals | None = None
        self._interrupted_s = -TWICE_S
        for one in theme.OURS:
            self.register_theme(one)
        self.theme = theme.chosen(self.settings.theme, self.available_themes)
        keys.bind(self, self.settings.keys)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Variables of our own CSS, for themes that lack them."""
        return theme.DEFAULTS

    @cached_property
    def _palette(self) -> "type[Provider]":
        from tui import palette
        from tui.screens.chat.offered import Offered

        return palette.provider(
            palette.actions(self, self.settings.keys),
            Offered(self.chat),
            palette.conversations(lambda: self.history.conversations(limit=RECENT), lambda id: self.chat.go_to(id)),
            palette.models(self._models_here, lambda name: self.chat.use(name)),
            palette.themes(self, self._use_theme),
        )

    def action_command_palette(self) -> None:
        """Every action, conversation, model and theme by name."""
        from tui.palette import Palette

        if not isinstance(self.screen, Palette):
            self.push_screen(Palette(self._palette))

    def _models_here(self) -> list[str]:
        from localinfer.models.found import find

        return [model.name for model in find(self.settings)]

    def _use_theme(self, name: str) -> None:
        self.theme = name

    @cached_property
    def downloads(self) -> "Downloads":
        """What is being fetched in the background."""
        from localinfer.downloads import Downloads

        downloads = Downloads(offline=self.offline)
        loop = asyncio.get_running_loop()

        def changed(download: "Download") -> None:
            with contextlib.suppress(RuntimeError):  # the application has ended meanwhile
                loop.call_soon_threadsafe(self._downloaded, download)

        downloads.listen(changed)
        return downloads

    @property
    def chat(self) -> "ChatScreen":
        """The home screen."""
        from tui.screens.chat import ChatScreen

        return next(screen for screen in self.screen_stack if isinstance(screen, ChatScreen))

    def on_mount(self) -> None:
        """Show the chat at once; everything slow comes after the first paint."""
        from tui.screens.chat import ChatScreen

        if not self.is_headless and _has_terminal():
            self.set_interval(HANG_UP_S, self._look_at_terminal)
        self._home = ChatScreen(self)
        self.push_screen(self._home)

    def _look_at_terminal(self) -> None:
        """A terminal that went away without a signal would be read in vain, over and over."""
        if not _has_terminal():
            self._end(HANG_UP)

    def obey_signals(self) -> None:
        """From here until the process is gone, what asks it to end does so through the application, once: while it
        leaves, more of them change nothing. Call before ``run``, in the main thread."""
        for number in ENDING:
            signal.signal(number, self._end)

    def _end(self, number: int, _frame: object = None) -> None:
        if self._exit or self.ended_by is not None:
            return
        self.ended_by = signal.Signals(number)
        if self._loop is None:
            self.exit()
        else:  # it may be waiting for something to happen: a signal alone does not wake it
            self._loop.call_soon_threadsafe(self.exit)

    def get_driver_class(self) -> "type[Driver]":
        """Textual's, with what it lacks to leave every terminal as it was."""
        found = super().get_driver_class()
        if sys.platform != "win32":
            from textual.drivers.linux_driver import LinuxDriver

            from tui.driver import TerminalDriver

            return TerminalDriver if found is LinuxDriver else found
        return found

    def give_back_terminal(self) -> None:
        """The last resort after ``run``: whatever it ended with, the terminal is what it was. Else nothing is done."""
        if (give_back := getattr(self._driver, "give_back", None)) is not None:
            give_back()

    def close(self) -> None:
        """End everything that still runs, once the terminal is back to what it was. May take a few seconds."""
        if "downloads" in self.__dict__:
            self.downloads.close()
        self.engines.close()
        if self._home is not None:
            self._home.talk.close()
        self.history.close()
        if self.failure is None and self.ended_by is None:  # else the next start goes on from here
            self.session.close()

    def _handle_exception(self, error: Exception) -> None:
        """What nobody caught ends the application with a clean terminal; the caller says what it was."""
        self._return_code = 1
        if self._exception is None:
            self._exception = self.failure = error
            self._exception_event.set()
        self._close_messages_no_wait()

    # What every screen may need

    def say(self, text: str, *, warning: bool = False) -> None:
        """Tell the person something that needs no answer."""
        self.notify(clean(text), severity="warning" if warning else "information", markup=False)

    def trouble(self, error: LocalInferError) -> None:
        """Tell the person what failed and what to do."""
        text = clean(f"{error.message}\n{error.hint}".strip())
        self.notify(text, severity="error", timeout=12, markup=False)

    def forget_troubles(self) -> None:
        """Something else is done now: errors that still stand there are about what was before."""
        for told in list(self._notifications):
            if told.severity == "error":
                self._unnotify(told)

    def copy_to_clipboard(self, text: str) -> None:
        """Put ``text`` on every clipboard there is: the terminal's, and the system's in a thread."""
        super().copy_to_clipboard(text.encode("utf-8", "replace").decode("utf-8"))
        self._copy_beside(text)

    @work(exclusive=True, group="copy")
    async def _copy_beside(self, text: str) -> None:
        await aside(lambda: clipboard.put(text))

    def search(self, query: str) -> Sequence[Hit]:
        """What a search finds; recent conversations where nothing was typed. Slow: called in a thread."""
        if query:
            return self.history.search(query)
        recent = self.history.conversations(limit=RECENT)
        return [Hit(conversation=one, turn=None, excerpt="") for one in recent]

    @work
    async def _downloaded(self, download: "Download") -> None:
        await self.chat.models.downloaded(download)

    # Actions of everywhere

    def action_activity(self) -> None:
        """What the engine is doing, and for whom."""
        from tui.screens.activity import ActivityScreen
        from tui.widgets.board import view_of

        self.push_screen(ActivityScreen(lambda: view_of(self.chat.desk.engine)))

    def action_help(self) -> None:
        """Keys, commands and what the figures mean."""
        from tui.screens.chat.commands import COMMANDS
        from tui.screens.help import HelpScreen
        from tui.widgets.conversations import Conversations
        from tui.widgets.readout import Readout
        from tui.widgets.transcript import Transcript

        lines = [(f"/{one.name} {one.argument}".strip(), one.summary) for one in COMMANDS]
        parts = {
            "In the conversation": Transcript.BINDINGS,
            "In the list": Conversations.BINDINGS,
            "In the figures": Readout.BINDINGS,
        }
        self.push_screen(HelpScreen(lines, self.settings.keys, parts))

    def action_settings(self) -> None:
        """See and change the settings."""
        self._show_settings("model")

    def action_theme(self) -> None:
        """Choose a theme."""
        self._show_settings("theme")

    @work
    async def _show_settings(self, field: str) -> None:
        from tui.screens.settings import SettingsScreen

        try:
            screen = SettingsScreen(field)
        except LocalInferError as error:
            self.trouble(error)
            return
        if (changed := await self.push_screen_wait(screen)) is not None:
            self.settings = changed
            self.offline = self.start.offline or changed.offline

    def action_help_quit(self) -> None:
        """Ctrl+C where no text is selected: it stops a reply; twice, it leaves."""
        if self.chat.talk.stop():
            return
        now = time.monotonic()
        if now - self._interrupted_s < TWICE_S:
            self.exit()
            return
        self._interrupted_s = now
        self.say("Ctrl+C once more leaves localinfer; so does Ctrl+Q.")

    def get_system_commands(self, screen: Any) -> Any:
        """None of Textual's own: the palette offers ours."""
        return ()


def _has_terminal() -> bool:
    return sys.__stdin__ is not None and os.isatty(sys.__stdin__.fileno())
