"""Which scripts a tokenizer has words for, and what happens to texts in the others."""

import gzip
import logging
import unicodedata
from itertools import pairwise

import numpy as np
import pytest
from tokenizers import Tokenizer, pre_tokenizers, trainers
from tokenizers import models as kinds

import twinvec
from twinvec.choices import KOREAN_MODEL, MULTILINGUAL_MODEL, SHIPPED
from twinvec.collection import Collection
from twinvec.embedder import CachedEmbedder, ModelEmbedder, arguments_of
from twinvec.errors import UnknownNameError, UnknownScriptError
from twinvec.model.hub import shipped_folder
from twinvec.model.scripts import BLOCKS, SPANS, covered_scripts, script_of
from twinvec.model.tokenizer import load_tokenizer, read_sentencepiece

KOREAN = "비밀번호를 어떻게 재설정하나요?"
FINE = (
    "How do I reset my password?",
    "for (int i = 0; i < n; ++i) { total += x[i]; }  // O(n)",
    "3.14159, 2024-01-31, 12 % and €99",
    "🙂 👍🏽 🇰🇷 ✨ → ∑ ½ ™",
    "El niño comió piñata; Zürich, Łódź, Đà Nẵng",
    "The sum Σ is 5° and the resistance 4.7 kΩ",
    "She wrote 北京 on the map of the whole wide city",
    "",
    "...",
)


@pytest.fixture(scope="module")
def mini():
    return twinvec.load(threads=1)


@pytest.fixture(scope="module")
def english():
    return covered_scripts(load_tokenizer(shipped_folder("twinvec-mini")).fast)


def byte_level(texts, size):
    fast = Tokenizer(kinds.BPE())
    fast.pre_tokenizer = pre_tokenizers.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    fast.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
    )
    return fast


def test_blocks_do_not_overlap_and_letters_have_one_script():
    assert all(last < following for (_, last, _), (following, _, _) in pairwise(SPANS))
    letters = {
        "Hangul": "한ㅎᄒ",
        "Kana": "ひカ",
        "Han": "漢",
        "Cyrillic": "ж",
        "Arabic": "ع",
        "Thai": "ก",
        "Latin": "éZ",
    }
    assert {script: {script_of(letter) for letter in given} for script, given in letters.items()} == {
        script: {script} for script in letters
    }
    assert set(letters) < set(BLOCKS) and script_of("1") is None and script_of("—") is None


ENGLISH = [name for name in SHIPPED if name != KOREAN_MODEL]


@pytest.mark.parametrize("name", ENGLISH)
def test_the_english_models_have_words_for_latin_only(name):
    assert covered_scripts(load_tokenizer(shipped_folder(name)).fast).covered == ("Latin",)


def test_the_korean_model_reads_hangul_and_warns_of_thai(caplog):
    encoder = twinvec.load(KOREAN_MODEL, threads=1)
    encoder.encode([*FINE, KOREAN, unicodedata.normalize("NFD", KOREAN), "Python으로 CSV 파일을 읽는 방법"])
    assert not caplog.records
    encoder.encode(["รีเซ็ตรหัสผ่าน"])
    assert ["Thai (1)" in record.message for record in caplog.records] == [True]


@pytest.mark.parametrize("text", FINE)
def test_english_code_numbers_emoji_and_single_foreign_words_are_known(english, text):
    assert english.coverage(text).script is None


@pytest.mark.parametrize(
    ("text", "script"),
    [
        (KOREAN, "Hangul"),
        ("Python으로 CSV 파일을 읽는 방법", "Hangul"),
        ("ㅋㅋㅋㅋ", "Hangul"),
        ("北京的天气很好", "Han"),
        ("パスワードをリセットする", "Kana"),
        ("Как сбросить пароль?", "Cyrillic"),
        ("كيف أعيد تعيين كلمة المرور؟", "Arabic"),
        ("Πώς αλλάζω τον κωδικό;", "Greek"),
    ],
)
def test_texts_in_other_scripts_are_unknown(english, text, script):
    found = english.coverage(text)
    assert (found.script, found.is_unknown) == (script, True) and found.share <= 0.75


def test_decomposed_hangul_is_hangul(english):
    assert english.coverage(unicodedata.normalize("NFD", KOREAN)).script == "Hangul"


def test_a_byte_level_vocabulary_is_read_as_text():
    korean = ["비밀번호를 재설정하고 싶어요", "환불 정책이 궁금해요", "비밀번호 환불 정책"] * 5
    assert "Hangul" in covered_scripts(byte_level(korean, 600)).covered
    english = ["the cat sat on the mat", "dogs and cats and mats"] * 5
    assert covered_scripts(byte_level(english, 300)).covered == ("Latin",)


def test_a_small_vocabulary_covers_a_script_with_fewer_pieces():
    fast = Tokenizer(kinds.WordLevel({"[UNK]": 0, "환불": 1, "정책": 2, "the": 3}, unk_token="[UNK]"))
    assert covered_scripts(fast).covered == ("Latin", "Hangul")


def test_one_warning_counts_the_texts_and_names_script_and_model(mini, caplog):
    mini.encode([KOREAN, "a cat", "환불 정책이 뭔가요?", "Как дела?"])
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "3 of 4 texts are in a script that this model has no words for: Hangul (2), Cyrillic (1)" in record.message
    assert f"such as {KOREAN_MODEL} or {MULTILINGUAL_MODEL}," in record.message


def test_known_texts_give_no_warning(mini, caplog):
    mini.encode([*FINE])
    assert not caplog.records


@pytest.mark.parametrize(
    "call",
    [
        lambda model: list(model.encode_iter([KOREAN, KOREAN])),
        lambda model: model.encode_query([KOREAN]),
        lambda model: model.encode_layers([KOREAN]),
        lambda model: model.explain(KOREAN),
    ],
    ids=["encode_iter", "encode_query", "encode_layers", "explain"],
)
def test_every_way_to_embed_warns_once(mini, caplog, call):
    call(mini)
    assert [record.message.count("Hangul") for record in caplog.records] == [1]


@pytest.mark.parametrize("name", ENGLISH)
def test_the_policy_is_error_or_ignore(name, caplog):
    with pytest.raises(UnknownScriptError, match=r"texts\[1\] is in Hangul.*" + KOREAN_MODEL):
        twinvec.load(name, threads=1, unknown="error").encode(["a cat", KOREAN])
    vectors = twinvec.load(name, threads=1, unknown="ignore").encode([KOREAN])
    assert not caplog.records
    np.testing.assert_array_equal(vectors, twinvec.load(name, threads=1).encode([KOREAN]))
    with pytest.raises(UnknownNameError, match="unknown"):
        twinvec.load(name, unknown="loudly")


def test_jobs_warn_once_however_many_blocks_they_embed(caplog):
    embedder = CachedEmbedder(ModelEmbedder("twinvec-static", {"threads": 1}), None, at_once=2)
    embedder.embed(["a cat", "a dog", KOREAN, "환불", "정책이 뭔가요?", "물이 맑다"])
    assert [record.message.partition(" texts")[0] for record in caplog.records] == ["2 of 2"]
    strict = ModelEmbedder("twinvec-static", {"threads": 1, "unknown": "error"})
    for _ in range(2):
        with pytest.raises(UnknownScriptError):
            strict.embed([KOREAN])


def test_a_collection_keeps_the_policy(tmp_path, caplog):
    pytest.importorskip("lancedb")
    encoder = twinvec.load("twinvec-static", threads=1, unknown="ignore")
    collection = Collection.create(tmp_path / "notes", model=encoder, language="Korean")
    collection.add([KOREAN])
    assert [hit.text for hit in Collection.open(tmp_path / "notes").search("비밀번호")] == [KOREAN]
    assert not caplog.records
    quiet, usual = arguments_of(encoder), arguments_of(twinvec.load("twinvec-static", threads=1))
    assert quiet["unknown"] == "ignore" and "unknown" not in usual  # older versions read what the default writes


def test_coverage_says_how_much_of_each_text_is_known(mini):
    found = mini.coverage(["a cat", KOREAN, "abc 한국"])
    assert found.shares.tolist() == [1.0, 0.0, pytest.approx(0.6)]
    assert found.is_unknown.tolist() == [False, True, True]
    assert found.scripts == [None, "Hangul", "Hangul"]
    assert mini.coverage(KOREAN).scripts == ["Hangul"]


def test_inspection_shows_the_scripts():
    inspected = twinvec.inspect_model("twinvec-mini")
    assert inspected.scripts == ("Latin",) and ("scripts", "Latin") in inspected.rows()


ENGLISH_SETS = ("sts", "transfer", "nli", "search")
KOREAN_SETS = ("korsts-test", "korsts-dev", "klue-sts-dev")
TEXT_COLUMNS = {"text", "text1", "text2", "premise", "hypothesis"}


def column_texts(file):
    with gzip.open(file, "rt", encoding="utf-8") as stream:
        names = next(stream).rstrip("\n").split("\t")
        wanted = [index for index, name in enumerate(names) if name in TEXT_COLUMNS]
        return [cells[i] for cells in (line.rstrip("\n").split("\t") for line in stream) for i in wanted]


@pytest.mark.data
@pytest.mark.parametrize("folder", ENGLISH_SETS)
def test_at_most_one_in_a_thousand_english_texts_is_reported(data, english, folder):
    texts = [text for file in sorted(data.joinpath(folder).glob("*.tsv.gz")) for text in column_texts(file)]
    n_unknown = sum(english.coverage(text).is_unknown for text in texts)
    assert len(texts) > 1000 and n_unknown <= len(texts) / 1000


@pytest.mark.data
@pytest.mark.weights
def test_korean_texts_are_unknown_to_english_models_and_known_to_a_multilingual_one(data, models, english):
    use = covered_scripts(read_sentencepiece(models / "use-m" / "sp.model"))
    minilm = covered_scripts(load_tokenizer(models / "minilm").fast)
    assert {"Latin", "Hangul", "Han", "Kana", "Cyrillic", "Arabic", "Thai"} == set(use.covered)
    texts = [text for name in KOREAN_SETS for text in column_texts(data / "korean" / f"{name}.tsv.gz")]
    shares = [
        sum(scripts.coverage(text).is_unknown for text in texts) / len(texts) for scripts in (english, minilm, use)
    ]
    assert shares[0] >= 0.99 and shares[1] >= 0.99 and shares[2] == 0
