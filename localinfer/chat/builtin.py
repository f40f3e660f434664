"""The chat templates for models that bring none that works. They know the shape of a conversation and nothing else."""

from collections.abc import Iterable

_CHATML = """\
{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""

_PLAIN = """\
{% for message in messages %}
{% if message.role != 'system' %}{{ message.role|capitalize }}: {% endif %}{{ message.content }}{{ '\\n\\n' }}
{%- endfor %}
{% if add_generation_prompt %}Assistant:{% endif %}"""


def choose(control_texts: Iterable[str]) -> tuple[str, str]:
    """Name and text of the template for a vocabulary with these control tokens."""
    chatml = {"<|im_start|>", "<|im_end|>"} <= set(control_texts)
    return ("chatml", _CHATML) if chatml else ("plain", _PLAIN)
