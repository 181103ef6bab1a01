"""Triplets from sectioned documents: the rule holds by construction, whatever the format."""

from __future__ import annotations

import bz2

import pytest

from twinvec.data.sentences import split_sentences
from twinvec.errors import InputError
from twinvec.evaluation.tasks import SectionRule, build_triplets, read_documents
from twinvec.evaluation.tasks.documents import Document, Section, strip_wikitext
from twinvec.evaluation.tasks.triplets import usable_sections


def sentences(topic, n=6):
    return [f"The {topic} has fact number {number} in it." for number in range(n)]


TOPICS = ("food", "sleep", "play")
LEAD = " ".join(sentences("lead"))


def in_sections(template, sentence):
    """The template once per topic, with its TOPIC and its TEXT filled in; ``sentence`` marks the topic up."""
    return "".join(
        template.replace("TEXT", " ".join(sentences(sentence.replace("TOPIC", topic)))).replace("TOPIC", topic)
        for topic in TOPICS
    )


WIKI_SECTION = """
== TOPIC ==
[[File:x.jpg|thumb|A picture of [[TOPIC]] that is not prose.]]
{| class="wikitable"
| the table has cells that are not prose
|}
* a list item that is not prose at all
=== deeper TOPIC ===
TEXT"""
WIKI = f"""<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/">
<siteinfo><sitename>Toy</sitename></siteinfo>
<page><title>Cat</title><ns>0</ns><id>1</id><revision><id>7</id><text>{{{{Infobox|a={{{{b}}}}}}}}
{LEAD}&lt;ref name="x"&gt;Some book that is not prose here.&lt;/ref&gt;
{in_sections(WIKI_SECTION, "[[TOPIC|'''TOPIC''']]")}
== References ==
{" ".join(sentences("reference"))}</text></revision></page>
<page><title>Felis</title><ns>0</ns><redirect title="Cat" /><revision><text>#REDIRECT [[Cat]]</text></revision></page>
<page><title>Talk:Cat</title><ns>1</ns><revision><text>== x ==</text></revision></page>
</mediawiki>"""

MARKDOWN_SECTION = """
## TOPIC

```python
# this comment is not a heading, and this line is not prose
```

- a list item that is not prose at all

### deeper TOPIC

TEXT
"""
MARKDOWN = f"# Cat\n\n{LEAD}\n{in_sections(MARKDOWN_SECTION, '**[TOPIC](https://example.org)**')}"

HTML_SECTION = "<h2>TOPIC</h2><h3>deeper</h3><ul><li>A list that is not prose.</li></ul><p>TEXT</p>"
HTML = f"""<html><head><title>x</title><style>p {{ color: red }}</style></head><body>
<nav>This menu is not prose at all.</nav><h1>Cat</h1><p>{LEAD}</p>
<script>var prose = "this script is not prose at all.";</script>
{in_sections(HTML_SECTION, "<b>TOPIC</b>")}
</body></html>"""

FILES = {"cat.xml": WIKI, "cat.md": MARKDOWN, "cat.html": HTML}


def topic_of(sentence):
    return sentence.split()[1]


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_sections(tmp_path, name):
    file = tmp_path / name
    file.write_text(FILES[name], encoding="utf-8")
    (document,) = read_documents(file)
    assert document.title == "Cat"
    assert usable_sections(document, SectionRule()) == [sentences(topic) for topic in TOPICS]
    assert usable_sections(document, SectionRule(lead="keep"))[0] == sentences("lead")


@pytest.mark.parametrize("name", FILES)
def test_anchor_and_positive_share_a_section_and_the_negative_has_another(tmp_path, name):
    file = tmp_path / name
    file.write_text(FILES[name], encoding="utf-8")
    task = build_triplets(read_documents(file))
    assert len(task) == 9  # three pairs of six sentences, in each of three sections
    for anchor, positive, negative in zip(task.anchors, task.positives, task.negatives, strict=True):
        assert topic_of(anchor) == topic_of(positive) != topic_of(negative)
        assert anchor != positive
    used = [*task.anchors, *task.positives]
    assert len(set(used)) == len(used)


def test_the_seed_decides(tmp_path):
    document = Document("Cat", tuple(Section(topic, tuple(sentences(topic, 20))) for topic in TOPICS))
    first, again, other = (build_triplets([document], seed=seed) for seed in (0, 0, 1))
    assert first == again
    assert first != other
    assert len(build_triplets([document], rule=SectionRule(per_section=2))) == 6


def test_short_sections_single_sections_and_shared_sentences_are_left_out():
    shared = "This very sentence stands in two sections."
    document = Document(
        "Cat",
        (
            Section("food", (*sentences("food"), shared)),
            Section("short", tuple(sentences("short", 3))),
            Section("See also", tuple(sentences("other"))),
            Section("sleep", (*sentences("sleep"), shared, "Too short.")),
        ),
    )
    assert usable_sections(document, SectionRule()) == [sentences("food"), sentences("sleep")]
    lone = Document("Dog", (Section("food", tuple(sentences("food"))),))
    assert {topic_of(anchor) for anchor in build_triplets([lone, document]).anchors} == {"food", "sleep"}
    with pytest.raises(InputError, match="no document has two sections"):
        build_triplets([lone])


def test_dumps_may_be_packed_and_broken_ones_are_named(tmp_path):
    file = tmp_path / "cat.xml.bz2"
    file.write_bytes(bz2.compress(WIKI.encode()))
    assert [document.title for document in read_documents(file)] == ["Cat"]
    broken = tmp_path / "broken.xml"
    broken.write_text(WIKI[:-40])
    with pytest.raises(InputError, match=r"broken\.xml is damaged or not a MediaWiki dump"):
        list(read_documents(broken))
    with pytest.raises(InputError, match=r"Unsupported file type '\.doc'.*Use one of: \.xml"):
        read_documents(tmp_path / "a.doc")


def test_a_rule_that_cannot_give_triplets_is_refused():
    with pytest.raises(InputError, match="min_sentences must be at least 2, got 1"):
        SectionRule(min_sentences=1)
    with pytest.raises(LookupError, match="skip"):
        SectionRule(lead="drop")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two.", ["One.", "Two."]),
        ("See Fig. 3 and J. K. Rowling. Then 4.5 more.", ["See Fig. 3 and J. K. Rowling.", "Then 4.5 more."]),
        ('He said "Stop!" Then he left.', ['He said "Stop!"', "Then he left."]),
        ("It cost $5 (e.g. a lot). 1984 was so.", ["It cost $5 (e.g. a lot).", "1984 was so."]),
        ("\u732b\u3067\u3059\u3002\u72ac\u3067\u3059\u3002", ["\u732b\u3067\u3059\u3002", "\u72ac\u3067\u3059\u3002"]),
        ("", []),
    ],
)
def test_sentences_end_where_a_reader_would_end_them(text, expected):
    assert split_sentences(text) == expected


@pytest.mark.parametrize(
    ("wikitext", "plain"),
    [
        ("a {{x|{{y|z}}}} b", "a  b"),
        ("[[A]], [[B|b]] and [https://x.org the site]", "A, b and the site"),
        ("a<ref name=x /> b<ref>c [[d]]</ref>", "a b"),
        ("''a'' &nbsp;<small>b</small><!-- c -->", "a  b"),
        ("a [[File:x.png|thumb|of [[B|b]] here]]c [[Category:D]]", "a c "),
    ],
)
def test_the_commonest_wikitext_is_taken_out(wikitext, plain):
    assert strip_wikitext(wikitext) == plain
