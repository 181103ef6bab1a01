"""Copy a trained model into the package, and its training texts, log and learning curve into the docs.

    python recipes/ship.py TRAINED_FOLDER recipes/texts.sources.json
    python recipes/ship.py twinvec-ko

The folder has the name of the model: twinvec-mini, twinvec-static or twinvec-ko. Its card lists the training texts;
those of twinvec-ko are recorded in the folder itself.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from bilingual.card import korean_card, korean_record
from twinvec.choices import KOREAN_MODEL, SHIPPED

ROOT = Path(__file__).parents[1]
MODELS, DOCS = ROOT / "src/twinvec/models", ROOT / "docs/models"
NEEDED = ("config.json", "config_sentence_transformers.json", "model.safetensors", "modules.json", "tokenizer.json")
ALSO = ("embedder.json", "sentence_bert_config.json", "tokenizer_config.json", "special_tokens_map.json", "1_Pooling")
CARD = """{start}

## Training texts and licenses

The weights are derived from all-MiniLM-L6-v2 and licensed under Apache-2.0, like that model. {teachers} They were
trained on {texts:,} texts without labels, after {removed:,} texts that occur in an evaluation file were removed.

{lines}
"""
TEACHERS = {
    "twinvec-mini": """The recipe above is that of the third stage; recipes/mini.toml and mini-second.toml are those
before. The teachers were all-MiniLM-L6-v2, all-mpnet-base-v2 and granite-embedding-30m-english (all Apache-2.0), and
gte-small (MIT).""",
    "twinvec-static": """The recipe above is that of the second stage; recipes/static.toml is the one before, and
recipes/static-vectors.toml that of the table it was joined with. The teachers were all-MiniLM-L6-v2, all-mpnet-base-v2
and granite-embedding-30m-english (all Apache-2.0), and gte-small (MIT).""",
}
STAGES_BEFORE, ORIGIN = ("twinvec-mini-second", "twinvec-static-first"), "all-MiniLM-L6-v2"
TEXTS = {"twinvec-mini": "texts", "twinvec-static": "static-texts", KOREAN_MODEL: "korean-texts"}
LOG_EVERY = 10  # steps; the full log is large and adds little


def ship(trained: Path, record: dict[str, Any]) -> None:
    """Copy the files for inference, write the card, and copy the records of the training."""
    if trained.name not in SHIPPED or not (trained / "training").is_dir():
        sys.exit(f"{trained} is not the folder of a training run named {' or '.join(SHIPPED)}. Nothing was changed.")
    target = MODELS / trained.name
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for name in (*NEEDED, *ALSO):
        source = trained / name
        if source.is_dir():
            shutil.copytree(source, target / name)
        elif source.is_file():
            shutil.copyfile(source, target / name)
    text = korean_card(record) if trained.name == KOREAN_MODEL else card(trained, record)
    (target / "README.md").write_text(text, encoding="utf-8")
    copy_records(trained, TEXTS[trained.name], record)


def copy_records(trained: Path, name: str, record: dict[str, Any]) -> None:
    """Copy the log, the curve and the record of the texts into the docs."""
    short = trained.name.removeprefix("twinvec-")
    DOCS.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(trained / "training/curve.png", DOCS / f"{short}-curve.png")
    if (trained / "training/scores.json").is_file():
        shutil.copyfile(trained / "training/scores.json", DOCS / f"{short}-scores.json")
    rows = (trained / "training/log.jsonl").read_text(encoding="utf-8").splitlines()
    kept = [row for row in rows if "dev" in (found := json.loads(row)) or found.get("step", 0) % LOG_EVERY == 0]
    (DOCS / f"{short}-log.jsonl").write_text("\n".join(kept) + "\n", encoding="utf-8")
    (DOCS / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def card(trained: Path, record: dict[str, Any]) -> str:
    """The card of a training run, with language and license in its header and the training texts at its end."""
    start = (
        (trained / "README.md")
        .read_text(encoding="utf-8")
        .replace("---\n", "---\nlanguage: en\nlicense: apache-2.0\n", 1)
    )
    for stage in STAGES_BEFORE:
        start = start.replace(f"base_model: {stage}\n", f"base_model: {ORIGIN}\n")
    start = start.replace(
        "`training/` holds this recipe, the log and the learning curve.", "The log is in docs/models."
    )
    lines = [
        f"- {each['name']} ({each['kind']}): {each['texts']:,} texts, {each['registry']} package {each['package']} "
        f"{each['version']}, {each['licence']}"
        for each in record["sources"]
        if each["texts"]
    ]
    return CARD.format(
        start=start.rstrip(),
        teachers=TEACHERS[trained.name],
        texts=record["texts"],
        removed=record["removed"],
        lines="\n".join(lines),
    )


if __name__ == "__main__":
    if len(sys.argv) == 2 and Path(sys.argv[1]).name == KOREAN_MODEL:
        ship(Path(sys.argv[1]), korean_record(Path(sys.argv[1])))
    elif len(sys.argv) == 3:
        ship(Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text(encoding="utf-8")))
    else:
        sys.exit(__doc__)
