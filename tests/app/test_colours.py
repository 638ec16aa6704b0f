"""Clusters are told apart by their colours, on light and dark ground and by readers who see fewer colours."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from imapce.app.colours import CLUSTER_CODES, SCALE, SHADES, by_number, cluster_code, palettes
from imapce.plotting.steps import cluster_hue

# Machado, Oliveira and Fernandes (2009), severity 1, in linear light.
VISIONS = {
    "all colours": np.eye(3),
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
}
XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]])


def light_of(hue: str) -> np.ndarray:
    parts = np.array([int(hue[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def cielab(hue: str, vision: str) -> np.ndarray:
    x, y, z = np.cbrt(XYZ @ np.clip(VISIONS[vision] @ light_of(hue), 1e-6, 1) / [0.95047, 1.0, 1.08883])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("ground", ["light", "dark"])
@pytest.mark.parametrize(("vision", "least"), [("all colours", 14), ("deuteranopia", 10.5), ("protanopia", 11.5)])
def test_the_closest_two_of_24_clusters_stay_apart(ground: str, vision: str, least: float) -> None:
    hues = [palettes()[ground][code] for code in CLUSTER_CODES]
    assert len(set(hues)) == 24
    seen = [cielab(hue, vision) for hue in hues]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > least


@pytest.mark.parametrize(("ground", "paper", "least"), [("dark", "#12171D", 3.0), ("light", "#FFFFFF", 1.25)])
def test_every_cluster_can_be_seen_on_its_ground(ground: str, paper: str, least: float) -> None:
    behind = XYZ[1] @ light_of(paper) + 0.05
    for code in CLUSTER_CODES:
        front = XYZ[1] @ light_of(palettes()[ground][code]) + 0.05
        assert max(front, behind) / min(front, behind) > least


def test_the_page_and_the_figures_give_a_cluster_the_same_colour() -> None:
    light = palettes()["light"]
    assert len(light) == SCALE + SHADES == 64
    assert [light[cluster_code(number)] for number in range(30)] == [cluster_hue(number) for number in range(30)]


def test_more_clusters_than_eleven_have_codes_of_their_own() -> None:
    colouring = by_number(
        "taken", "Clusters taken", np.arange(24), {one: f"Cluster {one}" for one in range(24)}, "rest"
    )
    assert len(np.unique(colouring.codes)) == 24
