"""The numbers that decide outliers, clusters and views, in one place: value, reason, where it was measured.

One frozen record for each stage (`OutlierSettings`, `ClusterSettings`, `ChoiceSettings`, `TableSettings`), and
`Settings` with all of them. Functions take the record they need as an argument, and a model has all as `settings`, so
that other values can be tried:

>>> from dataclasses import replace
>>> from imapce import IMAPCE
>>> class Coarse(IMAPCE):
...     settings = replace(SETTINGS, clusters=replace(SETTINGS.clusters, exponent=0.5))

`docs/settings.md` is printed from these records, and says how what was measured is to be read.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any


def setting(value: Any, why: str, *, measured: str = "", tables: int = 0) -> Any:
    """A field of a record with its default, the reason for it, what was measured and on how many tables.

    >>> @dataclass(frozen=True)
    ... class Example:
    ...     share: float = setting(0.5, "half", measured="0.4 and 0.6 agree", tables=3)
    >>> Example().share
    0.5
    """
    return field(default=value, metadata={"why": why, "measured": measured, "tables": tables})


@dataclass(frozen=True)
class OutlierSettings:
    """Which rows are gross outliers (`rows/outliers.py`).

    >>> OutlierSettings().most_outlying
    0.02
    """

    rows: int = setting(2_000, "rows that quantiles are taken from, and far rows that are compared with each other")
    fewest_rows: int = setting(256, "rows of a table so wide that more would not fit in `sample_bytes`")
    sample_bytes: int = setting(64 << 20, "most memory of these rows")
    fewest_deviating: int = setting(20, "rows off the median from which a column's quantiles mean something")
    smallest_share: float = setting(0.01, "share of the rows from which rows close to one another are a cluster")
    smallest_rows: int = setting(10, "the same in rows; both are what a part of a view must have, too")
    outer: tuple[float, float] = setting(
        (5.0, 2.5), "fence: units of the 90 % quantile, and power of its ratio to the median; far is what lies beyond"
    )
    inner: tuple[float, float] = setting((3.0, 2.0), "fence within which no row goes with those beyond the outer one")
    most_far: float = setting(0.1, "share of far rows from which they are no exception to 90 % quantiles")
    most_outlying: float = setting(
        0.02,
        "share of the rows from which far ones are the columns' own tails",
        measured="Image Segmentation alone has more, 2.6 %: without them 15-NN accuracy in its view is 0.82, not 0.76",
        tables=27,
    )
    close: float = setting(0.5, "share of its excess within which a row has neighbours: scattered rows have none")


@dataclass(frozen=True)
class ClusterSettings:
    """Which clusters are found, the effect of covariates given the clusters, and the evidence for structure.

    >>> ClusterSettings().exponent
    0.3
    """

    # --- coordinates --------------------------------------------------------------------------------------------------
    rows: int = setting(1_500, "rows of the sample in which axes and components are selected")
    columns: int = setting(
        500, "matrix columns of a table with categories or missing values beyond which leading axes stand for them"
    )
    axes: tuple[int, ...] = setting((30, 60, 100), "numbers of axes that are compared")
    most_axes: int = setting(100, "most axes of the mixture and of the columns in which views are searched")
    fewest_axes: int = setting(10, "least axes in which views of many columns are searched, however few the rows")
    rows_per_axis: int = setting(15, "rows for each axis, so that covariances can be estimated")
    axes_share: float = setting(0.5, "share of the best gain that the selected number of axes reaches")
    # --- starts -------------------------------------------------------------------------------------------------------
    neighbours: int = setting(15, "neighbors that a row is moved to the mean of; that vote on a row in a view")
    smoothings: int = setting(4, "times that rows are moved before a tree is built")
    nearest: int = setting(10, "neighbors of a local mean")
    rounds: int = setting(3, "times that rows are sphered locally")
    # --- selection ----------------------------------------------------------------------------------------------------
    sizes: tuple[int, ...] = setting(
        (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20), "numbers of components that are compared"
    )
    few_sizes: tuple[int, ...] = setting((3, 7, 12), "numbers of components by which numbers of axes are compared")
    folds: int = setting(3, "folds of the held-out likelihood")
    seed: int = setting(0, "seed of the folds, so that the same rows have the same clusters")
    exponent: float = setting(
        0.3,
        "e of gain/k^e, which the number of components maximizes; times the share of numeric axes, or `finer`",
    )
    coarser: float = setting(0.5, 'the same for granularity="coarser"')
    finer: float = setting(0.1, 'the same for granularity="finer"')
    fewest: float = setting(8.0, "rows per component from which a number of components is tried; rows of a rare group")
    # --- mixture ------------------------------------------------------------------------------------------------------
    iterations: int = setting(10, "most steps of EM")
    tolerance: float = setting(2e-3, "change of the log-likelihood per row after which EM stops")
    ridge: float = setting(0.01, "share of the variance of all rows that is added to each variance")
    prior_rows: float = setting(8.0, "weight of the pooled covariance in rows per axis")
    leaning: float = setting(
        1.0, "weight in rows of the levels of all rows, and of the effect that the covariates have without clusters"
    )
    # --- covariates ---------------------------------------------------------------------------------------------------
    many_rows: int = setting(20_000, "rows from which effects and views are estimated, a sample of more")
    most_classes: int = setting(
        20, "classes of a covariate up to which confounded clusters are merged and leakage is an accuracy"
    )
    class_share: float = setting(0.1, "share of its rows from which a cluster contains a class of a covariate")
    turns: int = setting(4, "turns of clusters and effect")
    # --- significance and stability -----------------------------------------------------------------------------------
    most_overlap: float = setting(0.1, "share of misclassified rows above which two clusters belong to one group")
    few_rows: int = setting(
        500, "rows of a first test, and of the rows by which views are compared: fewer rows take less time"
    )
    null_draws: int = setting(19, "null tables of each kind")
    fewest_draws: int = setting(4, "null tables if these are decisive")
    significance: float = setting(
        0.01,
        "p-value of null tables for a clear structure; share of tables in which any row is an outlier by chance",
    )
    weak_significance: float = setting(0.05, "p-value of null tables for a possible structure")
    resamples: int = setting(10, "resamples for the stability of clusters")
    resample_share: float = setting(0.8, "share of the rows in a resample")
    same_cluster: float = setting(0.75, "Jaccard index from which a cluster reappears")
    least_stability: float = setting(0.5, "share of resamples from which a cluster is stable")
    same_structure: float = setting(0.8, "NMI of clusters and a column from which the column determines them")
    # --- all rows -----------------------------------------------------------------------------------------------------
    refined_rows: int = setting(200_000, "rows that the final mixture is refined on")
    refining_steps: int = setting(3, "steps of EM for the final mixture")
    far_rows: int = setting(2_000, "rows farthest from all components, among which rare groups are looked for")


@dataclass(frozen=True)
class ChoiceSettings:
    """Which α, which μ and which optimum is the view (`choice/`).

    >>> ChoiceSettings().mus[0]
    0.0
    """

    mus: tuple[float, ...] = setting(
        (0.0, 0.1, 1.0, 10.0, 100.0),
        "times the paper's μ, where clusters choose",
        measured="15-NN accuracy of the class 0.77 on the 14 development tables, 0.84 on the 13 added ones; PCA (0) "
        "alone 0.75 and 0.77",
        tables=27,
    )
    minority_mus: tuple[float, ...] = setting((-1.0, -10.0), "the same where a cluster is a minority")
    background_mus: tuple[float, ...] = setting((1.0, 10.0, 100.0), "the same beside a background")
    alphas: tuple[float, ...] = setting((0.5, 1.0, 2.0, 5.0), "times the α at which a background weighs as the data")
    # --- the search ---------------------------------------------------------------------------------------------------
    sketch: float = setting(1e-3, "relative gradient at which optima are compared; Σ sin² below which two are one")
    sketch_iterations: int = setting(100, "most iterations up to there")
    background_starts: int = setting(8, "starts of a point beside a background: others reach what it misses")
    later_starts: int = setting(
        4,
        "starts of a later step: the closed-form ones; and no μ for minorities",
        measured="clusters are seen as well as with all, vehicle 0.011 worse; a minority's μ was chosen in 2 of 73",
        tables=12,
    )
    compared: int = setting(4, "optima of a point that are compared, best objective first")
    apart: float = setting(
        0.03,
        "Σ sin² between those listed, and between those of a given μ beside a background",
        measured="CIFAR-100 + T-shirt/Coat at μ = 1e5, draw 0: 0.94, with all sketches 0.91",
        tables=1,
    )
    listed: int = setting(8, "optima listed: each costs work for every row")
    later_listed: int = setting(3, "the same in a later step")
    # --- what is seen -------------------------------------------------------------------------------------------------
    few_neighbours: int = setting(5, "voters where rows are few; a cluster of fewer rows is not asked for")
    few_rows: int = setting(150, "rows up to which they are few")
    largest_share: float = setting(0.25, "share of the rows up to which neighbourhoods are compared")
    # --- beside a background ------------------------------------------------------------------------------------------
    clear: float = setting(
        0.15, "separation beyond chance from which a split is clear", measured="Gaussian rows reach 0.07", tables=12
    )
    directions: int = setting(24, "directions of the plane that are cut")
    tail: float = setting(4.0, "standard deviations beyond which rows count as lying there, so single ones cut nothing")
    across: float = setting(
        0.5,
        "weight of a split across the clearest one",
        measured="with 1 three of five draws of Sandal/Sneaker fall from 0.87 to 0.67, 0.71 and 0.76; with 0 three of "
        "T-shirt/Coat fall by 0.02 in the mean",
        tables=2,
    )
    smoothing: float = setting(0.2, "standard deviations of the kernel in which a minority's valley is looked for")


@dataclass(frozen=True)
class TableSettings:
    """What is told of the columns of a table: which are strongly skewed, which repeat others (`tables/scales.py`,
    `tables/remarks.py`), which number the rows (`tables/usable.py`). It decides sentences, which columns
    `transform="log"` means and which columns are row numbers; otherwise no view and no cluster.

    >>> TableSettings().skewed
    2.0
    """

    rows: int = setting(2_000, "rows that this is asked of, a sample of more")
    skewed: float = setting(
        2.0,
        "skewness, of all but the outer half per cent, from which a column is strongly skewed: an exponential one has "
        "1.7, a log-normal one of σ = 1 has 2.4 to 3.9",
        measured="13 columns of 5 tables, on 28 nothing; chosen on the same tables",
        tables=33,
    )
    even: float = setting(
        1.0,
        "skewness that a log scale must leave at most: else it is no remedy",
        measured="arms of thyroid and single rows of vehicle stay skewed on any scale",
        tables=33,
    )
    leaning: float = setting(
        1 / 3,
        "how far its 5 and 95 % quantiles must lean: one lies twice as far from the median as the other",
        measured="300 draws of 400 rows of Student's t(2): 29 are skewed by chance, none leans by more than 0.25",
    )
    heap: float = setting(0.5, "share of the rows with one value from which a column is no amount")
    fewest_values: int = setting(20, "different values from which a column can be an amount")
    most_columns: int = setting(100, "columns up to which each is compared with each; 100 take a fifth of a second")
    levels: int = setting(20, "levels of a number that tells another column: its values, or as many even parts")
    tells: float = setting(
        0.8,
        "share of the variance of a known class that a column must explain to stand in for it",
        measured="made passengers: 'who' and 'adult_male' tell 0.93 and 0.87 of 'sex', the next column 0.32",
        tables=1,
    )
    same_levels: float = setting(0.95, "share that two columns explain of each other where one repeats the other")
    same_numbers: float = setting(
        0.995,
        "the same of two numbers",
        measured="0.990 between length and width of crabs, whose difference tells the species",
        tables=33,
    )
    fewest_others: int = setting(5, "rows beside the most common level from which a column can repeat another")
    fewest_row_numbers: int = setting(
        20,
        "rows from which integers with a constant step, or each integer of a range once in a column named like an "
        "index, are row numbers",
        measured="no column of the tables is one",
        tables=33,
    )
    fewest_sentinels: int = setting(3, "rows with a value from which it may stand for a missing value")
    sentinel_share: float = setting(0.005, "the same as a share of the rows")
    sentinel_distance: float = setting(
        3.0,
        "distance to the nearest other value, in ranges of the other values from their 1st to their 99th percentile",
        measured="at most 1.0 in 1,361 columns; -999 in 3 % of the rows of 550 columns is reported in 96 %, "
        "-99 in 85 %, -1 in 13 %",
        tables=33,
    )


@dataclass(frozen=True)
class Settings:
    """All of them.

    >>> Settings().clusters.rows
    1500
    """

    outliers: OutlierSettings = OutlierSettings()
    clusters: ClusterSettings = ClusterSettings()
    choice: ChoiceSettings = ChoiceSettings()
    tables: TableSettings = TableSettings()


SETTINGS = Settings()


def as_page(settings: Settings = SETTINGS) -> str:
    """The records as tables of Markdown, one for each stage.

    >>> print(as_page().splitlines()[0])
    ## Outliers
    """
    parts = []
    for stage in fields(settings):
        record = getattr(settings, stage.name)
        lines = [
            f"## {stage.name.capitalize()}",
            "",
            "| setting | value | what it is and why | measured | tables |",
            "| --- | --- | --- | --- | --- |",
        ]
        for one in fields(record):
            value = getattr(record, one.name)
            rounded = float(f"{value:.4g}") if isinstance(value, float) else value
            words = ", ".join(map(str, value)) if isinstance(value, tuple) else f"{rounded:,}"
            told = one.metadata
            lines.append(
                f"| `{one.name}` | {words} | {told['why']} | {told['measured'] or '–'} | {told['tables'] or '–'} |"
            )
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"
