"""Sentences by template: endings of words, lists out of WordNet, every slot filled, the same texts every time."""

from __future__ import annotations

import io
import random
import re
import tarfile

import pytest

from texts import caption_templates, generated, grammar, opinion_templates, question_templates
from texts.lexicon import lexicon_of

NOUNS = (
    "00000001 03 n 01 entity 0 002 ~ 00000002 n 0000 ~ 00000005 n 0000 | what is",
    "00000002 05 n 02 animal 0 beast 0 001 @ 00000001 n 0000 | it moves",
    "00000003 05 n 02 dog 0 Canis_familiaris 0 001 @ 00000002 n 0000 | it barks",
    "00000004 18 n 01 dog 0 001 @ 00000001 n 0000 | a man",
    "00000005 15 n 01 city 0 001 @ 00000001 n 0000 | large",
    "00000006 15 n 03 Paris 0 City_of_Light 0 French_capital 0 001 @i 00000005 n 0000 | in France",
    "00000007 14 n 02 World_Health_Organization 0 WHO 0 001 @i 00000001 n 0000 | an agency",
    "00000008 18 n 02 Curie 0 Marie_Curie 0 001 @i 00000001 n 0000 | a chemist",
)
ADJECTIVES = (
    "00000010 00 a 01 good 0 001 & 00000011 a 0000 | fine",
    "00000011 00 s 02 solid(a) 0 bully 0 001 & 00000010 a 0000 | fine too",
)
SENSES = (
    "animal%1:05:00:: 00000002 1 9",
    "beast%1:05:00:: 00000002 1 0",
    "bully%5:00:00:good:00 00000011 2 0",
    "city%1:15:00:: 00000005 1 3",
    "dog%1:05:00:: 00000003 1 42",
    "dog%1:18:00:: 00000004 2 0",
    "entity%1:03:00:: 00000001 1 1",
    "good%3:00:00:: 00000010 1 5",
    "solid%5:00:00:good:00 00000011 1 2",
)
KINDS = {
    "questions": (question_templates.QUESTIONS, question_templates.question_words),
    "opinions": (opinion_templates.OPINIONS, opinion_templates.opinion_words),
    "captions": (caption_templates.CAPTIONS, caption_templates.caption_words),
}


class AnyLexicon:
    """A lexicon that knows two words of everything."""

    def kinds(self, *roots, least=0):
        return ["otter", "finch"]

    def names(self, *roots, n_words=0):
        return ["Springfield", "Lake Clear War"]

    def near(self, *adjectives, least=0):
        return list(adjectives)

    def acronyms(self):
        return ["WHO", "FAO"]


@pytest.fixture
def lexicon(tmp_path):
    files = {
        "data.noun": ("  1 the licence", *NOUNS),
        "data.adj": ("  1 the licence", *ADJECTIVES),
        "index.sense": SENSES,
    }
    with tarfile.open(tmp_path / "wordnet.tgz", "w:gz") as archive:
        for name, lines in files.items():
            content = "\n".join(lines).encode()
            member = tarfile.TarInfo(f"package/dict/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return lexicon_of(tmp_path / "wordnet.tgz")


def test_kinds_are_first_senses_in_plain_english(lexicon):
    assert lexicon.kinds("entity") == ["animal", "beast", "city", "dog"]
    assert lexicon.kinds("entity", least=5) == ["animal", "dog"]
    assert lexicon.kinds("animal") == ["beast", "dog"]


def test_names_are_those_of_instances(lexicon):
    assert lexicon.names("city") == ["Paris"]
    assert lexicon.names("entity", n_words=2) == ["Marie Curie"]


def test_near_adjectives_and_acronyms(lexicon):
    assert lexicon.near("good") == ["good", "solid"]
    assert lexicon.near("good", least=3) == ["good"]
    assert lexicon.acronyms() == ["WHO"]


@pytest.mark.parametrize(
    ("form", "word", "inflected"),
    [
        ("plural", "church", "churches"),
        ("plural", "old man", "old men"),
        ("plural", "human", "humans"),
        ("plural", "knife", "knives"),
        ("plural", "bottle of beer", "bottles of beer"),
        ("third_person", "fly a kite", "flies a kite"),
        ("third_person", "wash", "washes"),
        ("gerund", "sit on a bench", "sitting on a bench"),
        ("gerund", "lie", "lying"),
        ("gerund", "slice", "slicing"),
        ("gerund", "repair", "repairing"),
        ("gerund", "throw", "throwing"),
        ("gerund", "fix", "fixing"),
        ("gerund", "climb", "climbing"),
        ("past", "drop", "dropped"),
        ("past", "play", "played"),
        ("past", "fry", "fried"),
        ("past", "ride", "rode"),
        ("participle", "ride", "ridden"),
        ("participle", "sew", "sewn"),
        ("participle", "open", "opened"),
        ("participle", "photograph", "photographed"),
        ("comparative", "witty", "wittier"),
        ("comparative", "wise", "wiser"),
        ("comparative", "thin", "thinner"),
        ("comparative", "gripping", "more gripping"),
        ("article", "honest idea", "an honest idea"),
        ("article", "used car", "a used car"),
        ("article", "unfunny film", "an unfunny film"),
        ("article", "uninteresting film", "an uninteresting film"),
        ("article", "one-way street", "a one-way street"),
        ("article", "ugly end", "an ugly end"),
        ("article", "unicycle", "a unicycle"),
        ("article", "uniform", "a uniform"),
        ("article", "unimaginative plot", "an unimaginative plot"),
    ],
)
def test_endings(form, word, inflected):
    assert getattr(grammar, form)(word) == inflected


@pytest.mark.parametrize("name", KINDS)
def test_every_slot_of_every_template_is_filled(name):
    templates, words_of = KINDS[name]
    words = words_of(AnyLexicon())
    chance = random.Random(1)
    for template in templates:
        assert template.count("[") == template.count("]") and "[[" not in template
        for _ in range(3):
            for text in generated.fill(template, words, chance):
                assert not re.search(r"[\[\]{}|]|  | [.,;?!]|\b[Aa]n? (?:a|an|the)\b|\b[Aa] [aei]", text), (
                    template,
                    text,
                )
                assert text[0].isupper() or text[0].isdigit()


@pytest.mark.parametrize("name", KINDS)
def test_there_are_many_templates_and_none_twice(name):
    templates, _ = KINDS[name]
    assert len(set(templates)) == len(templates) >= {"questions": 160, "opinions": 120, "captions": 60}[name]


@pytest.mark.parametrize("name", KINDS)
def test_the_same_seed_gives_the_same_texts(name):
    templates, words_of = KINDS[name]
    words = words_of(AnyLexicon())
    texts = list(generated.generate(templates, words, n=500, seed="x"))
    assert texts == list(generated.generate(templates, words, n=500, seed="x"))
    assert texts != list(generated.generate(templates, words, n=500, seed="y"))
    assert len(set(texts)) == len(texts)


def test_a_slot_twice_is_one_word_and_a_numbered_slot_another():
    words = {"pet": ["cat", "dog"]}
    for seed in range(20):
        one, two = generated.fill("{pet} {pet} / {pet} {pet2}", words, random.Random(seed))
        assert one in ("Cat cat", "Dog dog")
        assert two in ("Cat dog", "Dog cat")


def test_a_word_with_two_parts_is_used_by_part():
    words = {"deed": [("ride", "{pet}")], "pet": ["ox"]}
    assert generated.fill("{doing:deed.0} {a:deed.1}", words, random.Random(0)) == ["Riding an ox"]
