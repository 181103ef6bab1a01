"""Every objective against a slow twin in plain Python, its edges, and what it says to bad settings."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from functools import partial
from inspect import Parameter, signature

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinvec.data.roles import KINDS
from twinvec.errors import InputError, UnknownNameError

torch = pytest.importorskip("torch", reason="training needs the extra 'train'")

from twinvec.training.objectives import (  # noqa: E402
    OBJECTIVES,
    CosentObjective,
    CosineObjective,
    DistillationObjective,
    Matryoshka,
    RankingObjective,
    SoftmaxObjective,
    TripletObjective,
    build_objective,
    compare,
    copies,
)
from twinvec.training.objectives.common import batch_target  # noqa: E402

TEACHER_WIDTH = 5
N_LABELS = 3
CONCATENATIONS = [  # the paper's Table 6
    ("u", "v"),
    ("|u-v|",),
    ("u*v",),
    ("|u-v|", "u*v"),
    ("u", "v", "u*v"),
    ("u", "v", "|u-v|"),
    ("u", "v", "|u-v|", "u*v"),
]


# The slow twins. Vectors are lists of floats; `given` maps roles and targets to lists, `weights` parameters to lists.


def dot(u, v):
    return sum(a * b for a, b in zip(u, v, strict=True))


def cosine(u, v):
    lengths = [max(math.sqrt(dot(x, x)), 1e-8) for x in (u, v)]
    return dot(u, v) / (lengths[0] * lengths[1])


DISTANCES = {
    "cosine": lambda u, v: 1 - cosine(u, v),
    "euclidean": lambda u, v: math.sqrt(sum((a - b) ** 2 for a, b in zip(u, v, strict=True))),
    "manhattan": lambda u, v: sum(abs(a - b) for a, b in zip(u, v, strict=True)),
}


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def cross_entropy(scores, right):
    return math.log(sum(math.exp(score) for score in scores)) - scores[right]


def slow_softmax(given, weights, features=("u", "v", "|u-v|")):
    losses = []
    for u, v, label in zip(given["premise"], given["hypothesis"], given["label"], strict=True):
        joined = []
        for name in features:
            for a, b in zip(u, v, strict=True):
                joined.append({"u": a, "v": b, "|u-v|": abs(a - b), "u*v": a * b}[name])
        scores = [
            dot(row, joined) + bias for row, bias in zip(weights["head.weight"], weights["head.bias"], strict=True)
        ]
        losses.append(cross_entropy(scores, label))
    return mean(losses)


def slow_cosine(given, weights):
    pairs = zip(given["text1"], given["text2"], given["score"], strict=True)
    return mean((cosine(u, v) - score) ** 2 for u, v, score in pairs)


def slow_triplet(given, weights, margin=1.0, distance="euclidean"):
    d = DISTANCES[distance]
    triplets = zip(given["anchor"], given["positive"], given["negative"], strict=True)
    return mean(max(d(a, p) - d(a, n) + margin, 0) for a, p, n in triplets)


def slow_ranking(given, weights, scale=20.0, symmetric=False):
    """Which text stands where is read off the ids; the loss is worked out text by text."""
    ids, n = given["ids"], len(given["anchor"])
    candidates = [(f"positive {j}", given["positive"][j], ids["positive"][j]) for j in range(n)]
    for j, negatives in enumerate(given.get("negative", [])):
        candidates += [(f"negative {j} {m}", v, ids["negative"][j][m]) for m, v in enumerate(negatives)]
    matches = {(ids["anchor"][j], ids["positive"][j]) for j in range(n)} | {(text, text) for text in ids["anchor"]}

    def find_positive(i):
        wrong = [cosine(given["anchor"][i], v) for _, v, text in candidates if (ids["anchor"][i], text) not in matches]
        scores = [cosine(given["anchor"][i], given["positive"][i]), *wrong]
        return cross_entropy([scale * score for score in scores], 0)

    def find_anchor(j):
        others = [i for i in range(n) if i != j and (ids["anchor"][i], ids["positive"][j]) not in matches]
        return cross_entropy([scale * cosine(given["anchor"][i], given["positive"][j]) for i in [j, *others]], 0)

    loss = mean(find_positive(i) for i in range(n))
    return (loss + mean(find_anchor(j) for j in range(n))) / 2 if symmetric else loss


def slow_cosent(given, weights, scale=20.0):
    cosines = [cosine(u, v) for u, v in zip(given["text1"], given["text2"], strict=True)]
    total = 1.0
    for i, high in enumerate(given["score"]):
        for j, low in enumerate(given["score"]):
            if high > low:
                total += math.exp(scale * (cosines[j] - cosines[i]))
    return math.log(total)


def slow_contrastive(given, weights, margin=0.5, distance="cosine"):
    losses = []
    for u, v, label in zip(given["text1"], given["text2"], given["label"], strict=True):
        d = DISTANCES[distance](u, v)
        losses.append(0.5 * d**2 if label == 1 else 0.5 * max(margin - d, 0) ** 2)
    return mean(losses)


def slow_distillation(given, weights, loss="mse", similarity_weight=0.0):
    vectors, wanted = given["text"], given["target_vectors"]
    seen = [[dot(row, v) for row in weights["projections.0.weight"]] for v in vectors] if weights else vectors
    if loss == "mse":
        value = mean((a - b) ** 2 for u, v in zip(seen, wanted, strict=True) for a, b in zip(u, v, strict=True))
    else:
        value = mean(1 - cosine(u, v) for u, v in zip(seen, wanted, strict=True)) if loss == "cosine" else 0
    n = len(vectors)
    gaps = [(cosine(vectors[i], vectors[j]) - cosine(wanted[i], wanted[j])) ** 2 for i in range(n) for j in range(n)]
    return value + similarity_weight * mean(gaps)


SLOW = {
    "softmax": slow_softmax,
    "cosine": slow_cosine,
    "triplet": slow_triplet,
    "ranking": slow_ranking,
    "cosent": slow_cosent,
    "contrastive": slow_contrastive,
    "distillation": slow_distillation,
}

VARIANTS = [
    *(("softmax", {"features": features}) for features in CONCATENATIONS),
    ("cosine", {}),
    *(("triplet", {"distance": name, "margin": margin}) for name in DISTANCES for margin in (0.5, 5.0)),
    *(("ranking", {"symmetric": symmetric, "scale": 5.0}) for symmetric in (False, True)),
    ("cosent", {}),
    ("cosent", {"scale": 3}),
    *(("contrastive", {"distance": name}) for name in DISTANCES),
    *(("distillation", {"loss": loss, "similarity_weight": weight}) for loss in ("mse", "cosine") for weight in (0, 2)),
    ("distillation", {"loss": "none", "similarity_weight": 2}),
]


def words(variant):
    name, options = variant
    return f"{name}-{'-'.join(str(value) for value in options.values())}".replace("'", "").replace(" ", "")


# Batches.


@dataclass
class Batch:
    """What ``compare`` takes."""

    vectors: dict
    target: torch.Tensor | None = None
    ids: dict = field(default_factory=dict)

    def loss(self, objective):
        return compare(objective, self.vectors, target=self.target, ids=self.ids)

    def as_lists(self, name):
        lists = {role: tensor.tolist() for role, tensor in self.vectors.items()}
        target = batch_target(KINDS[OBJECTIVES[name].examples])
        if target:
            lists[target] = self.target.tolist()
        return lists | {"ids": {role: tensor.tolist() for role, tensor in self.ids.items()}}


def make_batch(name, seed, *, n=3, width=4, n_negatives=1):
    """A random batch in float64. Equal ids have equal vectors, as they would in training."""
    generator = torch.Generator().manual_seed(seed)
    table = torch.randn(2 * n + 1, width, generator=generator, dtype=torch.float64)  # few texts, so that some repeat
    kind = KINDS[OBJECTIVES[name].examples]
    batch = Batch({})
    for role in kind.text_roles:
        has_many = name == "ranking" and role == "negative"
        if has_many and not n_negatives:
            continue
        shape = (n, n_negatives) if has_many else (n,)
        batch.ids[role] = torch.randint(len(table), shape, generator=generator)
        # a little apart, since equal vectors are where |u - v| has no gradient
        batch.vectors[role] = table[batch.ids[role]] + (
            0 if name == "ranking" else torch.randn(*shape, width, generator=generator, dtype=torch.float64)
        )
    batch.target = {
        "label": torch.randint(N_LABELS if name == "softmax" else 2, (n,), generator=generator),
        "score": torch.randint(6, (n,), generator=generator).double() / 5,
        "target_vectors": torch.randn(n, TEACHER_WIDTH, generator=generator, dtype=torch.float64),
    }.get(batch_target(kind))
    return batch


def build(name, options, width, matryoshka=()):
    sizes = {"n_labels": N_LABELS, "teacher_widths": [TEACHER_WIDTH]}
    return build_objective(name, width=width, options=options, matryoshka=matryoshka, **sizes).double()


def parameters_as_lists(objective):
    return {name: value.tolist() for name, value in objective.state_dict().items()}


def slopes(loss_of, nested):
    """The gradient of ``loss_of()`` by central differences, changing the numbers of a nested list in place."""
    if isinstance(nested[0], list):
        return [slopes(loss_of, row) for row in nested]
    found = []
    for i, value in enumerate(nested):
        ends = []
        for step in (1e-6, -1e-6):
            nested[i] = value + step
            ends.append(loss_of())
        nested[i] = value
        found.append((ends[0] - ends[1]) / 2e-6)
    return found


def close(found, expected, tolerance):
    return torch.allclose(
        torch.as_tensor(found), torch.tensor(expected, dtype=torch.float64), atol=tolerance, rtol=1e-6
    )


SIZES = {
    "seed": st.integers(0, 10_000),
    "n": st.integers(1, 3),
    "width": st.integers(2, 5),
    "n_negatives": st.integers(0, 2),
}


def check_against_slow_twin(objective, batch, name, slow):
    """``slow`` takes the batch and the parameters, both as lists."""
    for vectors in batch.vectors.values():
        vectors.requires_grad_()
    loss = batch.loss(objective)
    loss.backward()
    lists, weights = batch.as_lists(name), parameters_as_lists(objective)
    assert close(loss.detach(), slow(lists, weights), 1e-9)
    for role, vectors in batch.vectors.items():
        assert close(vectors.grad, slopes(lambda: slow(lists, weights), lists[role]), 1e-6), role
    for parameter, value in objective.named_parameters():
        assert close(value.grad, slopes(lambda: slow(lists, weights), weights[parameter]), 1e-6), parameter


@pytest.mark.parametrize("variant", VARIANTS, ids=words)
@settings(max_examples=6, deadline=None)
@given(**SIZES)
def test_value_and_gradient_equal_those_of_the_slow_twin(variant, seed, n, width, n_negatives):
    name, options = variant
    torch.manual_seed(seed)
    batch = make_batch(name, seed, n=n, width=width, n_negatives=n_negatives)
    check_against_slow_twin(build(name, options, width), batch, name, partial(SLOW[name], **options))


@pytest.mark.parametrize("variant", VARIANTS, ids=words)
@settings(max_examples=3, deadline=None)
@given(**SIZES)
def test_matryoshka_equals_the_weighted_sum_over_shortened_vectors(variant, seed, n, width, n_negatives):
    name, options = variant
    torch.manual_seed(seed)
    widths = random.Random(seed).sample(range(1, width + 1), 2)
    objective = Matryoshka([build(name, options, each) for each in widths], widths, weights=(0.5, 2.0))
    batch = make_batch(name, seed, n=n, width=width, n_negatives=n_negatives)

    def shorten(vectors, cut):
        return [shorten(row, cut) for row in vectors] if isinstance(vectors[0], list) else vectors[:cut]

    def slow(lists, weights):
        total = 0.0
        for i, (cut, weight) in enumerate(zip(widths, (0.5, 2.0), strict=True)):
            prefix = f"objectives.{i}."
            own = {key.removeprefix(prefix): value for key, value in weights.items() if key.startswith(prefix)}
            short = {role: shorten(lists[role], cut) for role in batch.vectors}
            total += weight * SLOW[name](lists | short, own, **options)
        return total

    check_against_slow_twin(objective, batch, name, slow)


# Perfect batches, and those at the edge.

EYE = torch.eye(4)
PERFECT = {
    "cosine": Batch({"text1": EYE, "text2": EYE[[0, 1, 3, 2]] * 3}, torch.tensor([1.0, 1.0, 0.0, 0.0])),
    "triplet": Batch({"anchor": EYE, "positive": EYE, "negative": EYE.flip(0)}),
    "ranking": Batch({"anchor": EYE, "positive": 2 * EYE, "negative": -EYE[:, None]}),
    "cosent": Batch({"text1": EYE[:2], "text2": torch.stack([EYE[0], -EYE[1]])}, torch.tensor([0.9, 0.1])),
    "contrastive": Batch({"text1": EYE[:2], "text2": EYE[[0, 2]]}, torch.tensor([1.0, 0.0])),
    "distillation": Batch({"text": EYE}, EYE),
}


@pytest.mark.parametrize("matryoshka", [(), (4,)])
@pytest.mark.parametrize("name", PERFECT)
def test_a_perfect_batch_has_no_loss(name, matryoshka):
    objective = build_objective(name, width=4, options={}, teacher_widths=[4], matryoshka=matryoshka)
    assert PERFECT[name].loss(objective).item() == pytest.approx(0, abs=1e-6)


def test_a_head_that_tells_the_labels_apart_has_no_loss():
    objective = SoftmaxObjective(width=4, n_labels=4, features=("u",))
    objective.head.weight.data = 100 * EYE
    loss = objective(EYE, EYE.flip(0), torch.arange(4))
    assert loss.item() == pytest.approx(0, abs=1e-6)


def ones(shape):
    return torch.ones(shape)


def first_row_zero(shape):
    return torch.cat([torch.zeros(1, *shape[1:]), torch.ones(shape[0] - 1, *shape[1:])])


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("fill", [torch.zeros, ones, first_row_zero])
@pytest.mark.parametrize("matryoshka", [(), (2,)])
@pytest.mark.parametrize("variant", VARIANTS, ids=words)
def test_equal_vectors_zero_vectors_and_a_batch_of_one_stay_finite(variant, matryoshka, fill, n):
    name, options = variant
    objective = build(name, options, 4, matryoshka).float()
    batch = make_batch(name, 0, n=n)
    batch.vectors = {role: fill(tuple(each.shape)).requires_grad_() for role, each in batch.vectors.items()}
    for ids in ({}, batch.ids):
        loss = compare(objective, batch.vectors, target=batch.target, ids=ids)
        gradients = torch.autograd.grad(loss, list(batch.vectors.values()), allow_unused=True)
        assert loss.dtype == torch.float32
        assert loss.isfinite()
        assert all(each is None or each.isfinite().all() for each in gradients)


def test_one_zero_vector_beside_others_has_cosine_zero():
    zero, other = torch.zeros(1, 3), torch.ones(1, 3)
    assert CosineObjective()(zero, other, torch.tensor([0.25])).item() == 0.0625


def test_scores_that_order_nothing_give_cosent_no_loss_and_no_gradient():
    u, v = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    loss = CosentObjective()(u, v, torch.full((5,), 0.5))
    gradients = torch.autograd.grad(loss, (u, v))
    assert loss.item() == 0
    assert all((each == 0).all() for each in gradients)


def test_cosent_reads_only_the_order_of_the_scores():
    batch = make_batch("cosent", 1, n=6)
    one = batch.loss(CosentObjective())
    batch.target = batch.target**3 * 5 - 1
    assert batch.loss(CosentObjective()) == one


# Ranking, and which candidates it leaves out.


def test_the_columns_are_the_positives_then_the_negatives_row_by_row():
    batch = make_batch("ranking", 5, n=3, n_negatives=2)
    positive, negative = (batch.vectors[role].requires_grad_() for role in ("positive", "negative"))
    is_copy = torch.zeros(3, 3 + 6, dtype=torch.bool)
    is_copy[:, 3 + 2 * 1 + 0] = True  # negative 0 of row 1
    RankingObjective(scale=1.0)(**batch.vectors, is_copy=is_copy).backward()
    assert (negative.grad != 0).any(dim=-1).tolist() == [[True, True], [False, True], [True, True]]
    assert (positive.grad != 0).any(dim=-1).all()


@pytest.mark.parametrize("symmetric", [False, True])
def test_a_candidate_that_is_left_out_gets_no_gradient_and_the_own_positive_always_stays(symmetric):
    batch = make_batch("ranking", 2, n=3, n_negatives=0)
    anchor, positive = (each.requires_grad_() for each in batch.vectors.values())
    loss = RankingObjective(symmetric=symmetric)(anchor, positive, is_copy=torch.ones(3, 3, dtype=torch.bool))
    gradients = torch.autograd.grad(loss, (anchor, positive))
    assert loss.item() == 0
    assert all((each == 0).all() for each in gradients)


@pytest.mark.parametrize("symmetric", [False, True])
def test_a_repeated_pair_is_not_a_negative_of_itself(symmetric):
    anchor, positive = torch.randn(2, 1, 4, generator=torch.Generator().manual_seed(0))
    vectors = {"anchor": anchor[[0, 0]], "positive": positive[[0, 0]]}
    ids = {"anchor": torch.tensor([5, 5]), "positive": torch.tensor([6, 6])}
    objective = RankingObjective(symmetric=symmetric)
    assert compare(objective, vectors, ids=ids).item() == 0
    assert compare(objective, vectors).item() == pytest.approx(math.log(2))


def test_copies_are_the_anchor_itself_its_positive_and_its_other_positives():
    anchors, positives = torch.tensor([0, 1, 0]), torch.tensor([5, 0, 6])
    assert copies(anchors, positives).tolist() == [[False, True, True], [False, False, False], [True, True, False]]


def test_copies_never_mark_the_own_positive_even_where_it_is_the_anchor():
    assert copies(torch.tensor([1, 2]), torch.tensor([1, 2])).tolist() == [[False, False], [False, False]]


def test_a_negative_that_is_a_positive_of_the_same_anchor_elsewhere_is_left_out():
    found = copies(torch.tensor([0, 0]), torch.tensor([5, 6]), torch.tensor([[6], [9]]))
    assert found.tolist() == [[False, True, True, False], [True, False, True, False]]


# compare: one call for all.


@pytest.mark.parametrize("name", OBJECTIVES)
def test_arguments_are_named_after_the_roles_and_the_target_of_the_examples(name):
    kind = KINDS[OBJECTIVES[name].examples]
    arguments = [
        each for each in signature(OBJECTIVES[name].objective.forward).parameters if each not in ("self", "is_copy")
    ]
    assert arguments == [*kind.text_roles, *filter(None, [batch_target(kind)])]


@pytest.mark.parametrize("variant", VARIANTS, ids=words)
@pytest.mark.parametrize("matryoshka", [(), (2,)])
def test_losses_are_computed_in_float32_under_autocast(variant, matryoshka):
    name, options = variant
    objective = build(name, options, 4, matryoshka).float()
    batch = make_batch(name, 0)
    batch.vectors = {role: each.bfloat16() for role, each in batch.vectors.items()}
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = batch.loss(objective)
    batch.vectors = {role: each.float() for role, each in batch.vectors.items()}
    assert inside.dtype == torch.float32
    assert inside == batch.loss(objective)


def test_marks_and_scores_may_be_whole_numbers_bools_or_doubles():
    batch = make_batch("contrastive", 0)
    batch.vectors = {role: each.float() for role, each in batch.vectors.items()}
    objective = build_objective("contrastive", width=4, options={})
    losses = []
    for dtype in (torch.int64, torch.bool, torch.float64):
        batch.target = batch.target.to(dtype)
        losses.append(batch.loss(objective))
    assert losses[0] == losses[1] == losses[2]
    assert {loss.dtype for loss in losses} == {torch.float32}


def test_a_batch_without_a_role_or_its_target_is_refused():
    u = torch.ones(2, 3)
    with pytest.raises(
        InputError, match=r"labelled_pairs needs vectors for premise, hypothesis; missing: \['hypothesis"
    ):
        compare(SoftmaxObjective(3, 2), {"premise": u}, target=torch.tensor([0, 1]))
    with pytest.raises(InputError, match="scored_pairs needs the target 'score'; this one has none"):
        compare(CosineObjective(), {"text1": u, "text2": u})
    with pytest.raises(InputError, match="triplets has no target; this one has one"):
        compare(TripletObjective(), {"anchor": u, "positive": u, "negative": u}, target=torch.ones(2))
    with pytest.raises(UnknownNameError, match=r"Unknown role of triplets 'negatives'. Did you mean 'negative'"):
        compare(TripletObjective(), {"anchor": u, "positive": u, "negatives": u})
    with pytest.raises(InputError, match=r"has ids for \['anchor'\], but not for \['positive'\]"):
        compare(RankingObjective(), {"anchor": u, "positive": u}, ids={"anchor": torch.arange(2)})


# Building by name.


@pytest.mark.parametrize("kind", OBJECTIVES.values(), ids=OBJECTIVES)
def test_the_table_says_what_the_constructors_say(kind):
    constructor = vars(kind.objective).get("__init__", lambda self: None)
    parameters = {name: each.default for name, each in signature(constructor).parameters.items() if name != "self"}
    assert parameters == dict.fromkeys(kind.sizes, Parameter.empty) | dict(kind.options)
    assert kind.examples in KINDS


def test_the_same_seed_gives_the_same_start():
    def start(seed):
        torch.manual_seed(seed)
        return build("softmax", {}, 4, matryoshka=(2,)).state_dict()

    assert all(torch.equal(a, b) for a, b in zip(start(1).values(), start(1).values(), strict=True))
    assert not torch.equal(start(1)["objectives.0.head.weight"], start(2)["objectives.0.head.weight"])


def test_the_full_width_is_always_trained_and_each_width_has_a_head_of_its_own():
    objective = build("softmax", {"features": ["u*v"]}, 8, matryoshka=[2, 4])
    assert objective.widths == (8, 4, 2)
    assert [each.head.in_features for each in objective.objectives] == [8, 4, 2]
    assert build("cosine", {}, 8, matryoshka=[8, 2]).widths == (8, 2)


def test_a_teacher_of_the_same_width_needs_no_matrix():
    assert list(DistillationObjective(4, [4]).parameters()) == []
    assert [tuple(each.shape) for each in DistillationObjective(4, [4, 6]).parameters()] == [(6, 4)]
    objective = build("distillation", {}, TEACHER_WIDTH, matryoshka=[3])
    assert [len(list(each.parameters())) for each in objective.objectives] == [0, 1]


def test_several_teachers_have_equal_weights():
    objective = DistillationObjective(2, [2, 3], loss="cosine", similarity_weight=5.0)
    generator = torch.Generator().manual_seed(0)
    text, first, second = (torch.randn(4, width, generator=generator) for width in (2, 2, 3))
    units = [each / each.norm(dim=1, keepdim=True) for each in (first, second)]
    seen = text @ objective.projections[1].weight.T
    apart = [1 - torch.cosine_similarity(*pair, dim=1).mean() for pair in ((text, first), (seen, second))]
    cosines = torch.cosine_similarity(text[:, None], text[None], dim=-1)
    wanted = sum(each @ each.T for each in units) / 2
    expected = sum(apart) / 2 + 5 * ((cosines - wanted) ** 2).mean()
    torch.testing.assert_close(objective(text, torch.cat(units, dim=1)), expected)


def test_unrelated_texts_get_the_cosine_0_whatever_the_floor_of_a_teacher():
    """A teacher whose cosines lie between 0.6 and 1 asks for the same as one whose cosines lie between 0 and 1."""
    first = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    wanted = first @ first.T
    narrow = torch.linalg.cholesky(0.6 + 0.4 * wanted + 1e-6 * torch.eye(3))
    objective = DistillationObjective(2, [3], loss="none", similarity_weight=1.0, floors=[0.6])
    assert float(objective(first, narrow)) < 1e-9
    assert float(DistillationObjective(2, [3], loss="none", similarity_weight=1.0)(first, narrow)) > 0.05


def test_focus_weighs_pairs_by_their_cosine():
    generator = torch.Generator().manual_seed(1)
    text, target = (torch.randn(5, 3, generator=generator) for _ in range(2))
    found, wanted = (torch.cosine_similarity(each[:, None], each[None], dim=-1) for each in (text, target))
    weights = 1 + 10 * wanted.clamp(min=0)
    expected = 2 * (weights * (found - wanted) ** 2).sum() / weights.sum()
    objective = DistillationObjective(3, [3], loss="none", similarity_weight=2.0, focus=10.0)
    torch.testing.assert_close(objective(text, target), expected)


def test_the_order_of_the_other_texts_is_learned_without_the_text_itself():
    generator = torch.Generator().manual_seed(2)
    text, target = (torch.randn(4, 3, generator=generator) for _ in range(2))
    objective = DistillationObjective(3, [3], loss="none", ranking_weight=3.0, scale=7.0)
    total = 0.0
    for row in range(4):
        others = [column for column in range(4) if column != row]
        found, wanted = (7 * torch.cosine_similarity(each[row], each[others], dim=-1) for each in (text, target))
        total += float(torch.nn.functional.cross_entropy(found, wanted.softmax(dim=0)))
    assert float(objective(text, target)) == pytest.approx(3 * total / 4, rel=1e-5)
    start = text.clone().requires_grad_()
    objective(start, target).backward()
    assert torch.isfinite(start.grad).all() and start.grad.abs().max() > 0
    assert float(objective(text[:1], target[:1])) == 0.0


BAD = [
    ("tripled", {}, {}, "Unknown objective 'tripled'. Did you mean 'triplet'"),
    ("triplet", {"margn": 1}, {}, "Unknown option of the objective 'triplet': 'margn'. Did you mean 'margin'"),
    ("cosine", {"margin": 1}, {}, "'cosine' has no options, got 'margin'"),
    ("triplet", {"margin": 0}, {}, "margin must be a number above 0, got 0"),
    ("triplet", {"margin": "1"}, {}, "margin must be a number above 0, got '1'"),
    ("triplet", {"margin": True}, {}, "margin must be a number above 0, got True"),
    ("ranking", {"scale": math.inf}, {}, "scale must be a number above 0, got inf"),
    ("cosent", {"scale": -1}, {}, "scale must be a number above 0, got -1"),
    ("ranking", {"symmetric": 1}, {}, "symmetric must be true or false, got 1"),
    (
        "contrastive",
        {"distance": "euclid"},
        {},
        "Unknown distance 'euclid'. .*Choose from: cosine, euclidean, manhattan",
    ),
    ("contrastive", {"distance": ["cosine"]}, {}, r"Unknown distance \['cosine'\]"),
    ("softmax", {"features": []}, {"n_labels": 3}, r"features must be a list of names, got \[\]. Choose from: u, v"),
    ("softmax", {"features": "u"}, {"n_labels": 3}, "features must be a list of names, got 'u'"),
    ("softmax", {"features": ["u", "u+v"]}, {"n_labels": 3}, r"Unknown name in features: 'u\+v'. Did you mean"),
    ("softmax", {"features": ["u", "u"]}, {"n_labels": 3}, "features must not repeat a name"),
    ("softmax", {}, {}, "n_labels must be a whole number of at least 2, got 0"),
    ("distillation", {}, {"teacher_widths": [0]}, "teacher_widths must be a whole number of at least 1, got 0"),
    ("distillation", {}, {}, "requires the width of at least one teacher"),
    ("distillation", {"loss": "none"}, {"teacher_widths": [4]}, "loss 'none' requires a similarity_weight or"),
    ("distillation", {"floors": [0.1, 0.2]}, {"teacher_widths": [4]}, "floors must be a list of 1 numbers"),
    ("distillation", {"floors": [1.0]}, {"teacher_widths": [4]}, "floors must be below 1, got 1"),
    ("distillation", {"focus": -1}, {"teacher_widths": [4]}, "focus must be a number of at least 0, got -1"),
    ("distillation", {"loss": "mae"}, {"teacher_widths": [4]}, "Unknown loss 'mae'. Did you mean 'mse'"),
    (
        "distillation",
        {"similarity_weight": -1},
        {"teacher_widths": [4]},
        "similarity_weight must be a number of at least 0",
    ),
    ("cosine", {}, {"matryoshka": (2, 2)}, r"one or more different widths, got \[2, 2\]"),
    ("cosine", {}, {"matryoshka": (9,)}, "The matryoshka width 9 exceeds the width 4 of the model's vectors"),
    ("cosine", {}, {"matryoshka": (0,)}, "A matryoshka width must be a whole number of at least 1, got 0"),
]


@pytest.mark.parametrize(("name", "options", "sizes", "message"), BAD)
def test_bad_settings_are_named_with_what_is_allowed(name, options, sizes, message):
    with pytest.raises((InputError, UnknownNameError), match=message):
        build_objective(name, width=4, options=options, **sizes)


def test_a_matryoshka_that_does_not_fit_is_refused():
    with pytest.raises(InputError, match="got 1 objectives and 2 weights for the 2 widths"):
        Matryoshka([CosineObjective()], (4, 2))
    with pytest.raises(InputError, match="got 2 objectives and 0 weights"):
        Matryoshka([CosineObjective(), CosineObjective()], (4, 2), weights=())
    with pytest.raises(InputError, match="A matryoshka weight must be a number above 0, got 0"):
        Matryoshka([CosineObjective()], (4,), weights=(0,))
    with pytest.raises(InputError, match=r"same examples, got \['scored_pairs', 'triplets'\]"):
        Matryoshka([CosineObjective(), TripletObjective()], (4, 2))
    with pytest.raises(InputError, match="Vectors of width 3 cannot be shortened to the width 4"):
        Matryoshka([CosineObjective()], (4,))(text1=torch.ones(1, 3), text2=torch.ones(1, 3), score=torch.ones(1))
