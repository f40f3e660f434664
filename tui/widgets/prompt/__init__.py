"""Where a person types: messages, commands and the files that go with them."""

from tui.widgets.prompt.commands import Command
from tui.widgets.prompt.draft import Draft
from tui.widgets.prompt.prompt import Prompt

__all__ = ["Command", "Draft", "Prompt"]
