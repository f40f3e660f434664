"""Between requests and token ids, inside the worker: what a request becomes, and what sampled tokens become.

``Encoder`` turns a request into a prompt and a sequence to generate; ``Reply`` turns the sequence's tokens into typed
events. Neither knows the model or the pipe.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from backends.base import Backend, Sampled, SequenceJob, Tokenizer
from localinfer.chat.detokenizer import Detokenizer
from localinfer.chat.reasoning import TAGS, ReasoningSplitter
from localinfer.chat.template import ChatTemplate, encode_text
from localinfer.errors import BadRequest, ContextOverflow
from localinfer.types import GenerationRequest, Prefilled, Queued, Reasoning, Text, TokenCount, TokenLogprob

PLAIN_TURN = "\nUser:"


class Reply:
    """The answer of one generation as it grows."""

    def __init__(
        self,
        request: GenerationRequest,
        tokenizer: Tokenizer,
        prompt_tokens: int,
        *,
        reasoning: bool | None,
        stop: tuple[str, ...] = (),
        tags: Mapping[int, bytes] = MappingProxyType({}),
    ) -> None:
        self._tokenizer = tokenizer
        self._prompt_tokens = prompt_tokens
        self._ignore_eos = request.ignore_eos
        self._tags = tags
        self._detokenizer = Detokenizer((*request.stop, *stop))
        # None: a raw prompt has no reasoning to split off.
        self._splitter = None if reasoning is None else ReasoningSplitter(opened=reasoning)
        self._thinking = bool(reasoning)
        self.heard = False  # whether any text has come out
        self._cached = 0
        self._admitted_ns = 0
        self._started_ns = 0

    @property
    def stopped(self) -> bool:
        """Whether a stop string has been completed."""
        return self._detokenizer.stopped

    def queued(self, ahead: int, at_ns: int) -> Queued:
        """The request waits behind ``ahead`` others."""
        return Queued(prompt_tokens=self._prompt_tokens, ahead=ahead, at_ns=at_ns)

    def admitted(self, at_ns: int) -> None:
        """A slot was taken."""
        self._admitted_ns = at_ns

    def prefill_started(self, cached: int, at_ns: int) -> Prefilled:
        """``cached`` tokens are in place; the first fresh ones are fed next."""
        self._cached = cached
        self._started_ns = at_ns
        return self.prefill_advanced(cached, at_ns)

    def prefill_advanced(self, done: int, at_ns: int) -> Prefilled:
        """``done`` prompt tokens are in the cache."""
        return Prefilled(
            prompt_tokens=self._prompt_tokens,
            cached_tokens=self._cached,
            done_tokens=done,
            admitted_ns=self._admitted_ns,
            started_ns=self._started_ns,
            at_ns=at_ns,
        )

    def sampled(self, event: Sampled, at_ns: int) -> list[Text | Reasoning]:
        """The text that one step's tokens made certain; the last piece carries the step's counts."""
        text = ""
        count = 0
        for token in event.tokens:
            count += 1
            if self._ignore_eos or not self._tokenizer.is_end(token):
                text += self._detokenizer.push(self._tags.get(token) or self._tokenizer.piece(token))
            if self.stopped:
                break
        runs = self._split(text)
        if self.stopped:
            runs += self._rest()
        if runs:
            self.heard = True
        else:
            runs = [(self._thinking, "")]
        thinking, last = runs.pop()
        pieces: list[Text | Reasoning] = [_kind(before)(text=run, tokens=0, at_ns=at_ns) for before, run in runs]
        pieces.append(
            _kind(thinking)(
                text=last,
                tokens=count,
                at_ns=at_ns,
                drafted=event.drafted,
                accepted=min(event.accepted, count),
                plain_s=event.plain_s,
                logprobs=self._logprobs(event, count),
            )
        )
        return pieces

    def flush(self, at_ns: int) -> Iterator[Text | Reasoning]:
        """The text that was still undecided when the sequence ended."""
        runs = self._split(self._detokenizer.finish()) + self._rest()
        for kind, run in runs:
            yield _kind(kind)(text=run, tokens=0, at_ns=at_ns)

    def _split(self, text: str) -> list[tuple[bool, str]]:
        if self._splitter is None:
            return [(False, text)] if text else []
        runs = self._splitter.push(text) if text else []
        if runs:
            self._thinking = runs[-1][0]
        return runs

    def _rest(self) -> list[tuple[bool, str]]:
        return [] if self._splitter is None else self._splitter.finish()

    def _logprobs(self, event: Sampled, count: int) -> tuple[TokenLogprob, ...]:
        if not event.logprobs:
            return ()
        return tuple(
            TokenLogprob(
                token_id=token,
                token_bytes=self._tokenizer.piece(token),
                logprob=logprob.value,
                top=tuple((other, self._tokenizer.piece(other), value) for other, value in logprob.top),
            )
            for token, logprob in list(zip(event.tokens, event.logprobs, strict=False))[:count]
        )


def _kind(thinking: bool) -> type[Text] | type[Reasoning]:
    return Reasoning if thinking else Text


class Encoder:
    """Requests to sequences. Used from a thread of its own: tokenizers may be called from any thread."""

    def __init__(self, backend: Backend) -> None:
        self._tokenizer = backend.tokenizer
        self._context = backend.info.context
        self._vocabulary = range(backend.info.vocabulary)
        self._template = ChatTemplate.load(backend.tokenizer, backend.tokenizer.chat_template)
        # The plain template has no token that ends a turn: the next turn's beginning does.
        self._stop = (PLAIN_TURN,) if self._template.name == "plain" else ()
        self._tags = _tag_tokens(backend.tokenizer)
        self.notices: tuple[str, ...] = self._template.notices

    def encode(self, id: int, request: GenerationRequest) -> tuple[Reply, SequenceJob]:
        """What to generate for ``request``. Raises ``ContextOverflow``, ``BadRequest``, ``ModelFileInvalid``."""
        self._check_ids("token_ids", request.token_ids or ())
        self._check_ids("logit_bias", request.sampling.logit_bias)
        tokens, reasoning = self._tokens(request)
        if not tokens:
            raise BadRequest("The prompt is empty.", "Write something to answer.", param="prompt")
        if len(tokens) >= self._context:
            raise ContextOverflow(
                f"The prompt has {len(tokens):,} tokens, but the context holds {self._context:,}.",
                "Shorten the prompt, or ask for a larger context.",
                prompt_tokens=len(tokens),
                context=self._context,
            )
        job = SequenceJob(
            id=id,
            tokens=tokens,
            sampling=request.sampling,
            max_tokens=request.max_tokens,
            ignore_eos=request.ignore_eos,
            speculation=request.speculation,
            prediction=self._tokenizer.encode(request.prediction, special=False) if request.prediction else (),
        )
        chat = reasoning is not None
        reply = Reply(
            request,
            self._tokenizer,
            len(tokens),
            reasoning=reasoning,
            stop=self._stop if chat else (),
            tags=self._tags if chat else {},
        )
        return reply, job

    def count(self, request: GenerationRequest) -> TokenCount:
        """How many tokens ``request`` is generated from. Raises ``BadRequest``, ``ModelFileInvalid``."""
        tokens, _ = self._tokens(request)
        contents = (message.content for message in request.messages)
        return TokenCount(
            total=len(tokens),
            by_message=tuple(len(self._tokenizer.encode(content, special=False)) for content in contents),
        )

    def _check_ids(self, param: str, ids: Iterable[int]) -> None:
        for token in ids:
            if token not in self._vocabulary:
                raise BadRequest(
                    f"{param} holds {token}, but the model has the tokens 0 to {len(self._vocabulary) - 1:,}.",
                    "Use ids of this model's own tokenizer.",
                    param=param,
                )

    def _tokens(self, request: GenerationRequest) -> tuple[list[int], bool | None]:
        if request.messages:
            prompt = self._template.encode(self._tokenizer, request.messages)
            return list(prompt.token_ids), prompt.opens_reasoning
        if request.prompt is not None:
            return encode_text(self._tokenizer, request.prompt), None
        return list(request.token_ids or ()), None


def _tag_tokens(tokenizer: Tokenizer) -> dict[int, bytes]:
    """Control tokens that are a tag of reasoning: their piece is empty, yet the splitter must see them."""
    found = {}
    for tag in (text for pair in TAGS for text in pair):
        ids = tokenizer.encode(tag, special=True)
        if len(ids) == 1 and not tokenizer.piece(ids[0]):
            found[ids[0]] = tag.encode()
    return found
