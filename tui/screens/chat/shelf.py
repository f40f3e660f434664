"""The conversations beside the one that is open: their list, and searching them."""

from typing import TYPE_CHECKING

from textual import work
from textual.screen import Screen

if TYPE_CHECKING:
    from tui.app import LocalInfer
    from tui.screens.chat.sidebar import Sidebar
    from tui.widgets.conversations import Conversations
    from tui.widgets.prompt import Prompt


class Shelf(Screen[None]):
    """The part of the chat screen that shows the list. ``opened`` is the conversation in view."""

    owner: "LocalInfer"
    prompt: "Prompt"
    opened: int | None = None
    _sidebar: "Sidebar | None" = None

    async def open_conversation(self, id: int, turn: int | None = None) -> None:
        """Go to a conversation, and in it to a turn."""
        raise NotImplementedError

    def action_new(self) -> None:
        """Begin a new conversation."""
        raise NotImplementedError

    async def action_conversations(self) -> None:
        """Show the conversations, or hide them."""
        self.remove_class("-figures")
        if self.has_class("-listing"):
            self.remove_class("-listing")
            if self._sidebar is not None:
                self._sidebar.display = False
            self.prompt.focus()
            return
        if self._sidebar is None:
            from tui.screens.chat.sidebar import Sidebar

            self._sidebar = Sidebar(self.owner.chat)
            await self.query_one("#body").mount(self._sidebar, before=0)
        self._sidebar.display = True
        self._sidebar.listed.current = self.opened
        self._sidebar.listed.refresh_list()
        self._sidebar.listed.focus()
        self.add_class("-listing")

    async def on_conversations_opened(self, event: "Conversations.Opened") -> None:
        """Go to what was chosen in the list."""
        await self.open_conversation(event.id)
        if self.has_class("-narrow"):
            await self.action_conversations()
        else:
            self.prompt.focus()

    def on_conversations_new_requested(self) -> None:
        """Begin anew, from the list."""
        self.action_new()

    def on_conversations_search_requested(self) -> None:
        """Search, from the list."""
        self.action_search()

    @work
    async def action_search(self) -> None:
        """Search all conversations."""
        from tui.screens.search import SearchScreen

        found = await self.owner.push_screen_wait(SearchScreen(self.owner.search))
        if found is not None:
            await self.open_conversation(*found)
