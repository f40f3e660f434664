"""What speculation is compared on: edits of code, whose answers repeat the prompt, and questions, whose answers are new.

The texts are our own.
"""

from localinfer.bench.texts import BUILT_IN

_STORE = '''\
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
'''

_REPORT = '''\
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
'''

_SHAPES = '''\
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
'''

_QUEUE = '''\
class Job {
  constructor(name, run, priority) {
    this.name = name;
    this.run = run;
    this.priority = priority;
    this.attempts = 0;
  }
}

class Queue {
  constructor(limit) {
    this.limit = limit;
    this.jobs = [];
    this.failed = [];
  }

  add(job) {
    if (this.jobs.length >= this.limit) {
      throw new Error("the queue is full");
    }
    this.jobs.push(job);
    this.jobs.sort((a, b) => b.priority - a.priority);
  }

  next() {
    if (this.jobs.length === 0) {
      return null;
    }
    return this.jobs.shift();
  }

  async work() {
    let job = this.next();
    while (job !== null) {
      try {
        job.attempts += 1;
        await job.run();
      } catch (error) {
        this.failed.push(job);
      }
      job = this.next();
    }
  }
}
'''

EDITS = {
    "rename": f"Repeat this file with the method get renamed to fetch, and nothing else changed:\n```python\n{_STORE}```",
    "type hints": f"Repeat this file with type hints added to every function:\n```python\n{_REPORT}```",
    "docstrings": f"Repeat this file with a docstring added to every class:\n```python\n{_SHAPES}```",
    "JavaScript": f"Repeat this file with the field failed renamed to broken:\n```javascript\n{_QUEUE}```",
}

QUESTIONS = dict(zip(("bread", "locks", "town"), BUILT_IN["chat"], strict=False))
