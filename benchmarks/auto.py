"""The price of choosing α and μ: an automatic fit against one with both fixed (ten starts), of images at most 4 times.

`python -m benchmarks.auto` takes the paper's problems: tables of a few columns, and images of 784 pixels. With columns
known, clusters are looked for in all directions first, which takes the same whatever a fixed fit takes: of tables that
are fitted in milliseconds nothing is claimed.
"""

from __future__ import annotations

import warnings
from argparse import Namespace

from experiments.problems import ADULT_PRIORS, problem
from sklearn.exceptions import ConvergenceWarning

from benchmarks.problems import median_seconds
from benchmarks.record import Record, at_most, measure
from imapce import IMAPCE

PROBLEMS = ("synthetic", *ADULT_PRIORS, "mnist Sandal/Sneaker", "cifar T-shirt/Coat")


def main(record: Record, asked: Namespace) -> None:
    table = record.table("Automatic against fixed", "problem", "α = 1 and the paper's μ, s", "automatic, s", "ratio")
    for name in PROBLEMS[:2] if asked.quick else PROBLEMS:
        on = problem(name)
        repeats = 1 if asked.quick else 3 if on.is_images else 7
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fixed = median_seconds(
                lambda on=on: IMAPCE(alpha=1.0, mu=on.mu, random_state=0).fit(on.X, prior=on.prior), repeats=repeats
            )
            auto = median_seconds(lambda on=on: IMAPCE(random_state=0).fit(on.X, prior=on.prior), repeats=repeats)
        size = f"{on.X.shape[0]:,}×{on.X.shape[1]}"
        claim = at_most(4, "ratio") if on.is_images else None
        table.row(f"{name}, {size}", fixed, auto, auto / fixed, claim=claim)


if __name__ == "__main__":
    measure("auto", main, __doc__)
