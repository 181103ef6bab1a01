"""``twinvec demo`` compared with the same job written with sentence-transformers, each in its own process.

    python benchmarks/demo.py [--model FOLDER] [--rounds 5]

The job: collect and embed 10,000 sentences, find the best 20,000 pairs, answer three questions, print the report. Whole
processes are timed, in alternation. The rival runs ``--model`` with its defaults; Twinvec runs its default model, in
int8 (the default) and in float32. "shown" is the share of the sentences in the rival's report that are also in ours;
"shown_by_same_model" is the same share when our demo runs ``--model`` (one run, not timed).
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from common import arguments, write_result

RIVAL = """
import sys
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import paraphrase_mining_embeddings, semantic_search
from twinvec.data.sentences import are_near_duplicates, gather_sentences, shared_words
from twinvec.search.demo import FEW_WORDS, N_ANSWERS, N_CANDIDATES, N_NEAREST, N_REWORDED, N_SENTENCES, QUESTIONS
from twinvec.search.demo import choose_pairs

texts = gather_sentences(N_SENTENCES)
model = SentenceTransformer(sys.argv[1], device="cpu")
vectors = model.encode(texts, convert_to_tensor=True)
mined = paraphrase_mining_embeddings(vectors, max_pairs=N_CANDIDATES)
pairs = [(i, j, score) for score, i, j in mined]
hits = semantic_search(model.encode(list(QUESTIONS), convert_to_tensor=True), vectors, top_k=N_ANSWERS)
nearest = choose_pairs(pairs, lambda a, b: not are_near_duplicates(texts[a], texts[b]), n=N_NEAREST)
reworded = choose_pairs(pairs, lambda a, b: shared_words(texts[a], texts[b]) <= FEW_WORDS, n=N_REWORDED)
for score, left, right in [*nearest, *reworded]:
    print(texts[left], texts[right], sep="\\n")
for found in hits:
    print(*(texts[hit["corpus_id"]] for hit in found), sep="\\n")
"""


def run(command: list[str]) -> tuple[float, str]:
    """Seconds of a whole process, and its output."""
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return time.perf_counter() - started, done.stdout


def share_shown(sentences: set[str], report: str) -> float:
    """The share of the sentences that occur in a report, ignoring line breaks."""
    whole = " ".join(report.split())
    return sum(" ".join(sentence.split()) in whole for sentence in sentences) / len(sentences)


def main() -> None:
    parser = arguments(__doc__)
    parser.set_defaults(rounds=5)
    options = parser.parse_args()
    ours = [sys.executable, "-m", "twinvec.cli", "demo"]
    name = Path(options.model).name
    rival = f"sentence-transformers, {name}"
    commands = {
        rival: [sys.executable, "-W", "ignore", "-c", RIVAL, str(options.model)],
        "twinvec demo": ours,
        "twinvec demo --precision float32": [*ours, "--precision", "float32"],
    }
    _, same_model = run([*ours, "-m", str(options.model)])
    runs: dict[str, list[tuple[float, str]]] = {each: [] for each in commands}
    for _ in range(options.rounds):
        for each, command in commands.items():
            runs[each].append(run(command))
            print(f"{each}: {runs[each][-1][0]:.2f} s", file=sys.stderr, flush=True)
    seconds = {each: median(s for s, _ in found) for each, found in runs.items()}
    expected = set(runs[rival][0][1].splitlines()) - {""}
    rows = [
        {
            "name": each,
            "seconds": round(seconds[each], 2),
            "ratio": round(seconds[rival] / seconds[each], 2),
            "shown": round(share_shown(expected, found[0][1]), 3),
            "shown_by_same_model": round(share_shown(expected, same_model), 3),
        }
        for each, found in runs.items()
    ]
    for row in rows:
        shown = f"{row['shown']:>8.3f}{row['shown_by_same_model']:>8.3f}"
        print(f"{row['name']:40}{row['seconds']:>9.2f} s{row['ratio']:>8.2f}{shown}")
    write_result("demo", {"model": name, "rounds": options.rounds, "rows": rows})


if __name__ == "__main__":
    main()
