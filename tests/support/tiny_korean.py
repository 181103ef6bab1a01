"""A tiny random stand-in for klue/roberta-small that reads Hangul, and Korean data sets of a few pairs."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from tiny import SPECIAL, WIDTH, write_json, write_plain_model

EXAMPLES = Path(__file__).parents[2] / "docs/ko/examples"
N_TOKENS, N_POSITIONS = 1200, 514
FAMILY = "roberta"


def example_rows(name: str) -> list[dict[str, str]]:
    """The rows of an example file of the Korean pages."""
    with (EXAMPLES / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t" if name.endswith(".tsv") else ","))


def example_texts() -> list[str]:
    """All texts of the example files."""
    lines = (EXAMPLES / "questions.txt").read_text(encoding="utf-8").splitlines()
    columns = {"reviews.csv": ["text"], "nli.tsv": ["premise", "hypothesis"], "sts-train.tsv": ["text1", "text2"]}
    return lines + [row[column] for name, names in columns.items() for row in example_rows(name) for column in names]


def write_korean_backbone(folder: Path) -> Path:
    """A plain RoBERTa with WordPieces, as klue/roberta-small has them, but three layers and random weights."""
    write_plain_model(folder, FAMILY)
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    order = ["[CLS]", "[PAD]", *(token for token in SPECIAL if token not in ("[CLS]", "[PAD]"))]  # padding has id 1
    trainer = trainers.WordPieceTrainer(vocab_size=N_TOKENS, special_tokens=order, show_progress=False)
    tokenizer.train_from_iterator(example_texts(), trainer)
    ids = tokenizer.get_vocab()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    tokenizer.save(str(folder / "tokenizer.json"))
    config = json.loads((folder / "config.json").read_text())
    own = {"vocab_size": len(ids), "max_position_embeddings": N_POSITIONS}
    write_json(folder / "config.json", {**config, **own})
    limits = json.loads((folder / "tokenizer_config.json").read_text())
    write_json(folder / "tokenizer_config.json", {**limits, "model_max_length": N_POSITIONS - 2})
    rng, weights = np.random.default_rng(0), load_file(folder / "model.safetensors")
    for kind, size in (("word", len(ids)), ("position", N_POSITIONS)):
        weights[f"embeddings.{kind}_embeddings.weight"] = rng.standard_normal((size, WIDTH)).astype(np.float32)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def write_table(file: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A file of tab-separated values, gzipped if its name says so."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join("\t".join(map(str, row)) + "\n" for row in [columns, *rows])
    content = lines.encode()
    file.write_bytes(gzip.compress(content) if file.suffix == ".gz" else content)


def write_korean_data(folder: Path) -> Path:
    """The files of all Korean tasks and recipes, in their names and columns, with the example sentences."""
    nli = [(row["premise"], row["hypothesis"], row["label"]) for row in example_rows("nli.tsv")]
    for name in ("multinli.train.ko.tsv", "snli_1.0_train.ko.tsv"):
        write_table(folder / "korean" / name, ("sentence1", "sentence2", "gold_label"), nli)
    train, dev = (
        [("main-captions", row["score"], row["text1"], row["text2"]) for row in example_rows(name)]
        for name in ("sts-train.tsv", "sts-dev.tsv")
    )
    columns = ("genre", "score", "text1", "text2")
    for name, rows in {"korsts-train": train, "korsts-dev": dev, "korsts-test": train}.items():
        write_table(folder / f"korean/{name}.tsv.gz", columns, rows)
    write_table(folder / "sts/stsb-test.tsv.gz", columns, train)
    write_table(folder / "korean/klue-sts-dev.tsv.gz", ("source", *columns[1:]), train)
    write_table(folder / "korean/tatoeba-ko-en.tsv.gz", ("en", "ko"), [(f"Text {row[2]}", row[3]) for row in train])
    groups = [(i // 10, text) for i, text in enumerate(dict.fromkeys(example_texts()))]
    write_table(folder / "korean/parakqc.tsv.gz", ("group", "text"), groups[: len(groups) // 10 * 10])
    return folder
