"""A template is a program from an unknown hand: whatever it tries, it ends soon and reaches nothing."""

import time

import pytest

from localinfer.chat.template import ChatTemplate
from localinfer.errors import ModelFileInvalid
from localinfer.types import Message
from tests.chat.vocabulary import CHATML

# Far above what any of these takes, far below what doing as it is told would take.
CPU_SECONDS = 5

LISTS = "{% set x = ['a'] %}{% set y = ['a'] %}" + "{% set x = [x, x] %}{% set y = [y, y] %}" * 60
TUPLES = "{% set x = ('a',) %}" + "{% set x = (x, x) %}" * 60
LONG = "{% set r = range(99999)|list %}"
MACRO = "{% macro f(n) %}"
GROW = "{% set ns = namespace(x='ab', l=[1]) %}{% for i in range(99999) %}"
TEXT = "{% set a = 'a' * 1000000 %}{% set b = 'b' * 100000 %}"

HOSTILE = {
    "nested loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "nested loops over a list": LONG + "{% for a in r %}{% for b in r %}{% endfor %}{% endfor %}",
    "nested loops with a test": LONG + "{% for a in r %}{% for b in r if false %}{% endfor %}{% endfor %}",
    "a recursive loop": "{% for i in range(99999) recursive %}{{ loop(range(99999)) }}{% endfor %}",
    "a long body": "{% for i in range(99999) %}" + "{% set x = i.a.b if i.a else i %}" * 900 + "{% endfor %}",
    "long literals": "{% set x %}{% for i in range(99999) %}" + "y" * 50_000 + "{% endfor %}{% endset %}",
    "long written literals": "{% for i in range(99999) %}" + "y" * 50_000 + "{% endfor %}",
    "a macro calling itself": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "a macro calling itself twice": MACRO
    + "{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(90) }}",
    "a macro in its own loop": MACRO + "{% for i in range(n) %}{{ f(n - 1) }}{% endfor %}{% endmacro %}{{ f(50) }}",
    "callers": MACRO + "{{ caller() }}{{ caller() }}{% endmacro %}" + "{% call f() %}" * 30 + "{% endcall %}" * 30,
    "a block in itself": "{% block a %}{{ self.a() }}{{ self.a() }}{% endblock %}",
    "a repeated string": "{{ 'a' * 10 ** 9 }}",
    "a repeated list": "{{ [1] * 10 ** 9 }}",
    "a repeated constant": "{% set x = 'a' * 1000000000 %}",
    "a big power": "{{ 9 ** (9 ** 9) }}",
    "big products": GROW + "{% set ns.x = ns.x * ns.x if i else 3 %}{% endfor %}",
    "a big number read": "{{ ('f' * 1000000)|int(0, 16) // 7 }}",
    "doubled by tilde": GROW + "{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
    "doubled by plus": GROW + "{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "a doubled list": GROW + "{% set ns.l = ns.l + ns.l %}{% endfor %}",
    "doubled by writing": "{% set x %}ab{% endset %}" + "{% set x %}{{ x }}{{ x }}{% endset %}" * 60,
    "doubled by a macro": "{% macro f(x) %}{{ x }}{{ x }}{% endmacro %}{% set x = 'ab' %}" + "{% set x = f(x) %}" * 60,
    "kept strings": "{% set s = 'ab,' * 100000 %}" + GROW + "{% set ns.l = [ns.l, s.split(',')] %}{% endfor %}",
    "shared lists printed": LISTS + "{{ x }}",
    "shared lists joined": LISTS + "{{ x|join }}",
    "shared lists as JSON": LISTS + "{{ x|tojson }}",
    "shared lists in capitals": LISTS + "{{ x|upper }}",
    "shared lists as text": LISTS + "{{ x ~ '' }}",
    "shared lists formatted": LISTS + "{{ '{}'.format(x) }}",
    "shared lists formatted by repr": LISTS + "{{ '{!r}'.format(x) }}",
    "shared lists compared": LISTS + "{{ x == y }}",
    "shared lists searched": LISTS + "{{ x in [y] }}",
    "shared lists indexed": LISTS + "{{ [x].index(y) }}",
    "shared lists selected": LISTS + "{{ [x]|select('in', [y])|list|length }}",
    "shared lists in a lazy sequence": LISTS + "{{ x in [y]|map('default', 1) }}",
    "shared lists in a loop": LISTS + "{% for z in [x, y] %}{{ loop.changed(z) }}{% endfor %}",
    "shared lists in an exception": LISTS + "{{ raise_exception(x) }}",
    "shared tuples as keys": TUPLES + "{% set d = {x: 1} %}",
    "shared tuples looked up": TUPLES + "{{ {}[x] }}",
    "shared tuples asked for": TUPLES + "{{ {}.get(x) }}",
    "shared tuples in a dictionary": TUPLES + "{{ dict([(x, 1)]) }}",
    "shared tuples made unique": TUPLES + "{{ [x]|unique|list|length }}",
    "deep tuples": GROW + "{% set ns.x = (ns.x,) %}{% endfor %}{{ {ns.x: 1} }}",
    "deep tuples weighed on the way": GROW + "{% set ns.x = (ns.x,) %}{{ ns.x == 1 }}{% endfor %}",
    "a wide format": "{{ '{:>1000000000}'.format(1) }}",
    "a wide nested format": "{{ '{:>{w}}'.format(1, w=10 ** 9) }}",
    "a wide % format": "{{ '%1000000000d' % 1 }}",
    "a wide filter": "{{ 'a'|center(10 ** 9) }}",
    "a wide method": "{{ 'a'.ljust(10 ** 9) }}{{ 'a'.zfill(10 ** 9) }}",
    "wide tabs": "{{ '\\t'.expandtabs(10 ** 9) }}",
    "a wide indentation": "{{ 'a\\nb'|indent(10 ** 9) }}",
    "earning by indenting": "{{ 'a'|indent(-10 ** 9) }}{{ ('a' * 10 ** 8)|length }}",
    "earning by JSON": LISTS + "{{ x|tojson(indent=-10 ** 9) }}",
    "earning by repeating": "{{ 'a' * -10 ** 9 }}{{ 'a' * 10 ** 9 }}",
    "an indentation by a list": "{{ ('a\n' * 9000)|indent(range(99999)|list) }}",
    "a long path": "{% set p = '0.' * 400000 ~ '0' %}{{ (['a'] * 9999)|map(attribute=p)|list|length }}",
    "a long path for sorting": "{% set p = '0.' * 400000 ~ '0' %}{{ (['a'] * 9999)|sort(attribute=p)|length }}",
    "a long path for joining": "{% set p = '0.' * 400000 ~ '0' %}{{ (['a'] * 9999)|join('', attribute=p)|length }}",
    "long paths in a format": "{% set p = '{0' ~ '[0]' * 99999 ~ '}' %}" + "{{ p.format('a') }}" * 999,
    "shared tuples in a namespace": TUPLES + "{{ namespace([(x, 1)]) }}",
    "wide JSON": "{{ [[[1]]]|tojson(indent=10 ** 9) }}",
    "long separators": TEXT + "{{ (range(99999)|list)|tojson(separators=(b, b)) }}",
    "a long joint": TEXT + "{{ range(99999)|join(b) }}",
    "a long joint method": TEXT + "{{ b.join(b) }}",
    "a long replacement": TEXT + "{{ a|replace('a', b) }}",
    "a long replacement method": TEXT + "{{ a.replace('', b) }}",
    "stripping slowly": TEXT + "{{ a.strip(b ~ 'a') }}",
    "trimming slowly": TEXT + "{{ a|trim(b ~ 'a') }}",
    "searching slowly": "{% set x = ('a' * 20000 ~ 'b') * 100 %}" + "{{ x.find('a' * 90 ~ 'c') }}" * 500,
    "comparing slowly": TEXT + "{% set c = 'a' * 1000000 %}" + "{{ a == c }}" * 3000,
    "sorting slowly": "{{ range(99999)|map('string')|sort|length }}" * 500,
    "capitals slowly": TEXT + "{{ a|title|title|title }}" * 500,
    "slicing slowly": "{% set a = range(99999)|list %}" + "{% set b = a[:] %}" * 3000,
    "lazy sequences": "{{ range(99999)" + "|map('default', 1)" * 100 + "|list|length }}",
    "a long date": "{{ strftime_now('%999999999d' * 4000) }}{{ 1 // 0 }}",
    "a long range": "{{ range(10 ** 9)|length }}",
    "missing globals": "{{ lipsum(n=10 ** 6) }}",
    "brackets": "{{ " + "(" * 9000 + "1" + ")" * 9000 + " }}",
    "a long sum": "{{ 1" + "+1" * 20_000 + " }}",
    "many conditions": "{% if 1 %}" * 2000 + "{% endif %}" * 2000,
    "many alternatives": "{% if a %}" + "{% elif b %}" * 4000 + "{% endif %}{{ 1 // 0 }}",
    "many open braces": "{{ '" * 15_000,
    "many comments": "{#" * 30_000,
    "many lines": "\n {% if a %}\n {% endif %}" * 2400 + "{{",
    "a megabyte": "x" * 1_000_000,
    "another file": "{% include 'x' %}",
    "another module": "{% import 'x' as y %}",
    "automatic escaping": "{% autoescape true %}{{ '<' }}{% endautoescape %}",
    "classes": "{{ ''.__class__.__mro__ }}",
    "classes by filter": "{{ ''|attr('__class__') }}",
    "globals of a function": "{{ raise_exception.__globals__['os'] }}",
    "globals of a class": "{{ cycler.__init__.__globals__.os.system('true') }}",
    "globals of a macro": "{% macro m() %}{% endmacro %}{{ m._func.__globals__.x }}",
    "the environment": "{{ self._TemplateReference__context.environment.x }}",
    "changed messages": "{{ messages.clear() }}",
    "changed texts": "{{ messages[0].update({'content': 'x'}) }}",
    "a frame": "{{ (messages|map('length')).gi_frame.f_back.f_globals }}",
}
CONTENTS = "{% for message in messages %}{{ message.content }}{% endfor %}"


@pytest.mark.parametrize("attack", HOSTILE)
def test_a_hostile_template_is_not_used(attack: str) -> None:
    before = time.process_time()
    template = ChatTemplate.load(CHATML, HOSTILE[attack] + CONTENTS)
    assert time.process_time() - before < CPU_SECONDS
    assert template.name == "chatml"
    assert "does not work (" in template.notices[0]


@pytest.mark.parametrize(
    "attempt",
    [
        "{{ ''.__class__ }}",
        "{{ messages.__class__ }}",
        "{{ '{0.__class__}'.format(1) }}",
        "{{ [1]|map(attribute='__class__')|list }}",
        "{{ cycler.__init__ }}",
        "{{ messages.append }}",
        "{{ namespace(**{'__self__': 'a', '__name__': 'format'}).__self__ }}",
        "{% set ns = namespace() %}{% set ns.a = [ns, ns] %}{{ ns }}{{ ns.a }}",
    ],
)
def test_what_is_private_is_not_shown(attempt: str) -> None:
    template = ChatTemplate.load(CHATML, attempt + CONTENTS)
    said = CHATML.ordinary(template.encode(CHATML, [Message(role="user", content="hello")]).token_ids)
    assert "class" not in said
    assert "built-in" not in said
    assert "object at" not in said


@pytest.mark.parametrize("harmless", [LISTS, TUPLES, LONG, TEXT, GROW + "{% endfor %}"])
def test_what_the_attacks_are_made_of_is_harmless(harmless: str) -> None:
    assert ChatTemplate.load(CHATML, harmless + CONTENTS).name == "model"


def test_an_attack_that_waits_for_its_moment() -> None:
    text = "{% for m in messages %}{{ m.content }}{% if 'now' in m.content %}{{ 'a' * 10 ** 9 }}{% endif %}{% endfor %}"
    template = ChatTemplate.load(CHATML, text)
    assert template.name == "model"
    with pytest.raises(ModelFileInvalid, match="too much work"):
        template.encode(CHATML, [Message(role="user", content="now")])
    assert template.encode(CHATML, [Message(role="user", content="hi")]).token_ids == tuple(b"hi")
