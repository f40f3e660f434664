"""Chat templates in the manner of the families in use, each with a vocabulary it is written for."""

from tests.chat.vocabulary import CHATML, GEMMA, LLAMA, MISTRAL

CHATML_TEXT = """\
{%- for message in messages %}
    {{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""

LLAMA_TEXT = """\
{{- bos_token }}
{%- if messages[0].role == 'system' %}
    {%- set system_message = messages[0]['content'] | trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = '' %}
{%- endif %}
{{- '<|start_header_id|>system<|end_header_id|>\\n\\n' }}
{%- if tools is not none %}{{- 'Environment: ipython\\n' }}{%- endif %}
{{- 'Today: ' ~ (strftime_now('%d %b %Y') if strftime_now is defined else '26 Jul 2024') ~ '\\n\\n' }}
{{- system_message + '<|eot_id|>' }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' }}
        {{- message['content'] | trim + '<|eot_id|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""

MISTRAL_TEXT = """\
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content'] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- set ns = namespace(index=0) %}
{%- for message in loop_messages %}
    {%- if (message['role'] == 'user') != (ns.index % 2 == 0) %}
        {{- raise_exception('After the optional system message, conversation roles must alternate user/assistant') }}
    {%- endif %}
    {%- set ns.index = ns.index + 1 %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message['role'] == 'user' %}
        {%- if loop.last and system_message is defined %}
            {{- '[INST] ' + system_message + '\\n\\n' + message['content'] + ' [/INST]' }}
        {%- else %}
            {{- '[INST] ' + message['content'] + ' [/INST]' }}
        {%- endif %}
    {%- else %}
        {{- ' ' + message['content'] | trim + eos_token }}
    {%- endif %}
{%- endfor %}
"""

GEMMA_TEXT = """\
{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}
{% for message in messages %}
{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
{{ raise_exception('Conversation roles must alternate user/assistant') }}
{% endif %}
{% set role = 'model' if message['role'] == 'assistant' else message['role'] %}
{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}
{%- endfor %}
{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}
"""

QWEN3_TEXT = """\
{%- set ns = namespace(last=messages|length - 1, found=false) %}
{%- for message in messages[::-1] %}
    {%- if not ns.found and message.role == 'user' and not message.content.startswith('<tool_response>') %}
        {%- set ns.found = true %}
        {%- set ns.last = messages|length - loop.index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role == 'assistant' %}
        {%- set content = message.content %}
        {%- set thought = '' %}
        {%- if message.reasoning_content is string %}
            {%- set thought = message.reasoning_content %}
        {%- elif '</think>' in content %}
            {%- set thought = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last and (loop.last or thought) %}
            {{- '<|im_start|>assistant\\n<think>\\n' + thought.strip('\\n') + '\\n</think>\\n\\n' }}
            {{- content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>assistant\\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- else %}
        {{- '<think>\\n' }}
    {%- endif %}
{%- endif %}
"""

GENERATION_TEXT = """\
{% macro turn(role, caller_text='') %}<|im_start|>{{ role }}
{{ caller() }}<|im_end|>
{% endmacro %}
{% for message in messages if message.content %}
{% call turn(message.role) %}{% generation %}{{ message.content }}{% endgeneration %}{% endcall %}
{% if loop.index > 50 %}{% break %}{% endif %}
{% else %}
nothing
{% endfor %}
{% filter upper %}{{ messages|map(attribute='role')|join(', ') }}{% endfilter %}
{{ messages|selectattr('role', 'equalto', 'user')|list|length }} of {{ messages|length }}
{{ {'b': [1, 'é<'], 'a': none}|tojson }}{{ [1, {'a': 2}]|tojson(indent=2) }}
{{ {'b': 1, 'a': 2}|tojson(sort_keys=true) }}
{{ '{}-{:>4}-{name}'.format(1, 2.5, name='x') }}{{ 'aXbX'.replace('X', '-') }}
{{ ', '.join(['a', 'b']) ~ '/'.join(messages|map(attribute='role')) }}
{{ 'a\\nb'|indent(2) }}{{ 'a b'|title }}{{ ('%s'|replace('%s', 'y')) ~ 1 ~ none }}{{ '7'|int + 2 ** 3 * 2 % 7 }}
{{ messages|map('length') is sequence }}{{ messages is iterable }}{{ ['b', 'a', 'b']|unique|sort|join }}
{{ 'yes' if messages|selectattr('role', 'equalto', 'tool') else 'no' }}{{ messages|rejectattr('content')|list }}
{% set text %}{{ messages[0].content }}{{ eos_token }}{% endset %}{{ text|length }}{{ text[:3] }}
{% for key, value in {'x': 1, 'y': 2}|dictsort %}{{ key }}{{ value }}{{ loop.cycle('a', 'b') }}{% endfor %}
{%- for key, value in {'x': 1}|items %}{{ key }}{{ value }}{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""

SAMPLES = {
    "chatml": (CHATML, CHATML_TEXT),
    "llama": (LLAMA, LLAMA_TEXT),
    "mistral": (MISTRAL, MISTRAL_TEXT),
    "gemma": (GEMMA, GEMMA_TEXT),
    "qwen3": (CHATML, QWEN3_TEXT),
    "generation": (CHATML, GENERATION_TEXT),
}
