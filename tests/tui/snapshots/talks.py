"""Conversations that have everything a conversation can have."""

from datetime import datetime

from localinfer.history.store import History
from localinfer.history.values import Attachment, Omission, Turn
from tests.tui.snapshots.replies import METRICS
from tests.tui.snapshots.stage import MODEL, Times

ANSWER = """\
## Prefill and decode

The model reads the **whole prompt** at once, which is *prefill*, and then writes one token after another, which is
*decode*. `ITL` is the time between two tokens.

| phase | 日本語 | bound by | unit |
|:---|:---|:---|---:|
| prefill | プリフィル | arithmetic | tokens/s |
| decode | デコード | memory bandwidth | tokens/s |
| load | 読み込み 📦 | disk | s |

1. The template turns the messages into one text.
2. The tokenizer turns the text into ids:
   - 文章は分かち書きせずに書かれます。
   - Flags 🇯🇵🇩🇪, families 👨‍👩‍👧‍👦 and an e with two accents: ế.

```python
def decode(model, cache, token, limit):
    \"\"\"Yield tokens until the model ends or the limit is reached.\"\"\"
    while len(cache) < limit and token != model.end:
        token = sample(model.forward(token, cache), temperature=0.8)
        yield token  # one pass, one token: every weight is read once, so the bandwidth of the memory is the limit
```

> A figure that was not measured is a dash.

See [the design](https://example.org/design) for more.
"""
NOTES = Attachment(name="notes.md", text="# Notes\n\n- prefill, decode\n" * 30)
SUMMARY = "The person asked what a token is; the reply explained tokens, ids and vocabularies with examples."


def rich(history: History, times: Times) -> int:
    """A conversation of this afternoon with every kind of turn; its number."""
    times.set(datetime(2026, 3, 17, 18, 2))
    id = history.start(model=MODEL).id
    first = history.add(id, "user", "What is a token?", parent=None)
    before = _reply(history, id, first, "A token is a piece of text: a word, or a part of one.")
    times.set(datetime(2026, 3, 18, 14, 31))
    question = "Compare prefill and decode.\nBitte auch auf Japanisch: 日本語で 👩‍💻"
    asked = history.add(id, "user", question, parent=before.id, attachments=(NOTES,))
    _reply(history, id, asked, "Prefill reads, decode writes.")
    second = _reply(history, id, asked, ANSWER, reasoning="They want a comparison. " * 12)
    _reply(history, id, asked, "Both are passes through the model.")
    more = history.add(id, "user", "Now the same as a poem of 500 lines.", parent=second.id)
    stopped = _reply(history, id, more, "Prefill is a river wide,\ndecode a drop that falls beside", state="stopped")
    last = history.add(id, "user", "And what would need more memory than there is?", parent=stopped.id)
    died = "The worker died while generating: killed by SIGKILL. The system may have run out of memory."
    failed = _reply(history, id, last, "A larger context would:", state="failed", note=died)
    history.change(id, head=failed.id, omissions=(Omission(upto=before.id, summary=SUMMARY),))
    return id


def short(history: History, times: Times) -> int:
    """A conversation of one question and its answer."""
    times.set(datetime(2026, 3, 18, 14, 52))
    id = history.start(model=MODEL).id
    asked = history.add(id, "user", "Why is decode slower than prefill?", parent=None)
    text = (
        "Each token of decode reads **every weight once**, and memory is slow:\n\n- prefill does many tokens a pass,\n"
    )
    _reply(history, id, asked, text + "- decode does one.\n")
    return id


def several(history: History, times: Times) -> None:
    """Other conversations, old and new, with titles of all sorts."""
    for at, title, pinned in (
        (datetime(2025, 11, 2, 9, 15), "Recipe for a slow Sunday", False),
        (datetime(2026, 2, 11, 21, 40), "東京の天気と明日の予定について、できるだけ詳しく教えてください", False),
        (datetime(2026, 3, 13, 8, 5), "Regex for ISO dates", False),
        (datetime(2026, 3, 17, 11, 20), "[/b] markup that must not be obeyed \x1b[31m", False),
        (datetime(2026, 3, 18, 9, 12), "🇯🇵 A trip to Kyoto in nine days, by train and on foot", False),
        (datetime(2026, 1, 5, 16, 0), "House rules for commit messages", True),
    ):
        times.set(at)
        id = history.start(title, model=MODEL).id
        asked = history.add(id, "user", f"About this: {title}. How does decode matter here?", parent=None)
        _reply(history, id, asked, f"The bandwidth of memory limits decode, whatever the subject: {title}.")
        if pinned:
            history.change(id, pinned=True)


def _reply(history: History, id: int, asked: Turn, text: str, reasoning: str = "", **ending: str) -> Turn:
    turn = history.add(id, "assistant", "", parent=asked.id, state="growing", model=MODEL)
    thinking = (4.2, 310) if reasoning else (None, 0)
    return history.finish(
        turn.id,
        text,
        reasoning,
        metrics=METRICS,
        thought_s=thinking[0],
        thought_tokens=thinking[1],
        **ending,  # type: ignore[arg-type]
    )
