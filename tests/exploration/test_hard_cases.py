"""Tables that ask more of an exploration or a view than they can give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from commands import run
from imapce import IMAPCE, Attributes, Exploration
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.exploration.record import AcceptedStep, TakenCluster
from imapce.priors.problem import FlatRowsError

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(60, 4), (300, 5)])
@pytest.mark.parametrize("seed", range(4))
def test_random_true_false_columns_are_no_structure(shape: tuple[int, int], seed: int) -> None:
    exploration = Exploration(np.random.default_rng(seed).random(shape) > 0.5, random_state=0).run()
    assert exploration.clusters_ == []
    assert "No structure beyond chance" in (exploration.stop_reason or "")


def test_true_false_columns_that_go_together_are() -> None:
    kind = np.arange(150) % 3
    X = np.random.default_rng(1).random((150, 12)) < np.repeat(np.eye(3), 4, axis=1)[kind] * 0.9 + 0.05
    exploration = Exploration(X, random_state=0).run()
    assert exploration.structure is not None
    assert exploration.structure.verdict == "clear"
    mixed = [np.bincount(kind[one.rows], minlength=3) for one in exploration.clusters_]
    assert sum(counts.max() for counts in mixed) > 0.9 * len(X)


@pytest.mark.parametrize("seed", range(4))
def test_columns_that_repeat_the_known_leave_nothing_to_show(seed: int) -> None:
    N = np.random.default_rng(seed).standard_normal((60, 3))
    X = np.column_stack([N, N])
    for erase in (True, False):
        with pytest.raises(FlatRowsError):
            IMAPCE(random_state=0).fit(X, prior=Attributes([0, 1, 2], erase=erase))
    assert IMAPCE(alpha=1.0, random_state=0).fit_transform(X, prior=Attributes([0, 1, 2])).std(axis=0).min() > 0.1


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("known", [[0, 1, 2, 3], [0, 1, 2, 3, 4, 5]])
def test_few_columns_beside_the_known_are_shown_or_refused(kind: Any, known: list[int]) -> None:
    X = sparse.random(12, 8, density=0.6, random_state=0).toarray()
    try:
        view = IMAPCE(random_state=0).fit_transform(kind(X), prior=Attributes(known))
    except InvalidValueError:
        return
    assert np.isfinite(view).all()


def test_one_axis_beside_all_but_one_known_column() -> None:
    X = np.random.default_rng(0).normal(size=(60, 6))
    assert IMAPCE(1, random_state=0).fit_transform(X, prior=Attributes([0, 1, 2, 3, 4])).shape == (60, 1)
    # Of six rows five columns explain everything.
    with pytest.raises(FlatRowsError):
        IMAPCE(1, random_state=0).fit_transform(X[:6], prior=Attributes([0, 1, 2, 3, 4]))


@pytest.mark.parametrize("unit", [1e-25, 1e20])
def test_what_a_view_shows_does_not_depend_on_units(unit: float) -> None:
    X = RNG.standard_normal((60, 6))
    plain, scaled = (IMAPCE(standardize=False, random_state=0).fit(one) for one in (X, X * unit))
    assert scaled.optima_[0].seen == pytest.approx(plain.optima_[0].seen, abs=1e-3, nan_ok=True)


def test_a_step_with_numbers_json_cannot_hold_is_saved(tmp_path: Path) -> None:
    X = RNG.standard_normal((60, 3)) + 9 * np.eye(3)[np.arange(60) % 3]
    session = Exploration(X, random_state=0)
    taken = TakenCluster(np.arange(20), None, number=0, chosen="hand")
    step = AcceptedStep(
        (taken,), np.eye(2, 3), mean=np.zeros(3), scale=np.ones(3), objective=float("nan"), kurtosis=float("inf")
    )
    session.of_record(_with_step(session, step), X).save(tmp_path / "s.imapce")
    loaded = Exploration.load(tmp_path / "s.imapce", X).steps[0]
    assert loaded.kurtosis == np.inf
    assert np.isnan(loaded.objective)


def _with_step(session: Exploration, step: AcceptedStep) -> Any:
    from dataclasses import replace

    return replace(session.record(), moves=session.record().moves.then(step))


def test_a_session_without_a_step_is_written_by_the_command(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "noise.csv", RNG.standard_normal((80, 4)), delimiter=",", header="a,b,c,d", comments="")
    assert run("explore", tmp_path / "noise.csv", "--session", tmp_path / "s.imapce").exit_code == 0
    again = run("explore", tmp_path / "noise.csv", "--session", tmp_path / "s.imapce", "--resume")
    assert again.exit_code == 0, again.stderr


def test_arguments_of_the_wrong_kind_are_refused_in_a_sentence() -> None:
    X = RNG.standard_normal((60, 4))
    exploration = Exploration(X, random_state=0)
    with pytest.raises(InvalidTypeError, match="callback must be None or a function; got 3"):
        exploration.run(callback=3)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="view must be from 0 to"):
        exploration.cluster(True)
    model = IMAPCE(alpha=0.0, mu=1.0, random_state=0).fit(X)
    with pytest.raises(InvalidValueError, match="most must be at least 1; got 0"):
        model.transform_all(X, most=0)
