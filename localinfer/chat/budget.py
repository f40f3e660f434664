"""How much work a chat template may do: every operation is paid for before it is done.

A template comes out of a model file, so it is a program of unknown intent. Work is counted rather than timed: the same
template gets the same verdict on a slow and on a busy machine. A unit is about what reading or making one character
costs at most, some 30 ns. It knows nothing of Jinja, messages or tokens.
"""

import json
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, ValuesView
from operator import length_hint

LIGHT = 2  # one node of a template's syntax tree
CALL = 64  # one call of a Python function
_ELEMENT = 4
_SLOW = 8
_MAX_BITS = 8192
_MAX_DEPTH = 100
_CHARACTERS_AT_ONCE = 16
_MAX_DIGITS = 400
_CONTAINERS = (list, tuple, dict, ValuesView, ItemsView, Iterator)
_SIZED = (*_CONTAINERS, KeysView, range)


class WorkLimit(Exception):
    """The template wants to do more than a chat template ever needs."""


def size(value: object) -> int:
    """Units it takes to go through ``value`` once, not into its elements."""
    if isinstance(value, str):
        return 1 + len(value)
    if isinstance(value, int):
        return 1 + value.bit_length() // 8
    if isinstance(value, _SIZED):
        return 1 + _ELEMENT * length_hint(value)
    return 1


class Budget:
    """The units left for one rendering, and the operations whose result can be far bigger than their operands."""

    def __init__(self, units: int) -> None:
        self._left = units
        self._weighed: dict[int, tuple[object, int, int]] = {}

    def spend(self, units: int) -> None:
        """Pay, or raise ``WorkLimit``. Nothing earns units."""
        self._left -= max(units, 0)
        if self._left < 0:
            raise WorkLimit("it does too much work")

    def weight(self, value: object) -> int:
        """Units it takes to print, hash or compare ``value``, everything inside it included."""
        return self._weigh(value)[0]

    def _weigh(self, value: object) -> tuple[int, int]:
        """Weight and depth. A container is remembered (and kept alive), so that one that holds another twice, and
        that twice the next, is weighed in time linear in what exists, not in what it would print."""
        if isinstance(value, str) or not isinstance(value, _CONTAINERS):
            return size(value), 0
        if isinstance(value, Iterator):
            raise WorkLimit("it prints or compares a sequence that is not made yet")
        known = self._weighed.get(id(value))
        if known is None:
            self.spend(size(value))
            inner = [self._weigh(item) for item in _elements(value)]
            depth = 1 + max((depth for _, depth in inner), default=0)
            if depth > _MAX_DEPTH:
                raise WorkLimit("it nests values too deeply")
            known = value, size(value) + sum(weight for weight, _ in inner), depth
            self._weighed[id(value)] = known
        return known[1], known[2]

    def operate(self, operator: str, left: object, right: object) -> None:
        """Pay for ``left operator right``; the operators whose result can grow are ``+ * ** %``."""
        if operator == "%" and isinstance(left, str):
            raise WorkLimit("it formats with %")
        if isinstance(left, int) and isinstance(right, int):
            bits = left.bit_length(), right.bit_length()
            grown = {"*": sum(bits), "**": bits[0] * abs(right) if operator == "**" else 0}.get(operator, max(bits))
            if grown > _MAX_BITS:
                raise WorkLimit("it computes with numbers that are too big")
            self.spend(CALL + grown // 8)
        elif operator == "*":
            times = next((max(number, 0) for number in (left, right) if isinstance(number, int)), 1)
            self.spend(CALL + times * max(size(left), size(right)))
        else:
            self.spend(CALL + size(left) + size(right))

    def search(self, text: str, arguments: Iterable[object] = ()) -> None:
        """Pay for going through ``text``, comparing each place with ``arguments``."""
        sought = sum(self.weight(argument) for argument in arguments)
        self.spend(CALL + (1 + len(text)) * (1 + sought // _CHARACTERS_AT_ONCE))

    def format(self, text: str) -> None:
        """Pay for reading ``text`` as a format, whose fields may be long paths."""
        self.spend(CALL + _SLOW * len(text))

    def shallow(self, *values: object, **named: object) -> None:
        """Pay for what does not look into the elements of ``values``."""
        self.spend(CALL + sum(map(size, values)) + sum(map(size, named.values())))

    def deep(self, *values: object, **named: object) -> None:
        """Pay for what prints, hashes or compares ``values``."""
        self.spend(CALL + sum(map(self.weight, values)) + sum(map(self.weight, named.values())))

    def string(self, value: object) -> str:
        """``str(value)``."""
        self.deep(value)
        return str(value)

    def replace(self, text: str, old: str, new: str) -> None:
        """Pay for ``text.replace(old, new)``."""
        self.search(text, (old,))
        self.spend(text.count(old) * len(new))

    def replaced(self, text: str, old: str, new: str, count: int = -1) -> str:
        """``text.replace(old, new, count)``."""
        self.replace(text, old, new)
        return text.replace(old, new, count)

    def joined(self, separator: str, parts: Iterable[str]) -> str:
        """``separator.join(parts)``."""
        parts = list(parts)
        self.deep(parts)
        self.spend(len(parts) * len(separator))
        return separator.join(parts)

    def json(
        self,
        value: object,
        ensure_ascii: bool = False,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        """``value`` as JSON, as Hugging Face's ``tojson`` filter writes it."""
        weight, depth = self._weigh(value)
        self.spend(CALL + weight * (2 + depth * max(int(indent or 0), 0) + sum(map(len, separators or ()))))
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _elements(value: Iterable[object]) -> Iterator[object]:
    yield from value
    if isinstance(value, dict):
        yield from value.values()


# How filters are paid for that take long or can make more than they are given. The arguments are Jinja's.


def _each(budget: Budget, value: object, *arguments: object, **named: object) -> None:
    """An argument may be a dotted path, which is followed for each element."""
    budget.spend(CALL + _SLOW * size(value) * _length(budget, *arguments, *named.values()))


def _sort(budget: Budget, value: object, *arguments: object, **named: object) -> None:
    budget.spend(CALL + _SLOW * budget.weight(value) * _length(budget, *arguments, *named.values()))


def _length(budget: Budget, *arguments: object) -> int:
    return 1 + sum(map(budget.weight, arguments)) // _CHARACTERS_AT_ONCE


def _trim(budget: Budget, value: object, chars: str | None = None) -> None:
    budget.search(budget.string(value), (chars,))


def _replace(budget: Budget, value: object, old: object, new: object, count: int | None = None) -> None:
    budget.replace(budget.string(value), budget.string(old), budget.string(new))


def _join(budget: Budget, value: object, separator: object = "", attribute: object = None) -> None:
    budget.spend(CALL + budget.weight(value) + size(value) * (budget.weight(separator) + budget.weight(attribute)))


def _indent(budget: Budget, value: object, width: int | str = 4, first: bool = False, blank: bool = False) -> None:
    lines = 1 + len(budget.string(value).splitlines())
    budget.spend(lines * (len(width) if isinstance(width, str) else int(width)))


def _int(budget: Budget, value: object, default: object = 0, base: int = 10) -> None:
    if isinstance(value, str) and len(value) > _MAX_DIGITS:
        raise WorkLimit("it computes with numbers that are too big")
    budget.shallow(value)


# Everything below is what chat templates use; what is not here does not exist for them.
FILTERS: dict[str, Callable[..., None]] = {
    **dict.fromkeys(["count", "d", "default", "first", "items", "last", "length", "list", "reverse"], Budget.shallow),
    **dict.fromkeys(["abs", "capitalize", "float", "lower", "upper"], Budget.deep),
    **dict.fromkeys(["map", "reject", "rejectattr", "select", "selectattr"], _each),
    **dict.fromkeys(["dictsort", "groupby", "max", "min", "sort", "title", "unique"], _sort),
    "indent": _indent,
    "int": _int,
    "join": _join,
    "replace": _replace,
    "trim": _trim,
}
DEEP_TESTS = frozenset(
    [
        *("eq", "equalto", "==", "ne", "!=", "in", "lower", "upper"),
        *("gt", "greaterthan", ">", "ge", ">=", "lt", "lessthan", "<", "le", "<="),
    ]
)
METHODS: dict[type, frozenset[str]] = {
    str: frozenset(
        [
            *("capitalize", "casefold", "count", "endswith", "find", "index", "isalnum", "isalpha", "isdigit"),
            *("islower", "isnumeric", "isspace", "isupper", "lower", "lstrip", "partition", "removeprefix"),
            *("removesuffix", "rfind", "rindex", "rpartition", "rsplit", "rstrip", "split", "splitlines"),
            *("startswith", "strip", "title", "upper"),
        ]
    ),
    dict: frozenset({"get", "items", "keys", "values"}),
    tuple: frozenset({"grouper", "list"}),
}
