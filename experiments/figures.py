"""All figures of the paper and its supplement, as PNG and PDF."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments.methods import CPCA, CT_SNE, FAIR, IMAPCE_PAPER, PCA, view
from experiments.problems import Problem, sources
from experiments.results import Row
from experiments.running import Run
from imapce import IMAPCE, Exploration, datasets
from imapce.plotting.cloud import Group, draw_groups
from imapce.plotting.figure import save_figure
from imapce.plotting.steps import cluster_hue, encircle
from imapce.plotting.style import INK, KNOWN_GREY, LABEL_SIZE, PALETTE, TITLE_SIZE, blank_figure, quiet_axes

SHOWN = (PCA, CPCA, CT_SNE, FAIR, IMAPCE_PAPER)
TITLES = {PCA.name: "cPCA, authors' call", CPCA.name: "cPCA"}
NAMES = {
    "synthetic": "Synthetic",
    "adult ethnicity": "Adult\nethnicity known",
    "adult gender": "Adult\ngender known",
    "adult ethnicity and gender": "Adult\nethnicity and gender known",
}
KNOWN = {
    "synthetic": "batch",
    "adult ethnicity": "ethnicity",
    "adult gender": "gender",
    "adult ethnicity and gender": "ethnicity × gender",
}
SHAPES = ("o", "^", "s", "D")
INCHES = 2.6
EXAMPLES = (
    ("mnist", "5", "Sneaker"),
    ("mnist", "3", "Sandal"),
    ("cifar", "cattle", "Dress"),
    ("cifar", "bicycle", "Trouser"),
)


def figures(run: Run) -> list[Row]:
    """Views of every method for every problem, the superimposed images, and four steps of an exploration."""
    views(run, "figure_1_attributes", ("synthetic", "adult ethnicity"))
    views(run, "figure_2_samples", ("mnist Sandal/Sneaker", "cifar Trouser/Dress"), with_images=True)
    exploration(run, "figure_3_exploration")
    views(run, "supplement_adult", ("adult gender", "adult ethnicity and gender"))
    views(run, "supplement_mnist", ("mnist Sandal/Ankle boot", "mnist T-shirt/Dress"), with_images=True)
    views(run, "supplement_cifar", ("cifar T-shirt/Shirt", "cifar T-shirt/Coat"), with_images=True)
    examples(run, "supplement_sums", EXAMPLES)
    return []


def views(run: Run, file: str, names: Sequence[str], *, with_images: bool = False) -> None:
    """A row of panels for each problem, a panel for each method; with images, an example of how rows came to be."""
    columns = len(SHOWN) + with_images
    figure = blank_figure(INCHES * columns + 1.7, INCHES * len(names) + 0.5)
    grid = figure.subfigures(len(names), 1)
    for place, name in zip(np.atleast_1d(grid), names, strict=True):
        panels = place.subplots(1, columns, squeeze=False)[0]
        if with_images:
            superimposed(panels[0], run.problem(name))
        for number, (ax, method) in enumerate(zip(panels[with_images:], SHOWN, strict=True)):
            on = run.problem(name)
            points = np.asarray(view(run.cells, method, on, 0)["embedding"], dtype=np.float64)
            handles = draw(ax, points, on)
            quiet_axes(
                ax, "", "", title=TITLES.get(method.name, method.name) if place is np.atleast_1d(grid)[0] else None
            )
            ax.set_aspect("auto")
            frame(ax, points)
            ax.tick_params(labelbottom=False, labelleft=False)
            if number == 0 and not with_images:
                ax.set_ylabel(NAMES.get(name, name), fontsize=TITLE_SIZE, color=INK)
        place.legend(handles=handles, loc="outside right upper", frameon=False, fontsize=LABEL_SIZE, labelcolor=INK)
    write(run, figure, file)


def draw(ax: Any, points: np.ndarray, on: Problem) -> list[Line2D]:
    """The rows by colour (the first structure), filling (the second) and shape (what is known); gives the legend."""
    hues = codes(next(iter(on.structure.values())))
    # Ten digits and a hundred things cannot be told by their shapes.
    shapes = codes(on.known) if len(np.unique(on.known)) <= len(SHAPES) else np.zeros(len(points), dtype=int)
    rest = list(on.structure.values())[1:]
    filled = codes(rest[0]) == 1 if rest else np.ones(len(points), dtype=bool)
    order = np.random.default_rng(0).permutation(len(points))
    size = 26.0 if len(points) <= 2000 else 9.0
    for shape in np.unique(shapes):
        for solid in (False, True):
            rows = order[(shapes[order] == shape) & (filled[order] == solid)]
            colours = np.asarray(PALETTE)[hues[rows]]
            look = (
                {"linewidths": 0.0, "c": colours}
                if solid
                else {"linewidths": 0.8, "facecolors": "none", "edgecolors": colours}
            )
            ax.scatter(
                *points[rows, :2].T,
                s=size * (0.6 if solid else 0.8),
                marker=SHAPES[shape],
                alpha=0.65,
                rasterized=True,
                **look,
            )
    return legend(on)


def frame(ax: Any, points: np.ndarray) -> None:
    """Of many rows the outermost half per cent may lie outside: few outliers would shrink the others to a spot."""
    if len(points) <= 2000:
        return
    low, high = np.quantile(points[:, :2], (0.0025, 0.9975), axis=0)
    room = 0.08 * (high - low)
    ax.set_xlim(low[0] - room[0], high[0] + room[0])
    ax.set_ylim(low[1] - room[1], high[1] + room[1])


def legend(on: Problem) -> list[Line2D]:
    (hue, labels), *rest = on.structure.items()
    handles = [mark(f"{hue} {name}", PALETTE[i], "o") for i, name in enumerate(names_of(on, labels))]
    for name, values in rest:
        handles += [mark(f"{name} {one}", INK, "o", filled=bool(i)) for i, one in enumerate(np.unique(values))]
    if len(np.unique(on.known)) <= len(SHAPES):
        handles += [
            mark(f"{KNOWN.get(on.name, 'known')} {name}", "#777777", SHAPES[i])
            for i, name in enumerate(np.unique(on.known))
        ]
    return handles


def mark(name: str, hue: str, shape: str, *, filled: bool = True) -> Line2D:
    face = hue if filled else "none"
    return Line2D([], [], linestyle="", marker=shape, markersize=6, color=hue, markerfacecolor=face, label=name)


def names_of(on: Problem, labels: np.ndarray) -> list[str]:
    if not on.is_images:
        return [str(one) for one in np.unique(labels)]
    clothes = sources("mnist")[0]
    return [str(clothes.labels["class_name"][np.argmax(clothes.labels["class"] == one)]) for one in np.unique(labels)]


def codes(labels: np.ndarray) -> np.ndarray:
    return np.unique(labels, return_inverse=True)[1]


def superimposed(ax: Any, on: Problem) -> None:
    """One row of the data as an image."""
    ax.imshow(on.X[0].reshape(28, 28), cmap="gray_r")
    ax.set_axis_off()
    name = on.name.replace("mnist ", "MNIST +\n").replace("cifar ", "CIFAR-100 +\n")
    ax.set_title(name, fontsize=TITLE_SIZE, color=INK)


def examples(run: Run, file: str, pairs: Sequence[tuple[str, str, str]]) -> None:
    """How a row comes to be: a background image, a piece of clothing, their sum; `pairs` are (kind, one, other)."""
    figure = blank_figure(1.9 * 3, 1.9 * len(pairs))
    panels = figure.subplots(len(pairs), 3, squeeze=False)
    for line, (kind, known, worn) in zip(panels, pairs, strict=True):
        clothes, background = sources(kind)
        below, above = first_of(background, known), first_of(clothes, worn)
        titles = (known, worn, f"{known} + {worn}")
        for ax, image, title in zip(line, (below, above, below + above), titles, strict=True):
            ax.imshow(image.reshape(28, 28), cmap="gray_r")
            ax.set_axis_off()
            ax.set_title(title, fontsize=LABEL_SIZE, color=INK)
    write(run, figure, file)


def first_of(data: datasets.Dataset, name: str) -> np.ndarray:
    """The first image of a class, as floats: uint8 would wrap in the sum."""
    return data.X[int(np.argmax(np.asarray(data.labels["class_name"]).astype(str) == name))].astype(np.float64)


def exploration(run: Run, file: str, n_steps: int = 4) -> None:
    """The first steps on Image Segmentation: known and unexplored rows, the clusters found, the true classes."""
    data = datasets.fetch_image_segmentation()
    classes = np.asarray(data.labels["class_name"]).astype(str)
    names = np.unique(classes)
    estimator = IMAPCE(alpha=1.0, mu=1e5)
    session = Exploration(data.X, estimator=estimator, method="paper", min_cluster_size=75, random_state=0)
    figure = blank_figure(INCHES * n_steps + 1.7, INCHES * 3 + 0.4)
    panels = figure.subplots(3, n_steps, squeeze=False)
    for number, (top, middle, bottom) in enumerate(panels.T):
        step = session.propose()
        points, rest, found = step.embedding, step.unexplored, step.clusters
        known = Group(~rest, KNOWN_GREY, 1.0)
        clusters = [Group(found == one, cluster_hue(one)) for one in range(int(found.max()) + 1)]
        draw_groups(top, points, [known, Group(rest, INK)])
        draw_groups(middle, points, [known, Group(rest & (found < 0), "#9A9A9A", 1.5), *clusters])
        for cluster in step.most_distinct:
            encircle(middle, points, np.flatnonzero(found == cluster), cluster)
        by_class = [Group(rest & (classes == name), PALETTE[place]) for place, name in enumerate(names)]
        draw_groups(bottom, points, [known, *by_class])
        for ax, title in ((top, f"Step {number + 1}"), (middle, None), (bottom, None)):
            quiet_axes(ax, "", "", title=title)
            ax.set_aspect("auto")
            ax.tick_params(labelbottom=False, labelleft=False)
        session.accept()
    for ax, title in zip(panels[:, 0], ("known, unexplored", "clusters found", "true classes"), strict=True):
        ax.set_ylabel(title, fontsize=TITLE_SIZE, color=INK)
    handles = [mark(name.capitalize(), PALETTE[place], "o") for place, name in enumerate(names)]
    figure.legend(handles=handles, loc="outside right lower", frameon=False, fontsize=LABEL_SIZE, labelcolor=INK)
    write(run, figure, file)


def write(run: Run, figure: Figure, file: str) -> None:
    run.folder.mkdir(parents=True, exist_ok=True)
    for kind in ("png", "pdf"):
        save_figure(figure, run.folder / f"{file}.{kind}")
    run.note(f"{file}.png, {file}.pdf")
