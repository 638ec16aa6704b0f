"""The turn between two views is the geodesic: exact at both ends, orthonormal and steady all the way."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import imapce.app
from imapce.app.scene import Turn

STATIC = Path(imapce.app.__file__).parent / "static"


def axes(rng: np.random.Generator, d: int, k: int) -> np.ndarray:
    return np.linalg.qr(rng.normal(size=(d, k)))[0]


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("seed", range(12))
def test_the_turn_ends_where_the_views_are_and_stays_orthonormal(k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, B = axes(rng, 8, k), axes(rng, 8, k)
    turn = Turn.between(A, B)
    for t, view in ((0.0, A), (1.0, B)):
        old, new = turn.at(t)
        np.testing.assert_allclose(A @ old + B @ new, view, atol=1e-12)
    for t in np.linspace(0, 1, 11):
        old, new = turn.at(t)
        V = A @ old + B @ new
        np.testing.assert_allclose(V.T @ V, np.eye(k), atol=1e-12)


@pytest.mark.parametrize("k", [2, 3])
def test_the_turn_is_steady_and_never_folds(k: int) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        A, B = axes(rng, 6, k), axes(rng, 6, k)
        turn = Turn.between(A, B)
        frames = [A @ old + B @ new for old, new in (turn.at(t) for t in np.linspace(0, 1, 101))]
        steps = [np.linalg.norm(after - before) for before, after in itertools.pairwise(frames)]
        assert max(steps) < 1.01 * min(steps) + 1e-9
        assert max(steps) < 0.12


@pytest.mark.parametrize("change", ["same", "flipped", "swapped", "turned"])
def test_views_of_one_plane_are_turned_without_a_third_direction(change: str) -> None:
    A = axes(np.random.default_rng(1), 5, 2)
    within = {
        "same": np.eye(2),
        "flipped": np.diag([1.0, -1.0]),
        "swapped": np.array([[0.0, 1.0], [1.0, 0.0]]),
        "turned": np.array([[0.6, -0.8], [0.8, 0.6]]),
    }[change]
    B = A @ within
    turn = Turn.between(A, B)
    for t, view in ((0.0, A), (1.0, B)):
        old, new = turn.at(t)
        np.testing.assert_allclose(A @ old + B @ new, view, atol=1e-7)
    assert all(np.isfinite(turn.at(t)).all() for t in np.linspace(0, 1, 11))


def test_other_scales_are_reached_too() -> None:
    rng = np.random.default_rng(2)
    A, B, rows = axes(rng, 6, 2), axes(rng, 6, 2), rng.normal(size=(30, 6))
    old_rows, new_rows = rows @ A, (rows * rng.uniform(0.5, 2, size=6)) @ B
    old, new = Turn.between(A, B).at(1.0)
    np.testing.assert_allclose(old_rows @ old + new_rows @ new, new_rows, atol=1e-12)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed; the browser's story covers the page")
@pytest.mark.parametrize("k", [2, 3])
def test_the_page_makes_the_same_frames(k: int) -> None:
    rng = np.random.default_rng(3)
    turn = Turn.between(axes(rng, 7, k), axes(rng, 7, k))
    script = f"""
import {{ turnAt }} from {json.dumps((STATIC / "turn.js").as_uri())};
console.log(JSON.stringify([0, 0.3, 1].map((t) => turnAt({json.dumps(turn.content())}, t))));
"""
    done = subprocess.run(["node", "--input-type=module"], input=script, capture_output=True, text=True, check=True)
    for t, frames in zip((0, 0.3, 1), json.loads(done.stdout), strict=True):
        np.testing.assert_allclose(frames, turn.at(t), atol=1e-12)
