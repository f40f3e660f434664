"""Earlier messages, gone through one by one. Each may be changed on the way, and the draft is the last of them."""

import itertools
from collections.abc import Sequence


class Recall:
    """A person goes back from a draft and comes forward to it again."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._way: list[str] = []  # the texts as they are changed, the draft last; empty: nobody is on the way
        self._at = 0

    def remember(self, texts: Sequence[str]) -> None:
        """Know ``texts``, the oldest first. Who is on the way begins anew."""
        self._texts = [text for text, _ in itertools.groupby(texts)]
        self._way = []

    def add(self, text: str) -> None:
        """Know one more, and be at the draft again."""
        self.remember([*self._texts, text])

    def back(self, current: str) -> str | None:
        """The text before ``current``, which is kept; None: there is none."""
        if not self._way:
            self._way, self._at = [*self._texts, current], len(self._texts)
        return self._go(-1, current)

    def forward(self, current: str) -> str | None:
        """The text after ``current``, which is kept; None: there is none."""
        return self._go(1, current)

    def _go(self, by: int, current: str) -> str | None:
        if not 0 <= self._at + by < len(self._way):
            return None
        self._way[self._at] = current
        self._at += by
        return self._way[self._at]
