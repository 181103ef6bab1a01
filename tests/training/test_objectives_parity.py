"""Values and gradients of our objectives against the losses of sentence-transformers, over the same vectors."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra 'train'")
pytest.importorskip("sentence_transformers", reason="parity needs sentence-transformers")

import torch.nn.functional as F  # noqa: E402 - after the gate
from sentence_transformers.sentence_transformer import losses  # noqa: E402

from twinvec.training.objectives import (  # noqa: E402
    ContrastiveObjective,
    CosentObjective,
    CosineObjective,
    DistillationObjective,
    Matryoshka,
    RankingObjective,
    SoftmaxObjective,
    TripletObjective,
)

pytestmark = pytest.mark.parity

N, WIDTH, N_LABELS = 6, 8, 3
TOLERANCE = 1e-5  # float32, sums of up to some dozens of terms


class GivenVectors(torch.nn.Module):
    """Stands for their model: a text's features are already its vector."""

    device = torch.device("cpu")

    def forward(self, features):
        return {"sentence_embedding": features["vectors"]}

    def get_embedding_dimension(self):
        return WIDTH


MODEL = GivenVectors()


def vectors(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def check_equal(ours, theirs, columns, target=None, *, parameters=()):
    """``ours`` takes the vectors; ``theirs`` is a loss of the rival; ``parameters`` are pairs that must agree too."""
    mine = [each.clone().requires_grad_() for each in columns]
    rivals = [each.clone().requires_grad_() for each in columns]
    loss = ours(*mine)
    expected = theirs([{"vectors": each} for each in rivals], target)
    loss.backward()
    expected.backward()
    torch.testing.assert_close(loss, expected, atol=TOLERANCE, rtol=TOLERANCE)
    assert any(each.grad.abs().max() > 1e-3 for each in mine), "nothing to compare"
    for one, other in [*zip(mine, rivals, strict=True), *parameters]:
        torch.testing.assert_close(one.grad, other.grad, atol=TOLERANCE, rtol=TOLERANCE)


CONCATENATIONS = ["u, v", "|u-v|", "u*v", "|u-v|, u*v", "u, v, u*v", "u, v, |u-v|", "u, v, |u-v|, u*v"]


@pytest.mark.parametrize("features", [tuple(each.split(", ")) for each in CONCATENATIONS], ids=CONCATENATIONS)
def test_softmax(features):
    torch.manual_seed(0)
    ours = SoftmaxObjective(WIDTH, N_LABELS, features)
    theirs = losses.SoftmaxLoss(
        MODEL,
        WIDTH,
        N_LABELS,
        concatenation_sent_rep="u" in features,
        concatenation_sent_difference="|u-v|" in features,
        concatenation_sent_multiplication="u*v" in features,
    )
    theirs.classifier.load_state_dict(ours.head.state_dict())
    label = torch.tensor([0, 2, 1, 1, 0, 2])
    heads = [(ours.head.weight, theirs.classifier.weight), (ours.head.bias, theirs.classifier.bias)]
    check_equal(lambda u, v: ours(u, v, label), theirs, vectors(2, N, WIDTH), label, parameters=heads)


SCORE = torch.tensor([0.0, 0.2, 1.0, 0.6, 0.6, 0.4])


def test_cosine():
    check_equal(
        lambda u, v: CosineObjective()(u, v, SCORE), losses.CosineSimilarityLoss(MODEL), vectors(2, N, WIDTH), SCORE
    )


@pytest.mark.parametrize("margin", [1.0, 5.0])
@pytest.mark.parametrize("distance", ["cosine", "euclidean", "manhattan"])
def test_triplet(distance, margin):
    metric = getattr(losses.TripletDistanceMetric, distance.upper())
    theirs = losses.TripletLoss(MODEL, distance_metric=metric, triplet_margin=margin)
    check_equal(TripletObjective(margin, distance), theirs, vectors(3, N, WIDTH))


@pytest.mark.parametrize("n_negatives", [0, 1, 3])
def test_ranking(n_negatives):
    """Their negatives come in columns, ours in one block; the order of the candidates is free."""
    columns = vectors(2 + n_negatives, N, WIDTH)
    theirs = losses.MultipleNegativesRankingLoss(MODEL, scale=20.0)
    check_equal(as_block(RankingObjective(scale=20.0)), theirs, columns)


@pytest.mark.filterwarnings("ignore:The MultipleNegativesSymmetricRankingLoss is deprecated")
@pytest.mark.parametrize("n_negatives", [0, 2])
def test_symmetric_ranking(n_negatives):
    columns = vectors(2 + n_negatives, N, WIDTH)
    theirs = losses.MultipleNegativesSymmetricRankingLoss(MODEL, scale=10.0)
    check_equal(as_block(RankingObjective(scale=10.0, symmetric=True)), theirs, columns)


def as_block(objective):
    def call(anchor, positive, *negatives):
        negative = torch.stack(negatives, dim=1) if negatives else None
        return objective(anchor=anchor, positive=positive, negative=negative)

    return call


@pytest.mark.parametrize("scale", [20.0, 5.0])
def test_cosent(scale):
    theirs = losses.CoSENTLoss(MODEL, scale=scale)
    check_equal(lambda u, v: CosentObjective(scale)(u, v, SCORE), theirs, vectors(2, N, WIDTH), SCORE)


@pytest.mark.parametrize(
    ("distance", "metric", "margin"),
    [("cosine", "COSINE_DISTANCE", 0.5), ("cosine", "COSINE_DISTANCE", 1.5), ("euclidean", "EUCLIDEAN", 5.0)],
)
def test_contrastive(distance, metric, margin):
    """Their Euclidean distance adds 1e-6 to every difference, which is within the tolerance."""
    label = torch.tensor([1.0, 0.0, 0.0, 1.0, 0.0, 1.0])
    theirs = losses.ContrastiveLoss(MODEL, getattr(losses.SiameseDistanceMetric, metric), margin)
    check_equal(lambda u, v: ContrastiveObjective(margin, distance)(u, v, label), theirs, vectors(2, N, WIDTH), label)


def test_distillation():
    wanted = vectors(N, WIDTH, seed=1)
    ours = DistillationObjective(WIDTH, [WIDTH])
    check_equal(lambda u: ours(u, wanted), losses.MSELoss(MODEL), [vectors(N, WIDTH)], wanted)


@pytest.mark.parametrize("loss", ["mse", "cosine"])
def test_distillation_to_another_width(loss):
    """Their projection has a bias, ours none."""
    wanted = vectors(N, 5, seed=1)
    ours = DistillationObjective(WIDTH, [5], loss)
    theirs = losses.EmbedDistillLoss(MODEL, distance_metric=loss, projection_dim=5)
    theirs.projection.weight.data = ours.projections[0].weight.data.clone()
    theirs.projection.bias.data.zero_()
    matrices = [(ours.projections[0].weight, theirs.projection.weight)]
    check_equal(lambda u: ours(u, wanted), theirs, [vectors(N, WIDTH)], wanted, parameters=matrices)


WIDTHS, WEIGHTS = (2, 8, 5), (0.5, 1.0, 2.0)


def matryoshka(make):
    return Matryoshka([make() for _ in WIDTHS], WIDTHS, WEIGHTS)


def their_matryoshka(loss):
    return losses.MatryoshkaLoss(MODEL, loss, matryoshka_dims=WIDTHS, matryoshka_weights=WEIGHTS)


def test_matryoshka_over_cosine():
    ours = matryoshka(CosineObjective)
    theirs = their_matryoshka(losses.CosineSimilarityLoss(MODEL))
    check_equal(lambda u, v: ours(text1=u, text2=v, score=SCORE), theirs, vectors(2, N, WIDTH), SCORE)


def test_matryoshka_over_cosent():
    ours = matryoshka(CosentObjective)
    theirs = their_matryoshka(losses.CoSENTLoss(MODEL))
    check_equal(lambda u, v: ours(text1=u, text2=v, score=SCORE), theirs, vectors(2, N, WIDTH), SCORE)


@pytest.mark.parametrize("n_negatives", [0, 2])
def test_matryoshka_over_ranking(n_negatives):
    columns = vectors(2 + n_negatives, N, WIDTH)
    theirs = their_matryoshka(losses.MultipleNegativesRankingLoss(MODEL))
    check_equal(as_block(matryoshka(RankingObjective)), theirs, columns)


def test_matryoshka_over_euclidean_triplets_differs_by_their_scaling_to_length_one():
    """They scale what they have cut to length 1, at the full width too; do the same to ours and they agree."""
    theirs = their_matryoshka(losses.TripletLoss(MODEL, triplet_margin=1.0))

    def scaled(*columns):
        cut = [[F.normalize(each[:, :width], dim=-1) for each in columns] for width in WIDTHS]
        return sum(weight * TripletObjective()(*each) for weight, each in zip(WEIGHTS, cut, strict=True))

    check_equal(scaled, theirs, vectors(3, N, WIDTH))
    anchor, positive, negative = vectors(3, N, WIDTH)
    plain = matryoshka(TripletObjective)(anchor=anchor, positive=positive, negative=negative)
    assert abs(plain - scaled(anchor, positive, negative)) > 0.1
