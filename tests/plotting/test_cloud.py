"""Beyond 20,000 rows a cloud is one image: denser where rows are more, rare groups and lonely rows still seen."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from PIL import Image

from imapce import Exploration
from imapce.plotting import plot_embedding, plot_loadings, save_figure
from imapce.plotting.cloud import CROWDED, Cloud, Group, draw_cloud, draw_groups, paint
from imapce.plotting.figure import drawn_pixels, figure_bytes
from imapce.plotting.steps import plot_proposal, plot_step
from imapce.plotting.style import KNOWN_GREY, LABEL_HUES, plain_figure

BLACK = np.array([[0.0, 0.0, 0.0, 1.0]])
MANY = CROWDED + 5_000


def pixels_of(figure) -> np.ndarray:
    return drawn_pixels(figure, 100)[0].reshape(-1, 3) / 255


def near(pixels: np.ndarray, hue: str, within: float = 0.15) -> int:
    return int((np.abs(pixels - to_rgb(hue)).max(axis=1) < within).sum())


def clouds_of(figure, panel: int = 0) -> list[Cloud]:
    return [artist for artist in figure.axes[panel].get_children() if isinstance(artist, Cloud)]


def test_more_rows_on_a_pixel_make_it_denser() -> None:
    at = np.repeat([[1.5, 1.5], [5.5, 5.5]], [1, 40], axis=0)
    image = paint(at, np.zeros(41, dtype=int), BLACK, (8, 8), dpi=30)
    assert image[1, 1, 3] == int(255 * 0.45)
    assert image[5, 5, 3] == 255
    assert (image[:, :, 3] > 0).sum() == 2


def test_a_scale_shows_the_mean_of_a_pixel() -> None:
    shades = np.linspace(0, 1, 11)[:, None] * np.ones(4)
    shades[:, 3] = 1.0
    image = paint(np.full((3, 2), 0.5), np.array([0, 4, 8]), shades, (1, 1), dpi=30, scale=True)
    assert image[0, 0, 0] == int(255 * 0.4)


def test_the_picture_stands_where_the_axes_say() -> None:
    points = np.vstack([np.random.default_rng(0).normal(size=(MANY, 2)) * 0.05, [[0.0, 9.0], [9.0, 0.0]]])
    figure = plot_embedding(points)
    pixels, drawn = drawn_pixels(figure, 100)
    for place in ([0.0, 9.0], [9.0, 0.0], [0.0, 0.0]):
        x, y = drawn.axes[0].transData.transform(place)
        around = pixels[len(pixels) - int(y) - 3 : len(pixels) - int(y) + 2, int(x) - 2 : int(x) + 3]
        assert (around.astype(int).sum(axis=2) < 600).any(), place
    x, y = drawn.axes[0].transData.transform([9.0, 9.0])
    assert (pixels[len(pixels) - int(y) - 9 : len(pixels) - int(y) + 9, int(x) - 9 : int(x) + 9] > 200).all()


def test_a_rare_group_is_seen_inside_a_large_one() -> None:
    rng = np.random.default_rng(0)
    points = np.vstack([rng.normal(size=(300_000, 2)), 0.3 * rng.normal(size=(60, 2))])
    labels = np.repeat(["all the others", "rare"], [300_000, 60])
    seen = pixels_of(plot_embedding(points, color=labels))
    # Its key has one dot of 40 pixels; 60 rows drawn one pixel each below 300,000 others would add a few.
    assert near(seen, LABEL_HUES[1]) > 250


@pytest.mark.parametrize("shares", [(0.9, 0.1), (0.5, 0.5)])
def test_no_group_hides_another_where_they_lie_together(shares: tuple[float, float]) -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(200_000, 2))
    labels = rng.choice(["a", "b"], size=200_000, p=shares)
    seen = pixels_of(plot_embedding(points, color=labels))
    first, second = (near(seen, hue, 0.3) for hue in LABEL_HUES[:2])
    assert min(first, second) > 0.1 * max(first, second)


def test_every_artist_of_a_crowd_is_one_image() -> None:
    rng = np.random.default_rng(0)
    view = rng.normal(size=(MANY, 2))
    known = np.arange(MANY) < 100
    figure = plot_embedding(view, color=rng.normal(size=MANY), known=known, marker=np.arange(MANY) % 3)
    assert len(clouds_of(figure)) == 2
    assert not [one for one in figure.axes[0].collections if len(one.get_offsets()) > 1]
    told = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert "not drawn: many rows" in told
    assert len(clouds_of(plot_embedding(rng.normal(size=(MANY, 3))))) == 1


def test_rows_without_a_value_are_grey_below_the_scale() -> None:
    values = np.full(MANY, np.nan)
    values[: MANY // 2] = np.linspace(0, 1, MANY // 2)
    assert len(clouds_of(plot_embedding(np.random.default_rng(0).normal(size=(MANY, 2)), color=values))) == 2


def test_a_file_of_lines_holds_the_crowd_as_an_image_and_the_same_bytes_twice(tmp_path) -> None:
    figure = plot_embedding(np.random.default_rng(0).normal(size=(MANY, 2)), color=np.arange(MANY) % 4)
    for suffix in (".svg", ".png", ".pdf"):
        first = save_figure(figure, tmp_path / f"one{suffix}").read_bytes()
        assert first == figure_bytes(figure, suffix, 150)
        assert len(first) < 900_000
    page = (tmp_path / "one.svg").read_text()
    assert len(re.findall("<image", page)) == 1
    # At 50 dots an inch there are fewer pixels and not fewer rows.
    small = Image.open(io.BytesIO(figure_bytes(figure, ".png", 50))).convert("RGB")
    assert near(np.asarray(small).reshape(-1, 3) / 255, LABEL_HUES[0], 0.35) > 500


def test_a_turned_axes_shows_the_crowd_from_there() -> None:
    figure = plot_embedding(np.random.default_rng(0).normal(size=(MANY, 3)) * [5.0, 1.0, 1.0])
    before = pixels_of(figure)
    figure.axes[0].view_init(azim=90)
    assert not np.array_equal(before, pixels_of(figure))


def test_groups_are_points_while_they_are_few() -> None:
    for n_rows, images in ((CROWDED, 0), (MANY, 2)):
        figure = plain_figure(3, 3)
        half = np.arange(n_rows) % 2 == 0
        groups = [Group(half, KNOWN_GREY, 1.5), Group(~half, "#0072B2")]
        draw_groups(figure.add_subplot(), np.random.default_rng(0).normal(size=(n_rows, 2)), groups)
        assert (len(clouds_of(figure)), len(figure.axes[0].collections)) == (images, 2 - images)
    draw_cloud(figure.axes[0], np.empty((0, 2)), np.empty(0, dtype=int), BLACK, layer=1.0)
    assert len(clouds_of(figure)) == 2


def test_steps_and_weights_of_many_rows_are_images_too() -> None:
    rng = np.random.default_rng(0)
    kinds = np.arange(MANY) % 3
    X = rng.normal(size=(MANY, 4)) + 9 * np.eye(3, 4)[kinds]
    exploration = Exploration(X, random_state=0)
    figure = plot_proposal(exploration.propose())
    assert len(clouds_of(figure)) == 1
    seen = pixels_of(figure)
    assert all(near(seen, text.get_color(), 0.3) > 200 for text in figure.axes[0].get_legend().get_lines())
    exploration.accept()
    assert [len(clouds_of(plot_step(exploration, 0, labels=kinds), panel)) for panel in range(3)] == [1, 1, 1]


def test_weights_lie_on_an_image_of_many_rows() -> None:
    from imapce.baselines import PCA

    X = np.random.default_rng(0).normal(size=(MANY, 4))
    model = PCA().fit(X)
    assert len(clouds_of(plot_loadings(model, embedding=model.transform(X)))) == 1
