"""What a command shows when it is done: its numbers in words, or as plain values for JSON.

print_model(Console(), model)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from imapce.choice.read_back import how_it_ended, told_by
from imapce.cli.messages import in_own_words
from imapce.clusters.structure import Structure
from imapce.common.words import axis_names, counted, given, listing
from imapce.comparison.compare import Comparison
from imapce.comparison.scores import Score
from imapce.estimators.imapce import IMAPCE
from imapce.estimators.model_file import MODEL_VERSION
from imapce.exploration.record import AcceptedStep, Move, clusters_after, origins_after
from imapce.exploration.session import Exploration
from imapce.exploration.verdict import told_structure, verdict_in_words
from imapce.priors.effect import explained_away, strongest

STRONGEST = 8
MOST_OPTIMA = 6
# What optima are compared by, and what it is called here.
COMPARED = {"seen": "clusters seen", "kept": "neighbourhoods kept", "score": "score"}


def strongest_features(model: IMAPCE, most: int = STRONGEST) -> list[dict[str, Any]]:
    """The features with the largest share of the view: name, weight on every axis and share, largest first.

    What was explained away is none of them.
    """
    share = np.mean(model.components_**2, axis=0)
    return [
        {
            "feature": str(model.encoded_feature_names_[place]),
            "weights": [float(weight) for weight in model.components_[:, place]],
            "share": float(share[place]),
        }
        for place in strongest(model, most)
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
            # A file of a model need not tell it.
            "clusters": getattr(model, "n_clusters_", None),
            "explained_away": explained_away(model),
            "read_back": model.read_back_,
        },
        "columns": None if model.input_columns is None else list(model.input_columns),
        "n_features": len(model.encoded_feature_names_),
        "strongest_features": strongest_features(model),
        "optima": [
            {name: getattr(optimum, name) for name in ("mu", "objective", "kurtosis", "starts", *COMPARED)}
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
        console.print("no file written; name one with -o to keep the result")


def fit_facts(model: IMAPCE) -> dict[str, str]:
    """The fitted numbers in words."""
    rule = f" (rule {model.mu!r})" if isinstance(model.mu, str) else ""
    chosen = f" (rule {model.alpha!r})" if isinstance(model.alpha, str) else ""
    variance = ", ".join(f"{100 * ratio:.1f} %" for ratio in model.explained_variance_ratio_)
    known, read = explained_away(model), told_by(model)
    facts: dict[str, str] = {"explained away": listing(known, 10)} if known else {}
    if read is not None:
        facts["known read back"] = read.sentence
    return facts | {
        "alpha": f"{model.alpha_:g}{chosen}" if np.isfinite(model.alpha_) else f"nothing is weighed{chosen}",
        "mu": f"{model.mu_:.6g}{rule}",
        "objective": f"{model.objective_:.8g}",
        "kurtosis": f"{model.kurtosis_:.4f}",
        "variance kept": f"{variance} on {' and '.join(axis_names(len(model.components_)))}",
        "outliers": f"{counted(len(model.outliers_), 'row')} set aside" if len(model.outliers_) else "none set aside",
        "search": how_it_ended(model),
    }


def print_model(console: Console, model: IMAPCE) -> None:
    """The strongest features with their weights, and the other optima that the search found."""
    # A line of its own: the title of a table breaks where the table is narrower.
    heading = Text(given("strongest features", explained_away(model)), style="bold")
    weights = Table(box=None, pad_edge=False)
    weights.add_column("feature", overflow="fold")
    for axis in axis_names(len(model.components_)):
        weights.add_column(axis, justify="right", no_wrap=True)
    weights.add_column("share", justify="right", no_wrap=True)
    for entry in strongest_features(model):
        cells = [f"{weight:+.3f}" for weight in entry["weights"]]
        weights.add_row(Text(entry["feature"]), *cells, f"{100 * entry['share']:.1f} %")
    console.print()
    console.print(heading)
    console.print(weights)
    rest = model.optima_[1:]
    console.print()
    if not rest:
        console.print("other optima: none, every start that stayed in the search ended at this view")
        return
    optima = Table(title="other optima found", title_justify="left", title_style="bold", box=None, pad_edge=False)
    # Where α and μ were given nothing was compared.
    by = rest[0].compared_by
    for name in ("mu", "objective", "kurtosis", "starts", *([] if by is None else [COMPARED[by]])):
        optima.add_column(name, justify="right", no_wrap=True)
    for optimum in rest[:MOST_OPTIMA]:
        told = [] if by is None else [f"{getattr(optimum, by):.3f}"]
        numbers = (f"{optimum.mu:.4g}", f"{optimum.objective:.8g}", f"{optimum.kurtosis:.4f}", str(optimum.starts))
        optima.add_row(*numbers, *told)
    console.print(optima)
    if len(rest) > MOST_OPTIMA:
        console.print(f"and {len(rest) - MOST_OPTIMA} more")


def print_exploration(console: Console, exploration: Exploration, words: list[str]) -> None:
    """The clusters an exploration took, what sets each apart, and why it stopped."""
    labels = exploration.labels_
    taken, start = int((labels >= 0).sum()), int(exploration.known.sum()) - int((labels >= 0).sum())
    facts = {
        "rows": f"{len(labels):,}",
        "known at the start": "; ".join(words) or (counted(start, "row") if start else "nothing"),
        "taken": f"{counted(taken, 'row')} in {counted(len(exploration.clusters_), 'cluster')}, "
        f"{counted(len(exploration.steps), 'step')}",
        "not taken": counted(len(labels) - taken - start, "row"),
    }
    found = exploration.structure
    if told := exploration.caveat or (verdict_in_words(found) if found is not None and found.is_taken else ""):
        facts["structure"] = told
    facts["end"] = in_own_words(exploration.stop_reason or "not finished; go on with more steps")
    console.print(facts_table(facts))
    if not exploration.clusters_:
        return
    print_clusters(console, exploration.moves)


def exploration_facts(exploration: Exploration, words: list[str]) -> dict[str, Any]:
    """The same as plain values that JSON can hold."""
    labels = exploration.labels_
    taken = int((labels >= 0).sum())
    start = int(exploration.known.sum()) - taken
    return {
        "rows": len(labels),
        "known": words,
        "known_rows": start,
        "taken_rows": taken,
        "rows_left": len(labels) - taken - start,
        "structure": structure_facts(exploration.structure),
        "stop_reason": None if exploration.stop_reason is None else in_own_words(exploration.stop_reason),
        "steps": len(exploration.steps),
        "clusters": cluster_facts(exploration.moves),
    }


def structure_facts(structure: Structure | None) -> dict[str, Any] | None:
    """The verdict, why, the tests and the sizes of the best split, as plain values; None where nobody knows.

    >>> structure_facts(Structure("none", "z = 0.3"))
    {'verdict': 'none', 'words': 'z = 0.3', 'evidence': [], 'best_split': None}
    """
    if structure is None:
        return None
    best = structure.candidate
    return {**told_structure(structure), "best_split": None if best is None else best.sizes}


def cluster_facts(moves: Sequence[Move]) -> list[dict[str, Any]]:
    """Every cluster as it is after some moves: its step (None: regrouped), size, how distinct and stable it is."""
    steps = [move for move in moves if isinstance(move, AcceptedStep)]
    return [
        {
            "cluster": cluster.number,
            "step": place,
            "rows": cluster.size,
            "distinctness": cluster.distinctness,
            "stability": cluster.stability,
            "p_value": None if place is None else steps[place].p_value,
            "chosen": cluster.chosen,
            "features": [{"feature": one.name, "difference": one.difference} for one in cluster.features],
        }
        for cluster, place in zip(clusters_after(moves), origins_after(moves), strict=True)
    ]


def print_clusters(console: Console, moves: Sequence[Move]) -> None:
    """The clusters that were taken, one line each."""
    table = Table(title="clusters", title_justify="left", title_style="bold", box=None, pad_edge=False)
    clusters = cluster_facts(moves)
    tested = any(told["p_value"] is not None for told in clusters)
    drawn = any(told["stability"] is not None for told in clusters)
    headings = (
        "cluster",
        "step",
        "rows",
        "distinctness",
        *(("stability",) if drawn else ()),
        *(("p",) if tested else ()),
    )
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("set apart by (difference in standard deviations)", overflow="fold")
    for told in clusters:
        apart = ", ".join(f"{one['feature']} {one['difference']:+.1f}" for one in told["features"][:4])
        hand = "by hand" if told["chosen"] == "hand" else ""
        distinct = hand if told["distinctness"] is None else f"{told['distinctness']:.1f}"
        p_value = ["" if told["p_value"] is None else f"{told['p_value']:.2g}"] if tested else []
        stable = ["" if told["stability"] is None else f"{round(10 * told['stability'])} of 10"] if drawn else []
        step = "regrouped" if told["step"] is None else str(told["step"])
        table.add_row(str(told["cluster"]), step, f"{told['rows']:,}", distinct, *stable, *p_value, Text(apart))
    console.print()
    console.print(table)
    if drawn:
        console.print(Text("stability: in how many of ten draws of 80 % of the rows the cluster was found again"))


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
