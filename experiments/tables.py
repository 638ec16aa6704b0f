"""Everyday tables: `python -m experiments tables [--quick]`. Ours beside what people do without us, on 33 tables.

Prints every block and writes them all as tables.md and tables.csv. What is wanted stands beside what is seen;
nothing is asserted. Quickly: one seed, three tables of each kind of noise and of what is planted, one pair for
stability, five generated tables and one wide one, rules on small tables only, no picture by UMAP and no constants.
"""

from __future__ import annotations

from experiments import (
    table_constants,
    table_explorations,
    table_generated,
    table_known,
    table_noise,
    table_planted,
    table_stability,
    table_views,
)
from experiments.results import Row
from experiments.running import Run
from experiments.table_blocks import wanted_block, write

SEEDS = 3


def tables(run: Run) -> list[Row]:
    """All blocks, then the acceptance; no `Row`, as there is no number of the paper to stand beside."""
    seeds = run.seeds or (1 if run.quick else SEEDS)
    explored = table_explorations.measure(run, seeds)
    noise, of_noise = table_noise.measure(run)
    planted, of_planted = table_planted.measure(run)
    stable, of_stable = table_stability.measure(run)
    seen = table_views.measure(run, seeds)
    nuisance, of_nuisance = table_views.nuisance(run, seeds)
    known, of_known = table_known.class_known(run)
    adult, of_adult = table_known.adult(run)
    generated, of_generated = table_generated.measure(run)
    rules = table_explorations.rules(run, seeds)
    constants, of_constants = ([], []) if run.quick else table_constants.measure(run)
    lines = [
        *table_explorations.wanted(explored),
        *of_noise,
        *of_planted,
        *of_stable,
        *table_views.wanted(seen),
        *of_nuisance,
        *of_known,
        *of_adult,
        *of_generated,
        *of_constants,
    ]
    blocks = [
        *table_explorations.blocks(explored),
        *noise,
        planted,
        stable,
        *table_views.blocks(seen),
        nuisance,
        known,
        adult,
        *generated,
        rules,
        *constants,
        wanted_block(lines),
    ]
    for block in blocks:
        block.show(run.console)
    write("tables", blocks, run.results)
    return []
