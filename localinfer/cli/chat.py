"""``localinfer chat``: a conversation line by line, for any terminal and for screen readers. It redraws nothing but
the one line that says what is being waited for."""

import re
import signal
import sys
import threading
from types import FrameType

import typer

from localinfer.cli import afterwards, console, figures
from localinfer.cli.lines import Entry, LineReader
from localinfer.cli.loading import speculation
from localinfer.engines import Opened, open_engine
from localinfer.errors import ContextOverflow, LocalInferError
from localinfer.generation import Generation, check
from localinfer.models.catalog import catalog
from localinfer.types import (
    GenerationRequest,
    Loading,
    LoadOptions,
    Message,
    Metrics,
    ModelInfo,
    Prefilled,
    Queued,
    Reasoning,
    Sampling,
    Text,
)

HELP = """\
Type and press Enter. A pasted text of many lines is one message; so is what stands between \"\"\" and \"\"\".
  /system TEXT  set the system prompt (no text: remove it)   /retry  answer the last message again
  /clear        forget the conversation                      /stats  the figures of the last reply
  /help         this text                                    /quit   leave (so does Ctrl-D)
Ctrl-C stops the reply."""

_COMMAND = re.compile(r"/[A-Za-z]+(\s|$)")  # "/usr/bin is full" is a message


class Conversation:
    """The turns so far and the engine that answers them.

    ``draft`` is what ``--draft`` says. ``interactive``: a person is there, who may stop a reply. ``failure`` is the
    first error there was.
    """

    def __init__(
        self, engine: Opened, system: str | None, sampling: Sampling, draft: str = "auto", *, interactive: bool
    ) -> None:
        self.failure: LocalInferError | None = None
        self._engine = engine
        self._sampling = sampling
        self._speculation = speculation(draft)
        self._asked = draft not in ("auto", "off")
        self._system = system
        self._interactive = interactive
        self._turns: tuple[Message, ...] = ()
        self._unanswered: str | None = None
        self._last: Metrics | None = None

    def take(self, entry: Entry) -> bool:
        """Carry out a command or send a message; False when it was to leave."""
        if entry.damaged:
            console.note("Some bytes were not text in this terminal's encoding; they became \ufffd.")
        if entry.verbatim or not _COMMAND.match(entry.text.strip()):
            if entry.text.strip():
                self._ask(entry.text, self._turns)
            return True
        name, *rest = entry.text.split(maxsplit=1)
        match name:
            case "/quit" | "/exit":
                return False
            case "/help":
                console.note(HELP)
            case "/clear":
                self._turns = ()
                console.note("The conversation is forgotten.")
            case "/system":
                self._system = "".join(rest).strip() or None
                console.note("The system prompt is set." if self._system else "The system prompt is removed.")
            case "/retry":
                self._retry()
            case "/stats":
                self._stats()
            case _:
                console.note(f"There is no command {name}. /help lists them.")
        return True

    def _retry(self) -> None:
        if self._unanswered is not None:
            self._ask(self._unanswered, self._turns)
        elif self._turns:
            *before, question, _ = self._turns
            self._ask(question.content, tuple(before))
        else:
            console.note("There is nothing to answer yet.")

    def _stats(self) -> None:
        metrics, status = self._last, self._engine.status()
        if metrics is None:
            console.note("No reply yet.")
            return
        gaps = (("p50", metrics.itl_p50_ms), ("p90", metrics.itl_p90_ms), ("p99", metrics.itl_p99_ms))
        context = f" of {status.model.context:,}" if status.model else ""
        for line in (
            figures.line(metrics, status, asked=self._asked),
            f"prompt {_count(metrics.prompt_tokens)} tokens, {_count(metrics.cached_tokens)} of them cached · "
            f"prefill {_count(metrics.prefill_tps)} tok/s",
            f"ITL {' · '.join(f'{name} {_count(value, 1)}' for name, value in gaps)} ms",
            f"context {(metrics.prompt_tokens or 0) + metrics.completion_tokens:,}{context} tokens",
        ):
            console.note(line)

    def _ask(self, text: str, before: tuple[Message, ...]) -> None:
        """Send ``text`` after the turns ``before`` and write the reply, which becomes a turn, also when it is stopped.
        A failed reply does not; the message is kept for /retry."""
        messages = (*before, Message(role="user", content=text))
        # A reply that is asked for anew stays until there is another.
        self._unanswered = text if before == self._turns else None
        reply = _Reply()
        try:
            self._last = self._generate(messages, reply)
        except LocalInferError as error:
            reply.end()
            self._fail(error, begun=reply.message() is not None)
            return
        reply.end()
        answer = reply.message()
        if answer is not None:
            self._turns, self._unanswered = (*messages, answer), None
        self._conclude(self._last, answered=answer is not None)

    def _generate(self, messages: tuple[Message, ...], reply: "_Reply") -> Metrics:
        system = (Message(role="system", content=self._system),) if self._system else ()
        request = GenerationRequest(
            messages=(*system, *messages), sampling=self._sampling, speculation=self._speculation
        )
        with _CtrlC(self._interactive) as ctrl_c:
            generation = self._engine.submit(request)
            ctrl_c.stops(generation)
            _show(generation, reply)
        return generation.metrics

    def _fail(self, error: LocalInferError, *, begun: bool) -> None:
        self.failure = self.failure or error
        console.report(error)
        if not self._interactive:
            return
        if isinstance(error, ContextOverflow):
            console.note("  /clear forgets the conversation, /retry then sends the message again.")
        else:
            console.note(f"  {'What was said is not kept: ' if begun else ''}/retry sends the message again.")

    def _conclude(self, metrics: Metrics, *, answered: bool) -> None:
        status = self._engine.status()
        if metrics.finish_reason == "cancelled":
            kept = "The reply is kept as far as it came." if answered else "There is no reply; /retry asks again."
            console.note(f"[stopped] {kept}")
        elif not answered:
            console.note("The reply is empty; /retry asks again.")
        elif metrics.finish_reason == "length" and status.model is not None:
            console.note(f"The context of {status.model.context:,} tokens is full. /clear forgets the conversation.")
        console.styled_note(afterwards.line(self._engine, metrics, asked=self._asked))


def _count(value: float | None, digits: int = 0) -> str:
    return figures.DASH if value is None else f"{value:,.{digits}f}"


class _Reply:
    """A reply while it is shown: what the model thinks, dim or between marks, then the answer."""

    def __init__(self) -> None:
        self._thoughts: list[str] = []
        self._answer: list[str] = []
        self._last = "\n"

    def think(self, text: str) -> None:
        """A piece of what the model thinks, for a person only."""
        if sys.stderr.isatty():
            if not self._thoughts and not console.has_styles(sys.stderr):
                console.note("[thinking]")
            console.write_dim(text)
            self._last = text
        self._thoughts.append(text)

    def say(self, text: str) -> None:
        """A piece of the answer."""
        if self._thoughts and not self._answer and sys.stderr.isatty():
            self.end()
            console.note("" if console.has_styles(sys.stderr) else "[answer]")
        console.write(text)
        self._answer.append(text)
        self._last = text

    def end(self) -> None:
        """What follows begins on a line of its own."""
        if not self._last.endswith("\n"):
            console.write("\n")
            self._last = "\n"

    def message(self) -> Message | None:
        """The turn it makes; None when nothing was answered."""
        if not self._answer:
            return None
        return Message(role="assistant", content="".join(self._answer), reasoning="".join(self._thoughts) or None)


class _CtrlC:
    """Within it, Ctrl-C ends the reply of an interactive chat: at once, even while the worker is busy with a long step.
    It raises nothing, so what has arrived is never half taken."""

    def __init__(self, interactive: bool) -> None:
        self._interactive = interactive
        self._pressed = False
        self._generation: Generation | None = None

    def __enter__(self) -> "_CtrlC":
        if self._interactive:
            self._before = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._interactive:
            signal.signal(signal.SIGINT, self._before)

    def stops(self, generation: Generation) -> None:
        """It is ``generation`` that Ctrl-C ends."""
        self._generation = generation
        if self._pressed:
            generation.cancel()

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._pressed = True
        if self._generation is not None:
            # In a thread: what the signal interrupted may hold a lock that is needed here.
            threading.Thread(target=self._generation.cancel, daemon=True).start()


def _show(generation: Generation, reply: _Reply) -> None:
    waiting = console.LoadLine()
    waiting.reading()
    try:
        for event in generation:
            match event:
                case Loading():
                    waiting.show(event.progress)
                case Queued():
                    waiting.reading()
                case Prefilled() if event.cached_tokens < event.done_tokens < event.prompt_tokens:
                    waiting.reading(event.done_tokens / event.prompt_tokens)
                case Reasoning() if event.text:
                    waiting.clear()
                    reply.think(event.text)
                case Text() if event.text:
                    waiting.clear()
                    reply.say(event.text)
                case _:
                    pass
    finally:
        waiting.clear()


def chat(
    reference: str | None,
    *,
    system: str | None,
    sampling: Sampling,
    options: LoadOptions,
    offline: bool,
    force: bool = False,
    draft: str = "auto",
) -> None:
    """Talk until the input ends. Raises ``LocalInferError`` when there is no model to talk to.

    Where the input is no terminal, the first failure becomes the exit code, after all input was answered.
    """
    check(GenerationRequest(prompt="x", sampling=sampling))
    name = reference or catalog().starter.name
    reader = LineReader()
    with (
        console.fetching(name) as progress,
        open_engine(reference, options, offline=offline, progress=progress, force=force, draft=draft) as engine,
    ):
        info = _load(engine)
        if reader.interactive:
            named = " · ".join(part for part in (info.name, info.quantization, info.placement) if part)
            console.note(f"{named} · context {info.context:,}. /help helps.")
        conversation = Conversation(engine, system, sampling, draft, interactive=reader.interactive)
        _talk(reader, conversation)
    if conversation.failure is not None and not reader.interactive:
        raise typer.Exit(conversation.failure.exit_code)


def _load(engine: Opened) -> ModelInfo:
    waiting = console.LoadLine()
    waiting.show()
    try:
        info = engine.load(waiting.show)
    finally:
        waiting.clear()
    for notice in afterwards.notices(info):
        console.note(notice)
    return info


def _talk(reader: LineReader, conversation: Conversation) -> None:
    while True:
        try:
            entry = reader.read("> ")
            if entry is None:
                if reader.interactive:
                    console.note("")
                return
            if not conversation.take(entry):
                return
        except KeyboardInterrupt:
            if not reader.interactive:
                raise
            console.note("\nCtrl-D or /quit leaves.")
