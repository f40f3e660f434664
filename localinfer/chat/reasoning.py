"""Splitting a reply into what the model thinks and what it answers.

Reasoning is one tagged block at the very start of the reply; every tag after that is text the model wrote. It knows
nothing of tokens or templates: whether the template opened the block already is told to it.
"""

from typing import Literal

from localinfer.chat.marks import Marks

TAGS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<reasoning>", "</reasoning>"),
    ("[THINK]", "[/THINK]"),
)

Part = tuple[bool, str]


class ReasoningSplitter:
    """One reply. ``opened``: the prompt ends inside the block, so the reply begins there.

    White space right after the opening and right after the closing tag belongs to neither part.
    """

    def __init__(self, opened: bool, tags: tuple[tuple[str, str], ...] = TAGS) -> None:
        self._tags = sorted(tags, key=lambda tag: len(tag[0]))
        self._closing = Marks(tuple(closing for _, closing in tags))
        self._state: Literal["before", "opened", "inside", "closed", "answer"] = "opened" if opened else "before"
        self._held = ""

    def push(self, text: str) -> list[Part]:
        """The parts that are certain after ``text``, in order, as (is reasoning, text); no text is empty."""
        self._held += text
        parts: list[Part] = []
        while self._held and self._advance(parts):
            pass
        return parts

    def finish(self) -> list[Part]:
        """The rest. A block that was never closed is reasoning to its end."""
        held, self._held = self._held, ""
        return [(self._state == "inside", held)] if held else []

    def _advance(self, parts: list[Part]) -> bool:
        """Take what is certain from the held text; whether the state changed."""
        match self._state:
            case "before":
                return self._open()
            case "opened" | "closed":
                self._held = self._held.lstrip()
                if self._held:
                    self._state = "inside" if self._state == "opened" else "answer"
                return bool(self._held)
            case "inside":
                return self._think(parts)
            case "answer":
                parts.append((False, self._held))
                self._held = ""
        return False

    def _open(self) -> bool:
        start = self._held.lstrip()
        for opening, closing in self._tags:
            if start.startswith(opening):
                self._held = start.removeprefix(opening)
                self._closing = Marks((closing,))
                self._state = "opened"
                return True
        if any(opening.startswith(start) for opening, _ in self._tags):
            return False
        self._state = "answer"
        return True

    def _think(self, parts: list[Part]) -> bool:
        found = self._closing.first(self._held)
        start, end = found or (self._closing.undecided(self._held),) * 2
        if start:
            parts.append((True, self._held[:start]))
        self._held = self._held[end:]
        if found:
            self._state = "closed"
        return found is not None
