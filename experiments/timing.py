"""Table 2: seconds of each method on each problem, measured by themselves: nothing else should run beside them."""

from __future__ import annotations

from dataclasses import replace

from experiments import paper
from experiments.methods import CPCA, CT_SNE, FAIR, IMAPCE_PAPER, PCA, Method, view
from experiments.problems import TABLE_1
from experiments.results import Row
from experiments.running import Run


def timing(run: Run) -> list[Row]:
    """The paper's times are of another machine: the ratios between methods are what can be compared."""
    return [
        row
        for name in TABLE_1
        for method in (PCA, CPCA, CT_SNE, FAIR, IMAPCE_PAPER)
        for row in timed(run, name, method)
    ]


def timed(run: Run, name: str, method: Method) -> list[Row]:
    on = run.problem(name)
    # A name of its own keeps these cells apart from the views, which may have been made with other work beside them.
    apart = replace(on, name=f"{name}, timed")
    once = on.is_images and method in (CT_SNE, FAIR)
    if not run.quick:
        view(run.cells, method, replace(on.sample(300), name=f"{name}, warm-up"), 0)
    seconds = [view(run.cells, method, apart, seed)["seconds"] for seed in range(1 if run.quick or once else 3)]
    run.note(f"{name} · {method.name}: {min(seconds):.2f} s")
    printed = paper.SECONDS[name][paper.METHODS.index(method.column or "")]
    rows = f"{len(on.X):,} rows, {len(seconds)} times"
    return [Row(name, method.name, "seconds", printed, seconds, rows)]
