"""What a command shows in a terminal: progress while it works, its numbers in words when it is done.

with fit_progress() as watch:
    model = IMAPCE(verbose=watch).fit(X)
print_model(Console(), model)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBar
from rich.table import Table
from rich.text import Text

from imapce.comparison.compare import Comparison
from imapce.comparison.scores import Score
from imapce.estimators.imapce import IMAPCE
from imapce.estimators.model_file import MODEL_VERSION
from imapce.exploration.session import Exploration
from imapce.search.solution import Progress

STRONGEST = 8
MOST_OPTIMA = 6


@contextmanager
def fit_progress() -> Iterator[Callable[[Progress], None] | bool]:
    """What to pass as `verbose`: a line on stderr that follows the search, or False where nobody watches."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield False
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with ProgressBar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("reading the rows")

        def watch(progress: Progress) -> None:
            best = f"best objective {progress.best:.8g}"
            bar.update(task, description=f"round {progress.round}, {progress.running} starts running, {best}")

        yield watch


@contextmanager
def exploration_progress() -> Iterator[Callable[[str, float | None], None] | None]:
    """Told the words of an exploration and the share of rows explored: a bar on stderr; None where nobody watches."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (BarColumn(), TaskProgressColumn(), TextColumn("of the rows explored; {task.description}"))
    with ProgressBar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("exploring", total=1.0)

        def watch(words: str, share: float | None) -> None:
            bar.update(task, completed=share or 0.0, description=words)

        yield watch


def strongest_features(model: IMAPCE, most: int = STRONGEST) -> list[dict[str, Any]]:
    """The features with the largest share of the view: name, weight on every axis and share, largest first."""
    share = np.mean(model.components_**2, axis=0)
    return [
        {
            "feature": str(model.encoded_feature_names_[place]),
            "weights": [float(weight) for weight in model.components_[:, place]],
            "share": float(share[place]),
        }
        for place in np.argsort(-share, kind="stable")[:most]
    ]


def model_facts(model: IMAPCE) -> dict[str, Any]:
    """All that a model file tells, as plain values that JSON can hold."""
    parameters = {name: value for name, value in model.get_params().items() if name != "verbose"}
    return {
        "format_version": MODEL_VERSION,
        "parameters": parameters,
        "fitted": {
            "alpha": model.alpha_ if np.isfinite(model.alpha_) else "inf",
            "mu": model.mu_,
            "objective": model.objective_,
            "kurtosis": model.kurtosis_,
            "outliers": [int(row) for row in model.outliers_],
            "explained_variance_ratio": [float(ratio) for ratio in model.explained_variance_ratio_],
            "iterations": model.n_iter_,
            "evaluations": model.n_evaluations_,
            "stop_reason": model.stop_reason_,
        },
        "columns": None if model.input_columns is None else list(model.input_columns),
        "n_features": len(model.encoded_feature_names_),
        "strongest_features": strongest_features(model),
        "optima": [
            {"objective": optimum.objective, "kurtosis": optimum.kurtosis, "starts": optimum.starts}
            for optimum in model.optima_
        ],
    }


def facts_table(facts: Mapping[str, str]) -> Table:
    """Names and values side by side, without rules; long values wrap."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        # Text, since a file or column name may hold what Rich takes for markup.
        table.add_row(name, Text(value))
    return table


def print_written(console: Console, written: Mapping[str, str]) -> None:
    """One line per file, however long its path: a path broken over lines cannot be copied."""
    console.print()
    for kind, path in written.items():
        line = Text.assemble((f"{kind} written", "bold"), f"  {path}")
        console.print(line, soft_wrap=True)
    if not written:
        console.print("no file written; name one with -o to keep the view")


def fit_facts(model: IMAPCE) -> dict[str, str]:
    """The fitted numbers in words."""
    rule = f" (rule {model.mu!r})" if isinstance(model.mu, str) else ""
    chosen = f" (rule {model.alpha!r})" if isinstance(model.alpha, str) else ""
    variance = ", ".join(f"{100 * ratio:.1f} %" for ratio in model.explained_variance_ratio_)
    return {
        "alpha": f"{model.alpha_:g}{chosen}",
        "mu": f"{model.mu_:.6g}{rule}",
        "objective": f"{model.objective_:.8g}",
        "kurtosis": f"{model.kurtosis_:.4f}",
        "variance kept": f"{variance} on the {len(model.components_)} axes",
        "outliers": f"{len(model.outliers_):,} rows set aside",
        "search": model.stop_reason_,
    }


def print_model(console: Console, model: IMAPCE) -> None:
    """The strongest features with their weights, and the other optima that the search found."""
    weights = Table(title="strongest features", title_justify="left", title_style="bold", box=None, pad_edge=False)
    weights.add_column("feature", overflow="fold")
    for axis in range(len(model.components_)):
        weights.add_column(f"imapce{axis}", justify="right", no_wrap=True)
    weights.add_column("share", justify="right", no_wrap=True)
    for entry in strongest_features(model):
        cells = [f"{weight:+.3f}" for weight in entry["weights"]]
        weights.add_row(Text(entry["feature"]), *cells, f"{100 * entry['share']:.1f} %")
    console.print()
    console.print(weights)
    rest = model.optima_[1:]
    console.print()
    if not rest:
        console.print("other optima: none, every start that stayed in the search ended at this view")
        return
    optima = Table(title="other optima found", title_justify="left", title_style="bold", box=None, pad_edge=False)
    for heading in ("objective", "kurtosis", "starts"):
        optima.add_column(heading, justify="right", no_wrap=True)
    for optimum in rest[:MOST_OPTIMA]:
        optima.add_row(f"{optimum.objective:.8g}", f"{optimum.kurtosis:.4f}", str(optimum.starts))
    console.print(optima)
    if len(rest) > MOST_OPTIMA:
        console.print(f"and {len(rest) - MOST_OPTIMA} more")


def print_exploration(console: Console, exploration: Exploration, words: list[str]) -> None:
    """The clusters an exploration took, what sets each apart, and why it stopped."""
    labels = exploration.labels_
    taken, start = int((labels >= 0).sum()), int(exploration.known.sum()) - int((labels >= 0).sum())
    facts = {
        "rows": f"{len(labels):,}",
        "known at the start": "; ".join(words) or (f"{start:,} rows" if start else "nothing"),
        "taken": f"{taken:,} rows in {len(exploration.clusters_)} clusters, {len(exploration.steps)} steps",
        "not taken": f"{len(labels) - taken - start:,} rows",
    }
    if exploration.structure is not None and exploration.structure.clear:
        facts["structure"] = exploration.structure.words
    facts["end"] = exploration.stop_reason or "not finished; go on with more steps"
    console.print(facts_table(facts))
    if not exploration.clusters_:
        return
    table = Table(title="clusters", title_justify="left", title_style="bold", box=None, pad_edge=False)
    tested = any(step.p_value is not None for step in exploration.steps)
    for heading in ("cluster", "step", "rows", "distinctness", *(("p",) if tested else ())):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("set apart by (difference in standard deviations)", overflow="fold")
    for number, (cluster, place) in enumerate(zip(exploration.clusters_, exploration.origins_, strict=True)):
        apart = ", ".join(f"{feature.name} {feature.difference:+.1f}" for feature in cluster.features[:4])
        hand = "by hand" if cluster.chosen == "hand" else ""
        distinct = hand if cluster.distinctness is None else f"{cluster.distinctness:.1f}"
        p = None if place is None else exploration.steps[place].p_value
        p_value = ["" if p is None else f"{p:.2g}"] if tested else []
        step = "regrouped" if place is None else str(place)
        table.add_row(str(number), step, f"{cluster.size:,}", distinct, *p_value, Text(apart))
    console.print()
    console.print(table)


def print_comparison(console: Console, comparison: Comparison) -> None:
    """The scores of every method, why the others were left out, and how to read both."""
    # Single spaces: the longest names and numbers just fit into the 80 columns of a plain terminal.
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("method", no_wrap=True)
    for heading in ("rows", "NLS (chance)", "read back", "15-NN", "NMI", "silh.", "trust", "s"):
        table.add_column(heading, justify="right", no_wrap=True)
    for result in comparison.worked:
        scores = result.scores
        readers = [score for score in (scores["prior_linear"], scores["prior_knn"]) if score is not None]
        structure = [scores[name] for name in ("knn_accuracy", "kmeans_nmi", "silhouette", "trustworthiness")]
        table.add_row(
            Text(result.method.title),
            "" if result.rows is None else f"{len(result.rows):,}",
            _beside_chance(scores["nls"], scores["nls_ceiling"]),
            _beside_chance(max(readers, default=None), scores["prior_chance"]),
            *("–" if score is None else f"{score:.2f}" for score in structure),
            f"{result.seconds or 0.0:.2f}",
        )
    console.print()
    console.print(table)
    console.print()
    sentences = [f"{one.method.title} is left out. {one.left_out}" for one in comparison.results if one.left_out]
    sentences += [remark for one in comparison.results for remark in one.remarks]
    for sentence in [*comparison.notes, *sentences]:
        console.print(Text(sentence))


def _beside_chance(score: Score, chance: Score) -> str:
    return "–" if score is None or chance is None else f"{score:.2f} ({chance:.2f})"
