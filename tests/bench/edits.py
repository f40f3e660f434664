"""What speculation is compared on: edits of code, whose answers repeat the prompt, and questions, whose answers do not.

The texts are our own.
"""

import msgspec

from backends.base import Tokenizer
from localinfer.bench.texts import BUILT_IN
from tests.backends.llama_cpp.driving import chat

_STORE = """\
class Store:
    def __init__(self, path, limit=100):
        self.path = path
        self.limit = limit
        self.items = {}
        self.order = []

    def add(self, key, value):
        if key in self.items:
            self.order.remove(key)
        elif len(self.order) >= self.limit:
            oldest = self.order.pop(0)
            del self.items[oldest]
        self.items[key] = value
        self.order.append(key)

    def get(self, key, default=None):
        if key not in self.items:
            return default
        self.order.remove(key)
        self.order.append(key)
        return self.items[key]

    def remove(self, key):
        if key in self.items:
            del self.items[key]
            self.order.remove(key)

    def save(self):
        with open(self.path, "w") as file:
            for key in self.order:
                file.write(f"{key}={self.items[key]}\\n")

    def load(self):
        with open(self.path) as file:
            for line in file:
                key, value = line.rstrip("\\n").split("=", 1)
                self.add(key, value)
"""

_REPORT = """\
import csv


def read_rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def group_by_month(rows):
    months = {}
    for row in rows:
        month = row["date"][:7]
        months.setdefault(month, []).append(row)
    return months


def total(rows):
    return sum(float(row["amount"]) for row in rows)


def average(rows):
    if not rows:
        return 0.0
    return total(rows) / len(rows)


def largest(rows):
    return max(rows, key=lambda row: float(row["amount"]))


def print_report(path):
    months = group_by_month(read_rows(path))
    for month in sorted(months):
        rows = months[month]
        print(month, len(rows), total(rows), average(rows))
        print("largest:", largest(rows)["name"])


if __name__ == "__main__":
    print_report("expenses.csv")
"""

_SHAPES = """\
import math


class Circle:
    def __init__(self, radius):
        self.radius = radius

    def area(self):
        return math.pi * self.radius ** 2

    def perimeter(self):
        return 2 * math.pi * self.radius


class Rectangle:
    def __init__(self, width, height):
        self.width = width
        self.height = height

    def area(self):
        return self.width * self.height

    def perimeter(self):
        return 2 * (self.width + self.height)


class Triangle:
    def __init__(self, a, b, c):
        self.a = a
        self.b = b
        self.c = c

    def perimeter(self):
        return self.a + self.b + self.c

    def area(self):
        s = self.perimeter() / 2
        return math.sqrt(s * (s - self.a) * (s - self.b) * (s - self.c))
"""


class Asked(msgspec.Struct, frozen=True):
    """A conversation by user and assistant in turns, and how the answer begins."""

    turns: tuple[str, ...]
    opening: str = ""

    def tokens(self, tokenizer: Tokenizer) -> list[int]:
        """The prompt, in ChatML."""
        opened = tokenizer.encode(self.opening, special=False) if self.opening else []
        return [*chat(tokenizer, *self.turns), *opened]


class _Change(msgspec.Struct, frozen=True):
    what: str
    old: str
    new: str


def _edit(code: str, first: _Change, second: _Change, lines: int) -> Asked:
    """The second of two edits of a file, of which so many lines are there already. Small models repeat a file only if
    they have seen it done, and have begun."""
    once = code.replace(first.old, first.new)
    twice = once.replace(second.old, second.new).split("\n")
    opening = "\n".join([*twice[:lines], twice[lines][:6]])
    return Asked(
        turns=(
            f"Repeat this file, but {first.what}:\n```python\n{code}```",
            f"```python\n{once}```",
            f"Repeat it again, but {second.what}.",
        ),
        opening=f"```python\n{opening}",
    )


_TO_BIGGEST = _Change("rename the function largest to biggest", "largest", "biggest")

EDITS = {
    "rename a method": _edit(
        _STORE,
        _Change("rename the class Store to Cache", "Store", "Cache"),
        _Change("rename the method get to fetch", "def get", "def fetch"),
        lines=10,
    ),
    "rename a function": _edit(
        _REPORT,
        _TO_BIGGEST,
        _Change("rename the function total to total_amount", "total", "total_amount"),
        lines=2,
    ),
    "add type hints": _edit(
        _REPORT,
        _TO_BIGGEST,
        _Change("add type hints to every function", "read_rows(path)", "read_rows(path: str)"),
        lines=2,
    ),
    "add docstrings": _edit(
        _SHAPES,
        _Change("rename perimeter to outline", "perimeter", "outline"),
        _Change("add a docstring to every class", "class Circle:\n", 'class Circle:\n    """A circle."""\n\n'),
        lines=2,
    ),
}

QUESTIONS = {
    name: Asked((question,)) for name, question in zip(("bread", "locks", "town"), BUILT_IN["chat"], strict=False)
}
