"""Explorations of the suite's tables to their end, beside plain clusterings: NMI, ARI, clusters, verdict, seconds."""

from __future__ import annotations

from typing import Any

from experiments import rivals, table_suite
from experiments.running import Run
from experiments.table_blocks import Block, Cell, Wanted, mean, rules_block
from experiments.table_cells import Scores, explored, plainly_clustered, scored
from imapce.estimators.imapce import IMAPCE

OURS = "ours"
PAPER = "the paper's way"
# Rules that have variants, by what they set; the default is among them. A new rule is one more line.
RULES: dict[str, dict[str, Any]] = {
    "clusterer='joint'": {"clusterer": "joint"},
    "clusterer='dpgmm'": {"clusterer": "dpgmm"},
    "clusterer='dpgmm', refine=False": {"clusterer": "dpgmm", "refine": False},
}
SMALL_TABLE = 600
SCORES = ("nmi", "ari", "clusters", "agreement", "seconds")
# {group: {score: what is wanted of its mean}}, and how far above the best rival not told k it is wanted.
WANTED_MEANS = {"development": {"nmi": 0.65, "ari": 0.60}, "added": {"nmi": 0.73, "ari": 0.66}, "mixed": {}}
WANTED_ABOVE = {"development": 0.03, "added": 0.03, "mixed": 0.0}
FAR_BELOW, MOST_FAR_BELOW = 0.1, 2

Found = dict[str, dict[str, Scores]]


def measure(run: Run, seeds: int) -> Found:
    """{method: {table: scores}} of ours, the paper's way and every rival that is installed."""
    found: Found = {method: {} for method in (OURS, PAPER, *rivals.rivals_of(mixed=True))}
    for table in map(table_suite.read, table_suite.NAMES):
        mixed = table.mixed is not None
        for method in (OURS, PAPER, *rivals.rivals_of(mixed)):
            if method in rivals.CLUSTERERS:
                cells = [plainly_clustered(run, table, method, seed) for seed in range(seeds)]
            else:
                options = paper_options(mixed) if method == PAPER else {}
                cells = [explored(run, table, method, options, seed) for seed in range(seeds)]
            scores = found[method][table.name] = scored(cells, table.classes)
            run.note(f"{table.name} · {method}: NMI {scores.nmi:.3f}, ARI {scores.ari:.3f}, {scores.seconds:.1f} s")
    return found


def paper_options(mixed: bool) -> dict[str, Any]:
    """The paper's way; of a mixed table with means for holes, which the paper does not speak of."""
    if not mixed:
        return {"method": "paper"}
    return {"method": "paper", "estimator": IMAPCE(alpha=1.0, mu="paper", outliers="keep", missing="mean")}


def of_group(found: Found, group: str) -> Found:
    """What was found in the tables of one group, by the methods that were tried on them."""
    names = table_suite.GROUPS[group]
    inside = {method: {one: tables[one] for one in names if one in tables} for method, tables in found.items()}
    return {method: tables for method, tables in inside.items() if tables}


def blocks(found: Found) -> list[Block]:
    """NMI / ARI of all methods, ours in detail and the means, of each group of tables."""
    return [block for group in table_suite.GROUPS for block in _blocks_of(group, of_group(found, group))]


def _blocks_of(group: str, found: Found) -> list[Block]:
    tables = list(found[OURS])
    which = f"{len(tables)} {group} tables"
    pairs: list[list[Cell]] = [
        [table, *(f"{found[method][table].nmi:.2f} / {found[method][table].ari:.2f}" for method in found)]
        for table in tables
    ]
    beside = (OURS, PAPER, rivals.BIC)
    detail: list[list[Cell]] = [
        [
            table,
            found[OURS][table].verdict,
            *(f"{found[method][table].clusters:.1f}" for method in beside),
            *(found[method][table].agreement for method in (OURS, rivals.BIC)),
            *(f"{found[method][table].seconds:.2f}" for method in beside),
            found[OURS][table].nmi - found[rivals.BIC][table].nmi,
        ]
        for table in tables
    ]
    head = (
        *("table", "verdict", *(f"clusters: {one}" for one in beside), "agreement: ours", "mixture"),
        *(*(f"seconds: {one}" for one in beside), "NMI over the mixture"),
    )
    means: list[list[Cell]] = [
        [method, *(mean([getattr(one, score) for one in found[method].values()]) for score in SCORES)]
        for method in found
    ]
    return [
        Block(f"Explorations: NMI / ARI, {which}", ("table", *found), pairs),
        Block(f"Explorations: our verdict, clusters, agreement of seeds (ARI), seconds, {which}", head, detail),
        Block(f"Explorations: means over {which}", ("method", *SCORES), means),
    ]


def wanted(found: Found) -> list[Wanted]:
    """The acceptance of explorations: group by group against every rival not told k, then table by table."""
    lines = [line for group in table_suite.GROUPS for line in _wanted_of(group, of_group(found, group))]
    gaps = {table: found[OURS][table].nmi - found[rivals.BIC][table].nmi for table in found[OURS]}
    # By the figures as they are printed, as all that is wanted is.
    far = [table for table in gaps if round(gaps[table], 3) < -FAR_BELOW]
    what = f"tables of {len(gaps)} more than {FAR_BELOW} below the mixture by BIC in NMI"
    where = ", ".join(f"{one} {gaps[one]:.3f}" for one in far)
    return [*lines, Wanted(what, MOST_FAR_BELOW, float(len(far)), True, where)]


def _wanted_of(group: str, found: Found) -> list[Wanted]:
    lines = []
    for score in ("nmi", "ari"):
        means = {method: mean([getattr(one, score) for one in tables.values()]) for method, tables in found.items()}
        what = f"{group}: mean {score.upper()}"
        if score in WANTED_MEANS[group]:
            lines.append(Wanted(what, WANTED_MEANS[group][score], means[OURS]))
        rest = {method: value for method, value in means.items() if method not in (OURS, PAPER, *rivals.TOLD_K)}
        best = max(rest, key=lambda one: rest[one])
        above = WANTED_ABOVE[group]
        lines.append(Wanted(f"{what} over the best rival not told k", above, means[OURS] - rest[best], where=best))
        lines.append(Wanted(f"{what} over k-means told k", 0.0, means[OURS] - means[rivals.TOLD]))
    gaps = {table: found[OURS][table].nmi - found[rivals.BIC][table].nmi for table in found[OURS]}
    worst = min(gaps, key=lambda one: gaps[one])
    lines.append(Wanted(f"{group}: NMI over the mixture by BIC, worst table", -0.05, gaps[worst], where=worst))
    agreement = mean([one.agreement for one in found[OURS].values()])
    return [*lines, Wanted(f"{group}: agreement of seeds, mean ARI", 0.9, agreement)]


def rules(run: Run, seeds: int) -> Block:
    """The rules an exploration could go by, judged on tables they were not chosen on; quickly on small tables only."""
    tables = [
        one for one in map(table_suite.read, table_suite.DEVELOPMENT) if not run.quick or len(one.X) < SMALL_TABLE
    ]
    by_rule: dict[str, dict[str, float]] = {}
    for rule, options in RULES.items():
        by_rule[rule] = {
            table.name: scored([explored(run, table, rule, options, seed) for seed in range(seeds)], table.classes).nmi
            for table in tables
        }
        run.note(f"rule {rule}: NMI {mean(list(by_rule[rule].values())):.3f}")
    return rules_block(f"Rules of explorations: mean NMI, {len(tables)} tables", by_rule)
