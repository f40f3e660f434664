"""A text as models write them: headings, lists, tables and code."""

MARKDOWN = """\
## How a reply is made

A model reads the **whole prompt** first, which is called *prefill*, and then writes one token after another, which is
called *decode*. Prefill is bound by arithmetic, decode by the bandwidth of memory: each token reads every weight once.

| phase | bound by | unit | what helps |
|---|---|---|---|
| load | disk | seconds | a model that stays loaded |
| prefill | arithmetic | tokens/s | a longer batch, a shared prefix |
| decode | memory bandwidth | tokens/s | fewer bits per weight, speculation |
| sampling | nothing much | ms | – |

1. The template turns the messages into one text.
2. The tokenizer turns the text into ids:
   - ordinary text into ordinary tokens,
   - the template's own marks into control tokens.
3. The scheduler finds the longest prefix that is in the cache already.

```python
def decode(model, cache, token, limit):
    \"\"\"Yield tokens until the model ends or the limit is reached.\"\"\"
    for position in range(len(cache), limit):
        logits = model.forward(token, cache)
        token = sample(logits, temperature=0.8)
        if token == model.end:
            return
        yield token
```

> A figure that was not measured is a dash.

The rest is bookkeeping. Here is the same in another language:

```rust
fn decode(model: &Model, cache: &mut Cache, mut token: u32, limit: usize) -> Vec<u32> {
    let mut found = Vec::new();
    while cache.len() < limit {
        let logits = model.forward(token, cache);
        token = sample(&logits, 0.8);
        if token == model.end { break; }
        found.push(token);
    }
    found
}
```

"""
