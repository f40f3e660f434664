"""Scoring a text with a model, in a child that a bad file may end: the application's side of it.

It knows what is asked and answered, and nothing of what the figures mean.
"""

import itertools
import os
import time
from collections.abc import Iterator

from localinfer import settings
from localinfer.errors import LocalInferError, ModelFileInvalid, OutOfMemory, from_fault
from localinfer.models.names import printable
from localinfer.models.scores import Answer, Ask, ChunkScored, ReadText, ScoreText, TextRead, TextScored, Unscored
from localinfer.process import Child, Death

CHILD = "backends.llama_cpp.scoring"

_serial = itertools.count(1)


class ScoringChild:
    """A child for one model, which ``name`` means in errors. It ends with the block."""

    def __init__(self, name: str) -> None:
        self._name = printable(name)
        log = settings.log_dir() / f"scoring-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{next(_serial)}.log"
        self._child: Child[Answer] = Child(CHILD, Answer, log)

    def read(self, asked: ReadText) -> TextRead:
        """The tokens of a text. Raises what it failed with."""
        for answer in self._answers(asked):
            if isinstance(answer, TextRead):
                return answer
        raise self._explain(self._child.death())

    def score(self, asked: ScoreText) -> Iterator[ChunkScored | TextScored]:
        """Chunk after chunk, then the rest. Raises what it failed with."""
        for answer in self._answers(asked):
            if isinstance(answer, ChunkScored | TextScored):
                yield answer
            if isinstance(answer, TextScored):
                return
        raise self._explain(self._child.death())

    def __enter__(self) -> "ScoringChild":
        return self

    def __exit__(self, *_: object) -> None:
        self._child.kill()
        self._child.death()

    def _answers(self, asked: Ask) -> Iterator[Answer]:
        self._child.send(asked)
        for answer in self._child.reports():
            if isinstance(answer, Unscored):
                raise from_fault(answer.error)
            yield answer

    def _explain(self, death: Death) -> LocalInferError:
        where = f"The log is {self._child.log}."
        if death.out_of_memory:
            return OutOfMemory(f"Memory ran out while scoring with {self._name} ({death.cause}).", where)
        last = f" Its last line: {death.log_tail[-1]}" if death.log_tail else ""
        return ModelFileInvalid(f"{self._name} makes llama.cpp crash: {death.cause}.", f"{where}{last}")
