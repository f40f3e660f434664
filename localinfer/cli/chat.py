"""``localinfer chat``: a conversation line by line, for any terminal and for screen readers. It redraws nothing."""

import sys

from localinfer.cli import console, figures
from localinfer.cli.lines import LineReader
from localinfer.engine import WorkerEngine
from localinfer.engines import open_engine
from localinfer.errors import ContextOverflow, LocalInferError
from localinfer.generation import Generation, check
from localinfer.models.catalog import catalog
from localinfer.types import GenerationRequest, Loading, LoadOptions, Message, Metrics, Reasoning, Sampling, Text

HELP = """\
Type and press Enter. A pasted text of many lines is one message; so is what stands between \"\"\" and \"\"\".
  /system TEXT  set the system prompt (no text: remove it)   /retry  answer the last message again
  /clear        forget the conversation                      /stats  the figures of the last reply
  /help         this text                                    /quit   leave (so does Ctrl-D)
Ctrl-C stops the reply."""


class Conversation:
    """The turns so far and the engine that answers them."""

    def __init__(self, engine: WorkerEngine, system: str | None, sampling: Sampling) -> None:
        self._engine = engine
        self._sampling = sampling
        self._system = system
        self._turns: list[Message] = []
        self._last: Metrics | None = None

    def command(self, line: str) -> bool:
        """Carry out a command; False when it was to leave."""
        name, _, rest = line.partition(" ")
        match name:
            case "/quit" | "/exit":
                return False
            case "/help":
                console.note(HELP)
            case "/clear":
                self._turns.clear()
                console.note("The conversation is forgotten.")
            case "/system":
                self._system = rest.strip() or None
                console.note("The system prompt is set." if self._system else "The system prompt is removed.")
            case "/retry":
                self._retry()
            case "/stats":
                self._stats()
            case _:
                console.note(f"There is no command {name}. /help lists them.")
        return True

    def ask(self, text: str) -> None:
        """Send ``text`` and write the reply. A stopped reply is kept; a failed one is not."""
        self._turns.append(Message(role="user", content=text))
        try:
            self._answer()
        except LocalInferError as error:
            self._turns.pop()
            console.report(error)
            if isinstance(error, ContextOverflow):
                console.note("  /clear starts a new conversation.")

    def _retry(self) -> None:
        while self._turns and self._turns[-1].role == "assistant":
            self._turns.pop()
        if not self._turns:
            console.note("There is nothing to answer yet.")
            return
        self.ask(self._turns.pop().content)

    def _stats(self) -> None:
        if self._last is None:
            console.note("No reply yet.")
        else:
            console.note(figures.line(self._last, self._engine.status()))

    def _answer(self) -> None:
        system = (Message(role="system", content=self._system),) if self._system else ()
        request = GenerationRequest(messages=(*system, *self._turns), sampling=self._sampling)
        generation = self._engine.submit(request)
        reply: list[str] = []
        try:
            self._show(generation, reply)
        except KeyboardInterrupt:
            generation.cancel()
            self._show(generation, reply)
        console.write("\n")
        self._last = generation.metrics
        if text := "".join(reply):
            self._turns.append(Message(role="assistant", content=text))
        else:
            self._turns.pop()
        console.styled_note(figures.line(self._last, self._engine.status()))

    def _show(self, generation: Generation, reply: list[str]) -> None:
        loading = console.LoadLine()
        thinking = False
        try:
            for event in generation:
                match event:
                    case Loading():
                        loading.show(event.progress)
                    case Reasoning() if event.text:
                        loading.clear()
                        console.write_dim(event.text)
                        thinking = True
                    case Text() if event.text:
                        loading.clear()
                        if thinking:
                            console.write_dim("\n\n")
                            thinking = False
                        console.write(event.text)
                        reply.append(event.text)
                    case _:
                        pass
        finally:
            loading.clear()


def chat(reference: str | None, *, system: str | None, sampling: Sampling, options: LoadOptions, offline: bool) -> None:
    """Talk until the input ends. Raises ``LocalInferError`` when there is no model to talk to."""
    check(GenerationRequest(prompt="x", sampling=sampling))
    name = reference or catalog().starter.name
    with (
        console.fetching(name) as progress,
        open_engine(reference, options, offline=offline, progress=progress) as engine,
    ):
        info = engine.load()
        for notice in info.notices:
            console.styled_note(notice)
        if sys.stdin.isatty():
            console.note(
                f"{info.name} · {info.description} · {info.placement} · context {info.context:,}. /help helps."
            )
        _talk(Conversation(engine, system, sampling))


def _talk(conversation: Conversation) -> None:
    reader = LineReader()
    try:
        while True:
            try:
                text = reader.read("> ")
            except KeyboardInterrupt:
                console.note("\nCtrl-D or /quit leaves.")
                continue
            if text is None:
                return
            if text.startswith("/") and "\n" not in text:
                if not conversation.command(text.strip()):
                    return
            elif text.strip():
                conversation.ask(text)
    finally:
        reader.close()
