"""The scripted backend's vocabulary: bytes and ChatML."""

import re


class ByteTokenizer:
    """Ids 0 to 255 are bytes; two control tokens after them make ChatML."""

    bos: int | None = None
    eos: int | None = 257
    adds_bos = False
    chat_template: str | None = (
        "{% for message in messages %}"
        "{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}"
        "{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
    )
    start, end = 256, 257
    size = 258
    _controls = ("<|im_start|>", "<|im_end|>")
    _control_pattern = re.compile("(" + "|".join(re.escape(text) for text in _controls) + ")")

    def encode(self, text: str, *, special: bool) -> list[int]:
        if not special:
            return list(text.encode())
        ids: list[int] = []
        for part in self._control_pattern.split(text):
            ids += [self.start + self._controls.index(part)] if part in self._controls else part.encode()
        return ids

    def piece(self, token: int) -> bytes:
        return bytes([token]) if token < self.start else b""

    def text(self, token: int) -> str:
        return chr(token) if token < self.start else self._controls[token - self.start]

    def control_texts(self) -> tuple[str, ...]:
        return self._controls

    def is_end(self, token: int) -> bool:
        return token == self.end
