"""A label known: `python -m experiments known [--quick]`. What else is seen, and what of the known is left.

Twelve stories (`stories.py`): views and explorations beside class means subtracted, Harmony and PCA; random labels,
which must cost nothing; and the two doors by which a category may be told. Prints every block and writes them as
known.md and known.csv. What is wanted stands beside what is seen; nothing is asserted. Quickly: the stories of at most
600 rows, one draw of random labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import normalized_mutual_info_score as nmi

from experiments import correcting, known_cells, table_suite
from experiments.results import Row
from experiments.running import Run
from experiments.stories import STORIES, Story, tell
from experiments.table_blocks import Block, Cell, Wanted, mean, wanted_block, write

OURS, MEANS, HARMONY, PCA = "ours", "class means + PCA", "Harmony + PCA", "PCA"
PLAIN = {MEANS: correcting.MEANS, HARMONY: correcting.HARMONY, PCA: correcting.NOTHING}
SCORES = ("content", "within", "read back")
SMALL_STORY = 600
# Of the tables of at most so many rows, by name, every second one: ten of the twenty.
RANDOM_ROWS = 1_100
RANDOM_CLASSES = (2, 8)
DRAWS = 3
DOORS = (("crabs", "sex"), ("penguins", "sex"), ("penguins", "class"), ("olive", "region"), ("mouse", "genotype"))


def known(run: Run) -> list[Row]:
    """All blocks, then the acceptance; no `Row`, as there is no number of the paper to stand beside."""
    stories = [tell(*names) for names in STORIES]
    if run.quick:
        stories = [one for one in stories if len(one.X) <= SMALL_STORY]
    views, of_views = _views(run, stories)
    explored, of_explored = _explorations(run, stories)
    chance, of_chance = _random_labels(run)
    doors, of_doors = _doors(run)
    blocks = [*views, *explored, *chance, doors, wanted_block([*of_views, *of_explored, *of_chance, *of_doors])]
    for block in blocks:
        block.show(run.console)
    if lacking := correcting.missing((correcting.HARMONY,)):
        run.console.print(lacking, highlight=False, markup=False, soft_wrap=True)
    write("known", blocks, run.results)
    return []


def _views(run: Run, stories: list[Story]) -> tuple[list[Block], list[Wanted]]:
    plain = {title: way for title, way in PLAIN.items() if correcting.is_installed(way)}
    found: dict[str, list[dict[str, float]]] = {title: [] for title in (OURS, *plain)}
    for story in stories:
        found[OURS].append(known_cells.our_view(run, story))
        for title, way in plain.items():
            found[title].append(known_cells.plain_view(run, story, way))
        last = "; ".join(f"{title} " + " ".join(f"{one[-1][s]:.3f}" for s in SCORES) for title, one in found.items())
        run.note(f"{story.title}: {last}")
    blocks = []
    for score in SCORES:
        rows: list[list[Cell]] = [
            [story.title, *(found[title][place][score] for title in found)] for place, story in enumerate(stories)
        ]
        rows.append(["mean", *(mean([one[score] for one in cells]) for cells in found.values())])
        blocks.append(Block(f"A label known, views: {TITLES[score]}", ("story", *found), rows))
    means = {score: mean([one[score] for one in found[OURS]]) for score in SCORES}
    lines = [
        Wanted("views: 15-NN of what is looked for, mean", 0.83, means["content"]),
        Wanted("views: the same within the classes of the known, mean", 0.85, means["within"]),
        Wanted("views: the known read back, mean", 0.64, means["read back"], True),
    ]
    rivals = [title for title in (MEANS, HARMONY) if title in found]
    behind = [
        story.title
        for place, story in enumerate(stories)
        if any(_less(found[OURS][place]["content"], found[title][place]["content"]) for title in rivals)
    ]
    what = f"stories of {len(stories)} at or above {' and '.join(rivals)}"
    lines.append(Wanted(what, 10, float(len(stories) - len(behind)), where="below: " + "; ".join(behind)))
    return blocks, lines


TITLES = {
    "content": "15-NN accuracy of what is looked for",
    "within": "the same within the classes of the known",
    "read back": "15-NN accuracy of the known (explained away, not chased)",
}


def _less(one: float, other: float) -> bool:
    """By the figures as they are printed."""
    return round(one, 3) < round(other, 3)


def _explorations(run: Run, stories: list[Story]) -> tuple[list[Block], list[Wanted]]:
    with_harmony = correcting.is_installed(correcting.HARMONY)
    rows: list[list[Cell]] = []
    alone: list[list[Cell]] = []
    for story in stories:
        labels = known_cells.our_clusters(run, story)
        free = known_cells.our_clusters(run, story, knowing=False)
        theirs = known_cells.harmony_clusters(run, story) if with_harmony else None
        rows.append(
            [
                story.title,
                float(nmi(story.looked_for, labels)),
                None if theirs is None else float(nmi(story.looked_for, theirs)),
                float(nmi(story.looked_for, free)),
                float(nmi(story.known, labels)),
                None if theirs is None else float(nmi(story.known, theirs)),
                float(nmi(story.known, free)),
                len(np.unique(labels[labels >= 0])),
            ]
        )
        alone += [
            [f"{story.title}, cluster {one[0]}", *one[1:]]
            for one in of_one_class(labels, story.known, story.looked_for)
        ]
        run.note(f"{story.title}: NMI {rows[-1][1]:.3f}, with the known {rows[-1][4]:.3f}, {rows[-1][7]} clusters")
    means = [mean([float(row[j]) for row in rows if row[j] is not None]) for j in range(1, 8)]
    rows.append(["mean", *means])
    head = (
        "story",
        *(f"{kind}: {way}" for kind in ("other", "known") for way in ("ours", "Harmony + mixture", "free")),
    )
    note = "Free: ours with nothing known. Rows never taken are one more cluster."
    lines = [
        Wanted("explorations: NMI with what is looked for, mean", 0.62, means[0]),
        Wanted("explorations: NMI with the known, mean", 0.13, means[3], True),
    ]
    return [
        Block("A label known, explorations: NMI of the clusters", (*head, "clusters: ours"), rows, note),
        Block(
            "Clusters that are one class of the known only",
            ("story", "rows", "class of the known", "mostly"),
            alone,
            "A cell type that only one run holds is rightly of one run only.",
        ),
    ], lines


def of_one_class(labels: Any, known: Any, looked_for: Any) -> list[list[Cell]]:
    """Cluster, rows, the one class of the known it is of, and the class looked for that most of it are.

    >>> of_one_class([0, 0, 1, 1], list("aaab"), list("xxyx"))
    [[0, 2, 'a', 'x (100%)']]
    """
    labels, known, looked_for = np.asarray(labels), np.asarray(known), np.asarray(looked_for)
    found: list[list[Cell]] = []
    for cluster in np.unique(labels[labels >= 0]):
        inside = labels == cluster
        if len(np.unique(known[inside])) > 1:
            continue
        names, counts = np.unique(looked_for[inside], return_counts=True)
        most = f"{names[counts.argmax()]} ({counts.max() / inside.sum():.0%})"
        found.append([int(cluster), int(inside.sum()), str(known[inside][0]), most])
    return found


def random_tables() -> list[str]:
    """Ten of the 27 tables: of those of at most 1,100 rows, in the order of their names, every second one."""
    return sorted(name for name in table_suite.NUMERIC if len(table_suite.read(name).X) <= RANDOM_ROWS)[::2]


def _random_labels(run: Run) -> tuple[list[Block], list[Wanted]]:
    """A label that says nothing: views and clusters must be those with nothing known."""
    draws = run.seeds or (1 if run.quick else DRAWS)
    rows: list[list[Cell]] = []
    for table in map(table_suite.read, random_tables()):
        free = known_cells.with_random_label(run, table, 0, 0)
        for count in RANDOM_CLASSES:
            drawn = [known_cells.with_random_label(run, table, count, draw) for draw in range(draws)]
            view, clusters = (mean([one[key] for one in drawn]) for key in ("view", "clusters"))
            rows.append(
                [
                    f"{table.name}, {count} classes",
                    *(free["view"], view, view - free["view"]),
                    *(free["clusters"], clusters, clusters - free["clusters"]),
                ]
            )
            run.note(
                f"{table.name}, {count} random classes: view {view - free['view']:+.3f}, clusters {rows[-1][6]:+.3f}"
            )
    means = [mean([float(row[j]) for row in rows]) for j in range(1, 7)]
    rows.append(["mean", *means])
    ways = ("free", "random label", "difference")
    head = ("table", *(f"{score}: {way}" for score in ("view", "NMI") for way in ways))
    note = f"{draws} drawn labels each; tables: of those of at most {RANDOM_ROWS:,} rows, by name, every second one."
    lines = [
        Wanted("random label known: views, size of the mean difference", 0.01, abs(means[2]), True, f"{means[2]:+.3f}"),
        Wanted("random label known: NMI, size of the mean difference", 0.01, abs(means[5]), True, f"{means[5]:+.3f}"),
    ]
    return [Block("A random label known: 15-NN and NMI of the class", head, rows, note)], lines


def _doors(run: Run) -> tuple[Block, list[Wanted]]:
    """A category told as a column and as a label: one answer."""
    rows: list[list[Cell]] = []
    angles, apart = [], []
    for name, category in DOORS:
        table = table_suite.read(name)
        cell = known_cells.doors(run, table, category)
        angles.append(cell["angle"])
        apart.append(1 - cell["agreement"])
        rows.append([f"{name}, {category}", f"{cell['angle']:.1e}", f"{apart[-1]:.1e}"])
        run.note(f"{name}, {category}: {cell['angle']:.1e} degrees, 1 - ARI {apart[-1]:.1e}")
    rows.append(["largest", f"{max(angles):.1e}", f"{max(apart):.1e}"])
    head = ("known", "largest angle of the views, degrees", "1 − ARI of the clusters")
    lines = [
        Wanted("Attributes(column) and Labels(column): degrees between views", 1e-3, max(angles), True),
        Wanted("Attributes(column) and Labels(column): 1 − ARI of the clusters", 0.0, max(apart), True),
    ]
    return Block("Two doors: Attributes(column) and Labels(column)", head, rows), lines
