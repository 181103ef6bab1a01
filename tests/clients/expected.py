"""Write tiny models into a folder, and print the vectors and scores that clients of a server must get, as JSON.

Runs in the environment of the server; the clients' own has neither Twinvec nor its models.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import twinvec


def main(root: Path) -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
    from tiny import write_json, write_tiny_classifier, write_tiny_model

    texts, query, documents = json.loads(sys.stdin.read())
    bert, cross = write_tiny_model(root / "bert"), write_tiny_classifier(root / "cross")
    prompts = {"query": "the query ", "document": "the letter "}
    write_json(bert / "config_sentence_transformers.json", {"prompts": prompts})
    encoder, scorer = twinvec.load(bert), twinvec.load_scorer(cross)
    found = {
        "text": encoder.encode(texts),
        "query": encoder.encode_query(texts),
        "document": encoder.encode_document(texts),
        "similarity": encoder.similarity(encoder.encode(query)[None], encoder.encode(documents))[0],
        "scores": scorer.score([(query, text) for text in documents]),
    }
    print(json.dumps({name: rows.tolist() for name, rows in found.items()}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
