"""The layer lab: cosines between layers, words by variance, pictures; and the command that shows them."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import twinvec
from tiny import WORDS, write_tiny_model
from twinvec.analysis import MovingWord, survey_layers
from twinvec.analysis.layers import picture_text
from twinvec.analysis.words import extremes, group_words, words_of
from twinvec.cli import main
from twinvec.engine.static import write_static
from twinvec.errors import InputError
from twinvec.wk import WKSettings

TEXTS = ["the cat sits on the mat", "a small dog sleeps", "", "The rain, in the old city!", "zebra the sun", "a dog"]


def brute_force(layers_of_texts, n_layers):
    """Mean cosine of all pairs of layers, token by token; states are (layers + 1, tokens, width), specials left out."""
    total, n_tokens = np.zeros((n_layers + 1, n_layers + 1)), 0
    for layers in layers_of_texts:
        for token in range(1, layers.shape[1] - 1):
            rows = layers[:, token].astype(np.float64)
            rows = rows / np.sqrt((rows * rows).sum(axis=1))[:, None]
            total += rows @ rows.T
            n_tokens += 1
    return total / n_tokens, n_tokens


@pytest.mark.parity
@pytest.mark.parametrize("family", ["bert", "mpnet", "modernbert"])
def test_cosines_between_layers_are_those_of_transformers_states(tiny_folders, family):
    torch = pytest.importorskip("torch", reason="parity needs the extra 'train'")
    transformers = pytest.importorskip("transformers", reason="parity needs the extra 'train'")
    model = transformers.AutoModel.from_pretrained(tiny_folders[family], attn_implementation="eager").eval()
    encoder = twinvec.load(tiny_folders[family])
    states = []
    for text in TEXTS:
        ids = torch.tensor([encoder.tokenizer.add_special_tokens(encoder.tokenizer.ids([text])[0])])
        with torch.no_grad():
            shown = model(input_ids=ids, attention_mask=torch.ones_like(ids), output_hidden_states=True)
        states.append(torch.stack(shown.hidden_states)[:, 0].numpy())
    expected, n_tokens = brute_force(states, len(states[0]) - 1)
    (survey,) = survey_layers({"tiny": encoder}, TEXTS)
    assert survey.n_tokens == n_tokens and survey.n_texts == len(TEXTS)
    np.testing.assert_allclose(survey.cosines, expected, atol=1e-5)


@pytest.mark.parity
@pytest.mark.weights
@pytest.mark.parametrize("name", ["minilm", "mpnet"])
def test_cosines_of_real_models_are_those_of_transformers_states(models, name):
    torch = pytest.importorskip("torch", reason="parity needs the extra 'train'")
    transformers = pytest.importorskip("transformers", reason="parity needs the extra 'train'")
    texts = ["The orchestra tuned its strings.", "Why?", "Prices fell, and nobody knew for how long."]
    tokenizer = transformers.AutoTokenizer.from_pretrained(models / name)
    model = transformers.AutoModel.from_pretrained(models / name).eval()
    states = []
    for text in texts:
        with torch.no_grad():
            shown = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True)
        states.append(torch.stack(shown.hidden_states)[:, 0].numpy())
    expected, n_tokens = brute_force(states, len(states[0]) - 1)
    (survey,) = survey_layers({name: twinvec.load(models / name)}, texts)
    assert survey.n_tokens == n_tokens
    np.testing.assert_allclose(survey.cosines, expected, atol=1e-5)


def test_texts_are_counted_alike_in_any_order_and_block(encoder, monkeypatch):
    texts = [" ".join(WORDS[i % 5 : 2 + i % 17]) for i in range(40)]
    (whole,) = survey_layers({"tiny": encoder}, texts)
    monkeypatch.setattr("twinvec.analysis.layers.TEXTS_PER_BLOCK", 7)
    (parts,) = survey_layers({"tiny": encoder}, iter(reversed(texts)))
    np.testing.assert_allclose(parts.cosines, whole.cosines, atol=1e-6)
    assert [(each.word, each.n_seen) for each in sorted(parts.words)] == [
        (each.word, each.n_seen) for each in sorted(whole.words)
    ]
    np.testing.assert_allclose(
        [each.variance for each in sorted(parts.words)], [each.variance for each in sorted(whole.words)], atol=1e-7
    )


def test_the_variance_of_a_word_is_that_of_its_adjacent_layer_cosines_over_the_papers_layers(encoder):
    (survey,) = survey_layers({"tiny": encoder}, TEXTS, layer_start=0)
    layers = encoder.encode_layers("a small dog sleeps")[0][:, 2].astype(np.float64)  # small: seen once
    lengths = np.linalg.norm(layers, axis=1)
    steps = [layers[i] @ layers[i + 1] / (lengths[i] * lengths[i + 1]) for i in range(3)]
    (small,) = [each for each in survey.words if each.word == "small"]
    assert small.n_seen == 1 and not small.is_function
    assert small.variance == pytest.approx(np.var(steps), rel=1e-4)
    assert [each.variance for each in survey.words] == sorted(each.variance for each in survey.words)


def test_only_whole_words_count_whatever_their_case(encoder):
    words = words_of(encoder, ["The Zebra sits, on 7 mat"])[0]
    assert words == ["", "the", *[""] * 5, "sits", "", "on", "", "mat", ""]  # z ##e ##b ##r ##a, comma and 7 are none
    (survey,) = survey_layers({"tiny": encoder}, TEXTS)
    assert {each.word: each.n_seen for each in survey.words}["the"] == 5


def test_words_of_a_text_that_is_cut_stay_beside_their_tokens(encoder):
    long = " ".join(WORDS)
    words = words_of(encoder, [long])[0]
    states = twinvec.load(encoder.folder.path, long="cut").encode_layers(long)[0]
    assert len(words) == states.shape[1] == 24
    assert words[1:-1] == WORDS[:22]


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 9), st.booleans()), min_size=2, max_size=30))
def test_the_share_of_content_words_that_move_more_is_that_of_all_pairs(rows):
    words = [
        MovingWord(str(i), n_seen, variance, is_function) for i, (variance, n_seen, is_function) in enumerate(rows)
    ]
    function, content = ([each for each in words if each.is_function is kind] for kind in (True, False))
    found = group_words(words)
    if not (function and content):
        assert found is None
        return
    wins = [(c.variance > f.variance) + (c.variance == f.variance) / 2 for c in content for f in function]
    assert found.content_moves_more == pytest.approx(np.mean(wins))
    assert found.function.variance == pytest.approx(
        sum(each.variance * each.n_seen for each in function) / sum(each.n_seen for each in function)
    )


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 40), st.integers(1, 12))
def test_lowest_middle_and_highest_words_never_overlap(n_words, n_shown):
    parts = extremes([MovingWord(str(i), 1, float(i), False) for i in range(n_words)], n_shown)
    shown = [each.word for part in parts for each in part]
    assert len(set(shown)) == len(shown) == 3 * min(n_shown, n_words // 3)
    assert [float(word) for word in shown] == sorted(float(word) for word in shown)


def test_a_picture_shows_the_weights_that_the_readout_uses(tiny_bert):
    settings = WKSettings(layer_start=1)
    encoder = twinvec.load(tiny_bert, readout=settings)
    picture = picture_text(encoder, "the cat sits", model="tiny", settings=settings)
    told = encoder.explain("the cat sits")
    assert picture.tokens == told.tokens
    np.testing.assert_allclose(picture.weights, told.combined.T[1:], atol=1e-12)
    np.testing.assert_allclose(picture.importance, told.importance, atol=1e-12)


def test_static_models_have_no_layers_and_texts_without_tokens_no_cosines(tiny_bert, encoder, tmp_path):
    write_static(tmp_path / "static", tiny_bert / "tokenizer.json", np.ones((200, 4), dtype=np.float32))
    with pytest.raises(InputError, match="has no layers"):
        survey_layers({"static": twinvec.load(tmp_path / "static")}, TEXTS)
    with pytest.raises(InputError, match="finds no token in the 2 texts"):
        survey_layers({"tiny": encoder}, ["", " "])


def run(*arguments, **more):
    return CliRunner().invoke(main, [str(each) for each in arguments], prog_name="twinvec", **more)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "texts.txt"
    path.write_text("\n".join(" ".join(WORDS[i % 11 : 3 + i % 19]) for i in range(30)))
    return path


@pytest.fixture(scope="module")
def report(tiny_folders, corpus):
    pytest.importorskip("matplotlib")
    folder = corpus.parent / "report"
    models = "-m", tiny_folders["bert"], "-m", tiny_folders["mpnet"]
    return folder, run("layers", corpus, *models, "-o", folder, "--text", "a <b>cat</b>", "--min-count", 2)


def test_the_command_prints_tables_of_every_model(tiny_folders, corpus, encoder, report):
    _, result = report
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.output
    (survey,) = survey_layers({"bert": encoder}, corpus.read_text().splitlines())
    last = next(line for line in result.output.splitlines() if line.startswith("    3 "))
    assert last.split()[1:] == [f"{survey.cosines[3 - k, 3]:.3f}" for k in (1, 2, 3)]
    assert "bert: 3 layers, 30 texts" in result.output and "mpnet: 3 layers" in result.output
    assert "content word varies more in" in result.output


def test_the_report_holds_a_page_plots_and_all_numbers(report):
    folder, _ = report
    names = sorted(file.name for file in folder.iterdir())
    per_model = [f"{what}-{model}.png" for what in ("cosines", "text-1", "words") for model in ("bert", "mpnet")]
    assert names == sorted([".twinvec.json", "distances.png", "layers.json", "report.html", *per_model])
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in folder.glob("*.png"))
    numbers = json.loads((folder / "layers.json").read_text())
    assert [each["model"] for each in numbers["models"]] == ["bert", "mpnet"]
    cosines = np.array(numbers["models"][0]["cosines"])
    assert cosines.shape == (4, 4) and np.allclose(np.diag(cosines), 1)
    page = (folder / "report.html").read_text()
    assert "<b>" not in page and "<script" not in page and 'src="http' not in page
    HTMLParser().feed(page)


def test_force_overwrites_reports_and_nothing_else(report, corpus, tiny_bert, tmp_path):
    folder, _ = report
    again = run("layers", corpus, "-m", tiny_bert, "-o", folder)
    assert again.exit_code == 1 and "exists already" in again.output
    (tmp_path / "mine.txt").write_text("mine")
    other = run("layers", corpus, "-m", tiny_bert, "-o", tmp_path, "--force")
    assert other.exit_code == 1 and "holds 'mine.txt', which Twinvec did not write" in other.output
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_a_text_to_plot_requires_an_output_folder(corpus, tiny_bert):
    result = run("layers", corpus, "-m", tiny_bert, "--text", "a cat")
    assert result.exit_code == 2 and "add -o FOLDER" in result.output


def test_numbers_come_as_json_from_standard_input_with_words_of_ones_own(tiny_bert, tmp_path):
    (tmp_path / "words.txt").write_text("Cat\ndog\n")
    options = "-m", tiny_bert, "--json", "--min-count", 1, "--function-words", tmp_path / "words.txt", "--limit", 2
    result = run("layers", "-", *options, input="a cat\na dog runs\na bird\n")
    assert result.exit_code == 0, result.output
    (numbers,) = json.loads(result.output)["models"]
    assert numbers["n_texts"] == 2
    assert {each["word"]: each["is_function"] for each in numbers["words"]} == {
        "a": False,
        "cat": True,
        "dog": True,
        "runs": False,
    }


def test_a_model_of_one_layer_has_no_ranking(tmp_path, corpus):
    folder = write_tiny_model(tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 1}))
    result = run("layers", corpus, "-m", folder)
    assert result.exit_code == 0 and "No ranking" in result.output
