"""The home screen: a conversation, the prompt, and the live figures."""

from tui.screens.chat.screen import ChatScreen

__all__ = ["ChatScreen"]
