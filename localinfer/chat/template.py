"""Chat templates: messages to token ids, through a program that came with the model file and is trusted with nothing.

Two dangers meet here. The template is untrusted code: it runs in Jinja's sandbox, with the operations that chat
templates use and no others, and pays for each from a ``Budget``. The messages are untrusted text: ``controls`` keeps
them from becoming control tokens. It knows nothing of requests, replies or models. One thread at a time.
"""

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial, wraps
from types import BuiltinMethodType
from typing import Any, NoReturn, Self, cast

from jinja2 import TemplateError, nodes, pass_context
from jinja2.ext import Extension, LoopControlExtension
from jinja2.filters import FILTERS as JINJA_FILTERS
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedFormatter, safe_range
from jinja2.tests import TESTS as JINJA_TESTS
from jinja2.utils import Cycler, Joiner, Namespace
from jinja2.visitor import NodeTransformer

from localinfer.chat import builtin
from localinfer.chat.budget import CALL, DEEP_TESTS, FILTERS, LIGHT, METHODS, Budget, WorkLimit
from localinfer.chat.controls import Controls, Cuts
from localinfer.chat.prompt import Prompt, Tokenizer, Turn, as_turns, encode_pieces, without_system
from localinfer.chat.reasoning import TAGS
from localinfer.errors import BadRequest, ModelFileInvalid
from localinfer.types import Message

_MAX_SOURCE = 65_536
_MAX_RENDERED = 8_000_000
_UNITS, _UNITS_PER_CHARACTER, _UNITS_PER_TURN = 10_000_000, 40, 100_000
_OPENINGS = tuple(opening for opening, _ in TAGS)


class ChatTemplate:
    """A template that works, for one vocabulary.

    ``name`` is "model" for the model's own, else that of the built-in one. ``notices`` tell a person what is not as the
    model's maker meant it.
    """

    def __init__(self, tokenizer: Tokenizer, source: str, name: str, notices: tuple[str, ...] = ()) -> None:
        bos, eos = ("" if token is None else tokenizer.text(token) for token in (tokenizer.bos, tokenizer.eos))
        self._source = source
        self._controls = Controls(tokenizer.control_texts())
        self._program = _Program(source, bos_token=bos, eos_token=eos)
        self._takes_system = self._program.takes_system()
        self.name = name
        self.notices = notices
        if not self._takes_system:
            self.notices += (
                "This model’s chat template takes no system message; it is put before the first user message instead.",
            )

    @classmethod
    def load(cls, tokenizer: Tokenizer, source: str | None) -> Self:
        """The template ``source``, or a built-in one when there is none or it does not work."""
        reason = "This model has no chat template"
        if source:
            try:
                return cls(tokenizer, source, "model")
            except _Broken as error:
                reason = f"This model’s own chat template does not work ({error})"
        name, source = builtin.choose(tokenizer.control_texts())
        return cls(tokenizer, source, name, (f"{reason}; using the built-in “{name}” template.",))

    def encode(
        self,
        tokenizer: Tokenizer,
        messages: Sequence[Message],
        *,
        add_generation_prompt: bool = True,
        enable_thinking: bool | None = None,
    ) -> Prompt:
        """The prompt for ``messages``. ``enable_thinking`` None leaves the choice to the template.

        Raises ``BadRequest`` when the template refuses the conversation, ``ModelFileInvalid`` when it fails at it.
        """
        if not messages:
            raise BadRequest("There is no message to answer.", "Send at least one message.", param="messages")
        given = as_turns(messages) if self._takes_system else without_system(as_turns(messages))
        cuts = Cuts(self._controls, [self._source, *(text for turn in given for text in turn.values())])
        protected = [
            {key: text if key == "role" else cuts.protect(text, _OPENINGS) for key, text in turn.items()}
            for turn in given
        ]
        try:
            rendered = self._program.render(protected, add_generation_prompt, enable_thinking)
        except _Refused as error:
            raise BadRequest(
                f"This model’s chat template refuses the conversation: {_shown(error)}",
                "Change the order or the roles of the messages.",
                param="messages",
            ) from error
        except _Broken as error:
            raise ModelFileInvalid(
                f"This model’s chat template fails at the conversation: {error}", "Try another file of this model."
            ) from error
        return Prompt(
            token_ids=tuple(encode_pieces(tokenizer, cuts.pieces(rendered))),
            opens_reasoning=add_generation_prompt and rendered.rstrip().endswith(_OPENINGS),
        )


def encode_text(tokenizer: Tokenizer, text: str) -> list[int]:
    """Token ids of a raw prompt. It is text from outside: no control token but the first comes of it."""
    return encode_pieces(tokenizer, [(text, False)])


class _Refused(TemplateError):
    """The template called ``raise_exception``."""


class _Broken(Exception):
    """The template cannot be compiled, fails, or does too much."""


def _shown(error: Exception) -> str:
    """What an error says, fit for a screen: a template's own words may be anything."""
    said = "it nests too deeply" if isinstance(error, RecursionError) else str(error) or type(error).__name__
    return "".join(character if character.isprintable() else " " for character in said[:200])


class _Program:
    """One compiled template. Compiling and rendering raise ``_Broken``."""

    def __init__(self, source: str, **constants: str) -> None:
        self._constants = {**constants, "tools": None, "documents": None}
        self._environment = _Environment()
        try:
            if len(source) > _MAX_SOURCE:
                raise WorkLimit("it is too long")
            tree = _Instrumented().visit(self._environment.parse(source))
            self._units = _units(tree)
            self._template = self._environment.from_string(tree.set_lineno(1).set_environment(self._environment))
        except Exception as error:
            raise _Broken(_shown(error)) from error

    def takes_system(self) -> bool:
        """Whether a system message is taken and not left out. An ordinary conversation without one must work."""
        system, user = "Answer in one word.", "Is water wet?"
        turns: list[Turn] = [
            {"role": "system", "content": system},
            {"role": "user", "content": user},
            {"role": "assistant", "content": "Yes."},
            {"role": "user", "content": user},
        ]
        try:
            rendered = self.render(turns)
            takes = system in rendered
        except _Refused:
            takes = False
        try:
            rendered = rendered if takes else self.render(without_system(turns))
        except _Refused as error:
            raise _Broken(_shown(error)) from error
        if user not in rendered:
            raise _Broken("it leaves out what the user says")
        return takes

    def render(self, turns: list[Turn], add_generation_prompt: bool = True, enable_thinking: bool | None = None) -> str:
        """The text of the conversation. Raises ``_Refused`` too."""
        characters = sum(len(text) for turn in turns for text in turn.values())
        thinking = {} if enable_thinking is None else {"enable_thinking": enable_thinking}
        budget = Budget(_UNITS + _UNITS_PER_CHARACTER * characters + _UNITS_PER_TURN * len(turns))
        self._environment.budget = budget
        try:
            budget.spend(self._units)
            rendered = self._template.render(
                self._constants, messages=turns, add_generation_prompt=add_generation_prompt, **thinking
            )
        except _Refused:
            raise
        except Exception as error:
            raise _Broken(_shown(error)) from error
        if len(rendered) > _MAX_RENDERED + 4 * characters:
            raise _Broken("what it makes is too long")
        return rendered


# Filters of the sandbox itself; no template can spell a name with a space.
_SPEND, _DEEP, _SHALLOW = " spend", " deep", " shallow"


def _filtered(node: nodes.Expr, name: str) -> nodes.Expr:
    return nodes.Filter(node, name, [], [], None, None)


def _paid(node: nodes.Expr) -> nodes.Expr:
    return node if isinstance(node, nodes.Const) else _filtered(node, _DEEP)


def _units(node: nodes.Node) -> int:
    """What it costs to run everything in ``node`` once, apart from what pays for itself."""
    looks_up = nodes.Getattr, nodes.Getitem
    return sum(CALL if isinstance(inner, looks_up) else LIGHT for inner in node.find_all(nodes.Node))


class _Instrumented(NodeTransformer):
    """Puts payments into a template's syntax tree where the sandbox has no hook of its own.

    Every body that can run more than once begins with paying for its length; values that are compared, concatenated,
    sliced or used as keys are paid for; literal text becomes an expression, which is paid for when it is written.
    """

    def generic_visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> nodes.Node:
        super().generic_visit(node, *args, **kwargs)
        match node:
            case nodes.For() | nodes.Macro() | nodes.CallBlock() | nodes.Block():
                payment = _filtered(nodes.Const(_units(node)), _SPEND)
                node.body.insert(0, nodes.ExprStmt(payment))
                if isinstance(node, nodes.For) and node.test is not None:
                    node.test = nodes.And(payment, node.test)
            case nodes.Compare():
                node.expr = _paid(node.expr)
            case nodes.Operand():
                node.expr = _paid(node.expr)
            case nodes.Pair():
                node.key = _paid(node.key)
            case nodes.Concat():
                node.nodes = [_paid(part) for part in node.nodes]
            case nodes.Getitem(arg=nodes.Slice()):
                node.node = _filtered(node.node, _SHALLOW)
            case nodes.TemplateData():
                return nodes.Const(node.data)
            case nodes.ScopedEvalContextModifier():
                raise TemplateError("autoescape is not for chat templates")
        return node


class _Generation(Extension):
    """``{% generation %}`` marks what a model is trained on; here it is only a scope."""

    tags = {"generation"}  # noqa: RUF012 - Jinja's own declaration

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)


class _Namespace(Namespace):
    def __repr__(self) -> str:  # what it holds may hold itself
        return "<Namespace>"


class _Formatter(SandboxedFormatter):
    """``str.format`` that pays for what it prints."""

    def __init__(self, environment: "_Environment") -> None:
        super().__init__(environment)
        self._budget = environment.budget

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        value, first = super().get_field(field_name, args, kwargs)
        self._budget.deep(value)
        return value, first

    def format_field(self, value: Any, format_spec: str) -> Any:
        if re.search(r"\d{3}", format_spec):
            raise WorkLimit("it formats too wide")
        self._budget.spend(100)
        return super().format_field(value, format_spec)


@pass_context
def _written(context: Context, value: object) -> object:
    cast(_Environment, context.environment).budget.deep(value)
    return value


def _raise_exception(message: object) -> NoReturn:
    raise _Refused(str(message))


def _strftime_now(layout: str) -> str:
    return datetime.now().strftime(layout[:1000])


_ATTRIBUTES: dict[type, frozenset[str]] = {
    **METHODS,
    Macro: frozenset({"name", "arguments"}),
    Cycler: frozenset({"current", "next", "reset"}),
}


class _Environment(ImmutableSandboxedEnvironment):
    """Jinja as Hugging Face sets it up, less what cannot be paid for. ``budget`` is that of the rendering at hand."""

    budget: Budget
    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self) -> None:
        # Constant folding would run filters before there is a budget.
        extensions = [LoopControlExtension, _Generation]
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, optimized=False, finalize=_written, extensions=extensions
        )
        self.globals = {
            "cycler": Cycler,
            "dict": dict,
            "joiner": Joiner,
            "namespace": _Namespace,
            "raise_exception": _raise_exception,
            "range": safe_range,
            "strftime_now": _strftime_now,
        }
        self.filters = {
            _SPEND: self._paying(Budget.spend),
            _DEEP: self._paying(Budget.deep),
            _SHALLOW: self._paying(Budget.shallow),
            **{name: self._guarded(JINJA_FILTERS[name], pay, eager=True) for name, pay in FILTERS.items()},
            **dict.fromkeys(("string", "safe"), lambda value: self.budget.string(value)),
            **dict.fromkeys(("e", "escape", "forceescape"), lambda value: html.escape(self.budget.string(value))),
            "tojson": lambda *args, **kwargs: self.budget.json(*args, **kwargs),
        }
        self.tests = {
            name: self._guarded(test, Budget.deep if name in DEEP_TESTS else Budget.shallow, eager=False)
            for name, test in JINJA_TESTS.items()
        }

    def _paying(self, pay: Callable[[Budget, Any], None]) -> Callable[[Any], Any]:
        """Pays for a value and passes it on."""

        def paying(value: Any) -> Any:
            pay(self.budget, value)
            return value

        return paying

    def _guarded(self, function: Any, pay: Callable[..., None], *, eager: bool) -> Callable[..., Any]:
        """``function``, paid for by its arguments. ``eager``: what is given or made lazily is made at once."""
        leading = int(hasattr(function, "jinja_pass_arg"))

        @wraps(function)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            values = [list(value) if eager and isinstance(value, Iterator) else value for value in args[leading:]]
            pay(self.budget, *values, **kwargs)
            result = function(*args[:leading], *values, **kwargs)
            return iter(list(result)) if eager and isinstance(result, Iterator) else result

        return guarded

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        self.budget.operate(operator, left, right)
        return super().call_binop(context, operator, left, right)

    def call(self, context: Context, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        # Jinja passes its own variables under names that begin with an underscore.
        named = [value for name, value in kwargs.items() if not name.startswith("_")]
        if isinstance(function, BuiltinMethodType) and isinstance(function.__self__, str):
            self.budget.search(function.__self__, [*args, *named])
        elif isinstance(function, Macro | LoopContext | partial):
            self.budget.shallow(*args, *named)
        elif function is _Namespace:
            self.budget.deep(*args)
            self.budget.shallow(*named)
        else:
            self.budget.deep(*args, *named)
        result = super().call(context, function, *args, **kwargs)
        self.budget.shallow(result)
        return result

    def getitem(self, obj: Any, argument: Any) -> Any:
        if not isinstance(argument, str | int):
            self.budget.deep(argument)
        return super().getitem(obj, argument)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """The string methods whose result can be far bigger than what they are given."""
        if not isinstance(value, BuiltinMethodType) or not isinstance(value.__self__, str):
            return None
        text = value.__self__
        match value.__name__:
            case "format":
                return partial(self._format, text)
            case "replace":
                return partial(self.budget.replaced, text)
            case "join":
                return partial(self.budget.joined, text)
        return None

    def _format(self, text: str, /, *args: Any, **kwargs: Any) -> str:
        self.budget.format(text)
        return _Formatter(self).vformat(text, args, kwargs)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        known = isinstance(obj, LoopContext | Namespace) or any(
            attr in names for kind, names in _ATTRIBUTES.items() if isinstance(obj, kind)
        )
        return known and super().is_safe_attribute(obj, attr, value)
