"""What sessions say in words and numbers, piece by piece: traits, verdicts, what was known, names and numbers."""

from __future__ import annotations

import numpy as np
import pytest

from imapce import IMAPCE, Attributes, Labels
from imapce.clusters.significance import Evidence, Structure
from imapce.errors import InvalidValueError
from imapce.exploration.accept import name_of_cluster
from imapce.exploration.counted import say_the_same, shared_edges, trait_of
from imapce.exploration.knowledge import known_by_name, known_names, one_class_in_words
from imapce.exploration.record import (
    AcceptedStep,
    Moves,
    Record,
    Regrouping,
    TakenCluster,
    checked_settings,
    require_number_of_clusters,
)
from imapce.exploration.traits import (
    LevelTrait,
    Numbers,
    NumberTrait,
    name_of_traits,
    overlap_in_words,
    p_value_in_words,
    percent,
    trait_in_words,
)
from imapce.exploration.verdict import (
    best_split_in_words,
    evidence_in_words,
    structure_of_file,
    told_structure,
    verdict_in_words,
)
from imapce.tables.columns import Column
from imapce.tables.reader import Reader

FIRST = np.array([True, True, False, False])
DEGREE = LevelTrait("education", ("Bachelors", "none"), (0.58, 0.42), (0.12, 0.88), strength=0.46)


def test_a_number_and_a_level_are_told_inside_and_outside() -> None:
    trait = trait_of(Column("size", values=np.array([1.0, 2.0, 7.0, 8.0])), FIRST, ~FIRST, strength=1.0)
    assert isinstance(trait, NumberTrait)
    assert (trait.inside.mean, trait.outside.median, trait.is_high) == (1.5, 7.5, False)
    assert name_of_traits([DEGREE]) == "58\xa0%\xa0Bachelors (12\xa0% elsewhere)"
    smoker = LevelTrait("smoker", ("no", "yes"), (0.1, 0.9), (0.8, 0.2), strength=0.7)
    assert trait_in_words(smoker) == "90\xa0%\xa0smoker = yes (20\xa0% elsewhere)"
    assert (DEGREE.telling, DEGREE.largest(1)) == (0, [1])


def test_columns_that_say_the_same_are_told_once() -> None:
    level, size = Column("level", codes=np.array([0, 1, 1]), levels=("a", "b")), Column("size", np.array([1.0, 2, 2]))
    number = NumberTrait("size", Numbers(1, 1, ()), Numbers(2, 2, ()))
    assert say_the_same(LevelTrait("level", ("a", "b"), (1.0, 0.0), (0.0, 1.0)), level, number, size)
    assert not say_the_same(number, size, number, Column("other", np.array([1.0, 2, 1])))


def test_shares_and_scales_in_words() -> None:
    assert [percent(share) for share in (0.001, 0.999, 0.0)] == ["under 1\xa0%", "over 99\xa0%", "0\xa0%"]
    assert shared_edges(np.array([1.0, 2.0, 3.0])).tolist() == [0.5, 1.5, 2.5, 3.5]
    assert overlap_in_words(0.61) == "overlapping (61\xa0% overlap)"
    assert overlap_in_words(float("nan")) == overlap_in_words(None) == ""
    assert p_value_in_words(0.01).endswith("a single group would look as split in 1 of 100 tables (p = 0.01)")


def test_verdicts_in_words_and_in_files() -> None:
    possible = Structure("possible", "z = 3.9")
    assert verdict_in_words(possible) == "Possible structure: z = 3.9"
    assert structure_of_file(told_structure(possible)) == possible
    # Files of earlier versions.
    assert structure_of_file({**told_structure(possible), "verdict": "perhaps"}) == possible
    none = Structure("none", "no", (Evidence("tables of one group", 1.26, 0.104),), candidate=np.array([0, 0, 1]))
    assert evidence_in_words(none) == "Tested against tables of one group (z = 1.3, p = 0.1)."
    old = {"clear": True, "valley": 5.0, "dependence": None, "words": "a valley"}
    assert structure_of_file(old) == Structure("clear", "a valley", (Evidence("one peak", 5.0, 2.866515718791933e-07),))
    assert require_number_of_clusters(3) == 3
    with pytest.raises(InvalidValueError, match="a whole number of at least 2; got 1"):
        require_number_of_clusters(1)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([0, 0, 1], "The best split would be 2 clusters of 2 and 1 rows"),
        ([2, 0, 0, -1, 2, 2], "The best split would be 2 clusters of 3 and 2 rows"),
        (np.repeat([0, 1, 2], 50), "The best split would be 3 clusters of 50, 50 and 50 rows"),
        (np.repeat(np.arange(10), 2), "The best split would be 10 clusters of 2, 2, 2, 2, 2, 2, 2, 2, … rows"),
        ([-1, -1, -1, -1], ""),
    ],
)
def test_the_best_split_says_its_sizes(labels: list[int], words: str) -> None:
    assert best_split_in_words(Structure("none", "no", candidate=np.asarray(labels))) == words
    assert best_split_in_words(Structure("possible", "yes", candidate=np.asarray(labels))) == ""


def test_what_was_known_has_names() -> None:
    priors = [Attributes([0]), Attributes([2], erase=True), Labels([0, 1, 0])]
    assert known_names(priors, Reader(3)) == ["x0", "x2", "the known label"]
    came = known_by_name([*priors[:2], Labels([0, 1, 0]).resolve(3)], Reader(3), explains=True)
    assert came == {"x0": "explained away", "x2": "erased", "labels": "explained away"}
    run = Column("run", codes=np.array([2, 2, 0, 2]), levels=("1", "2", "3"))
    assert one_class_in_words(run, FIRST) == "all of its rows are run 3"
    assert one_class_in_words(run, ~FIRST) is None
    assert (name_of_cluster(" B cells "), name_of_cluster("")) == ("B cells", None)


def test_moves_come_to_clusters_labels_and_origins() -> None:
    first, second = (TakenCluster(np.array([row]), None, number=row + 3, chosen="hand") for row in (0, 1))
    step = AcceptedStep((first, second), np.eye(2), mean=np.zeros(2), scale=np.ones(2), objective=1.0, kurtosis=8.0)
    both = TakenCluster(np.array([0, 1]), None, number=3, chosen="hand")
    moves = Moves(3, (step,))
    merged = moves.then(Regrouping("merge", (3, 4), (both,), words="", pieces=(np.array([2]),), numbers=(7,)))
    assert (moves.labels.tolist(), moves.origins, moves.next_number) == ([3, 4, -1], (1, 1), 5)
    assert (merged.labels.tolist(), merged.origins, merged.next_number) == ([3, 3, -1], (None,), 8)
    assert merged.first(1) == moves != merged
    # A regrouping in which nothing came and nothing went.
    assert merged.then(Regrouping("consolidate", (), (), words="")).next_number == 8


def test_a_record_is_the_sum_of_its_settings_and_moves() -> None:
    settings = checked_settings(
        method="auto",
        estimator=IMAPCE(mu=5.0),
        clusterer="auto",
        refine=None,
        max_clusters=5,
        random_state=0,
        granularity="auto",
        n_clusters=None,
    )
    record = Record(Moves(3), np.array([True, False, False]), **settings, min_cluster_size=1)
    assert (record.refine, record.is_joint, record.n_left, record.known.tolist()) == (
        True,
        True,
        2,
        [True, False, False],
    )
    again = Record(
        Moves(3), np.array([True, False, False]), **{**settings, "estimator": IMAPCE(mu=5.0)}, min_cluster_size=1
    )
    assert record == again != again.of_size("auto")
    assert record != Record(Moves(3), record.known_at_start, **{**settings, "estimator": IMAPCE()}, min_cluster_size=1)
    assert (
        Record(Moves(2310), np.zeros(2310, dtype=bool), **settings, min_cluster_size=1).of_size("auto").min_cluster_size
        == 24
    )
