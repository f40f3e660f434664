"""Whatever a person types finds what it should, and shows why."""

import unicodedata

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from localinfer.history.excerpt import WIDTH, excerpt
from localinfer.history.store import History
from localinfer.history.values import Attachment, Hit
from localinfer.history.words import fold, indexed, parse

TEXTS = {
    "greeting": "Grüße aus Köln! Straße, naïve café, e\u0301te\u0301 and Ǻngström.",
    "chinese": "你好，世界人民！我有一个问题。",
    "mixed": "Use GPU加速 for the 模型 please.",
    "japanese": "これはテストです。ﾃﾞｰﾀベース",
    "korean": "안녕하세요 세계는 넓다",
    "thai": "สวัสดีชาวโลก",
    "hindi": "हिन्दी में लिखो",
    "code": "def my_function(x): return x->next + C++ foo-bar don't 3.14",
    "quick": "The quick brown fox jumps over the lazy dog.",
    "wide": "\uff26\uff35\uff2c\uff2c\u3000\uff57\uff49\uff44\uff54\uff48 \ufb01ne ½",
    "cyrillic": "Привет, МИР! Ёлка",
}

FINDS = [
    *[(query, "greeting") for query in ("grüsse", "GRUSSE", "koln", "strasse", "STRASSE", "cafe", "naïve café", "été")],
    *[(query, "greeting") for query in ("kö", "gru", '"aus koln"', "“aus Köln”", "köln!", "(café)", "angstrom")],
    *[(query, "chinese") for query in ("世", "世界", "世界人民", "界人", "民", "你好 问题", '"世界人民"', "题。")],
    *[(query, "mixed") for query in ("gpu", "gpu加速", "加速", "GPU加", "模型 use", "模", '"gpu加速 for"', "加速 ple")],
    *[(query, "japanese") for query in ("テスト", "スト", "これ", "データ", "ベース")],
    *[(query, "korean") for query in ("세계", "안녕", "넓", "세계는")],
    *[(query, "thai") for query in ("โลก", "สวัสดี", "ชาว")],
    *[(query, "hindi") for query in ("हिन्दी", "लिखो", "हि")],
    *[(query, "code") for query in ("my_function", "foo-bar", '"foo bar"', "don't", "3.14", "x->ne", "c++")],
    *[(query, "quick") for query in ("quick", "QUI", "lazy quick", '"quick brown"', '"brown fox', '"quick" do', "j")],
    *[(query, "wide") for query in ("full", "width", "fine", "\uff46\uff55\uff2c")],
    *[(query, "cyrillic") for query in ("привет", "мир", "елка", "ПРИ")],
]

MISSES = ["quick cat", '"qui"', "qui ", "界世", "世民", "gpu模型", "fox AND NOT dog", "uick", '"世 界"']


@pytest.fixture
def filled(history: History) -> tuple[History, dict[int, str]]:
    names = {}
    for name, text in TEXTS.items():
        id = history.start(title="-").id
        history.add(id, "user", text, parent=None)
        names[id] = name
    return history, names


def test_what_is_asked_is_found(filled: tuple[History, dict[int, str]]) -> None:
    history, names = filled
    for query, name in FINDS:
        hits = history.search(query)
        assert name in [names[hit.conversation.id] for hit in hits], query
        hit = next(hit for hit in hits if names[hit.conversation.id] == name)
        assert hit.turn is not None
        assert hit.marks, (query, hit.excerpt)


@pytest.mark.parametrize("query", MISSES)
def test_what_is_not_there_is_not_found(query: str, filled: tuple[History, dict[int, str]]) -> None:
    assert filled[0].search(query) == ()


@pytest.mark.parametrize("query", ["", " ", '"', '""', "*", "++", "?!", "\0", "🎉", "“”", "'" * 5, "\ud800"])
def test_no_words_find_nothing(query: str, filled: tuple[History, dict[int, str]]) -> None:
    assert filled[0].search(query) == ()


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.text(max_size=40), st.text('"* -+^():{}NEARANDORabc世界é\0', max_size=30)))
def test_no_query_can_be_wrong(filled: tuple[History, dict[int, str]], query: str) -> None:
    for hit in filled[0].search(query):
        assert hit.excerpt.isprintable()


@pytest.mark.parametrize("query", ["x " * 5_000, "世" * 5_000, '"' * 5_000, " ".join(map(str, range(5_000)))])
def test_long_queries(query: str, history: History) -> None:
    assert history.search(query) == ()


WORDS = st.text(
    st.characters(categories=("Ll", "Lu", "Nd", "Lo"), max_codepoint=0xFFFF), min_size=1, max_size=8
).filter(lambda word: any(map(str.isalnum, fold(word))))


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(WORDS, min_size=1, max_size=6), st.data())
def test_every_word_of_a_text_finds_it(history: History, words: list[str], data: st.DataObject) -> None:
    id = history.start(title="-").id
    turn = history.add(id, "user", ", ".join(words), parent=None)
    picked = data.draw(st.lists(st.sampled_from(words), min_size=1, max_size=3))
    form = data.draw(st.sampled_from(["NFC", "NFD", "upper"]))
    query = " ".join(picked).upper() if form == "upper" else unicodedata.normalize(form, " ".join(picked))  # type: ignore[arg-type]
    try:
        assert id in [hit.conversation.id for hit in history.search(query, 10_000)]
        assert history.search(query.upper(), 10_000) == history.search(query, 10_000)
    finally:
        history.delete(id)
    assert turn.id not in [hit.turn for hit in history.search(query, 10_000)]


def test_titles_come_first_and_a_conversation_once(history: History) -> None:
    ids = []
    for title in ("about needles", "other", "third", "more about a needle"):
        id = history.start(title=title).id
        ids.append(id)
        for _ in range(3):
            history.add(id, "user", "a needle and another needle", parent=None)
    hits = history.search("needle")
    assert [hit.conversation.id for hit in hits] == [ids[3], ids[0], ids[2], ids[1]]
    assert [hit.turn is None for hit in hits] == [True, True, False, False]
    assert marked(hits[0]) == ["needle"]
    assert [hit.conversation.id for hit in history.search("needle", 3)] == [ids[3], ids[0], ids[2]]
    history.change(ids[3], title="no longer")
    assert history.search("needle")[-1].conversation.id != ids[3]
    assert history.search("longer")[0].turn is None


def test_the_newest_matching_turn_is_named(history: History) -> None:
    id = history.start(title="-").id
    history.add(id, "user", "needle one", parent=None)
    last = history.add(id, "user", "needle two", parent=None)
    (hit,) = history.search("needle")
    assert hit.turn == last.id


def test_attachments_are_found_by_name_and_text(history: History) -> None:
    id = history.start(title="-").id
    history.add(id, "user", "see", parent=None, attachments=(Attachment(name="budget.csv", text="apples;7"),))
    assert marked(history.search("budget")[0]) == ["budget"]
    assert marked(history.search("apples")[0]) == ["apples"]


def marked(hit: Hit) -> list[str]:
    return [hit.excerpt[start:end] for start, end in hit.marks]


def test_an_excerpt_shows_the_match_in_a_long_text() -> None:
    text = "word " * 2_000 + "before the Nädel\n\n\tand after it\x1b[31m \u202e" + " word" * 2_000
    line, marks = excerpt(text, parse("the nadel"))
    assert [line[a:b] for a, b in marks] == ["the", "Nädel"]
    assert "Nädel and after it[31m" in line
    assert line.startswith("…")
    assert line.endswith("…")
    assert line.isprintable()
    assert len(line) <= WIDTH + 2


def test_an_excerpt_of_nothing_is_the_beginning() -> None:
    assert excerpt("short text", parse("absent")) == ("short text", ())
    assert excerpt("", parse("absent")) == ("", ())


def test_a_prefix_marks_what_was_typed_and_a_word_is_whole() -> None:
    line, marks = excerpt("a scar in the car, Carl", parse("car"))
    assert [(line[a:b], a) for a, b in marks] == [("car", 14), ("Car", 19)]
    line, marks = excerpt("a scar in the car, Carl", parse("car "))
    assert [a for a, _ in marks] == [14]


@given(st.text(max_size=400), st.text(max_size=20))
def test_an_excerpt_is_printable_and_its_marks_lie_in_it(text: str, query: str) -> None:
    line, marks = excerpt(text, parse(query))
    assert line.isprintable()
    assert len(line) <= WIDTH + 2
    ends = [0, *(place for span in marks for place in span)]
    assert ends == sorted(ends)
    assert ends[-1] <= len(line)


@given(st.text(max_size=200))
def test_folding_is_stable(text: str) -> None:
    assert fold(fold(text)) == fold(text)
    assert fold(unicodedata.normalize("NFD", text)) == fold(unicodedata.normalize("NFC", text))


def test_pairs() -> None:
    assert indexed("ab世界人c").split() == ["ab", "世界", "界人", "人", "c"]
    assert indexed("Été") == "ete"
