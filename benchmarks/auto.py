"""The price of choosing α and μ: an automatic fit against one with both fixed (ten starts), at most 4 times as long.

`python -m benchmarks.auto` takes the paper's problems: tables of a few columns, and images of 784 pixels.
"""

from __future__ import annotations

import warnings

from experiments.problems import ADULT_PRIORS, problem
from sklearn.exceptions import ConvergenceWarning

from benchmarks.problems import median_seconds
from imapce import IMAPCE

PROBLEMS = ("synthetic", *ADULT_PRIORS, "mnist Sandal/Sneaker", "cifar T-shirt/Coat")


def main() -> None:
    for name in PROBLEMS:
        on = problem(name)
        repeats = 3 if on.is_images else 25
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fixed = median_seconds(
                lambda on=on: IMAPCE(alpha=1.0, mu=on.mu, random_state=0).fit(on.X, prior=on.prior), repeats=repeats
            )
            auto = median_seconds(lambda on=on: IMAPCE(random_state=0).fit(on.X, prior=on.prior), repeats=repeats)
        print(
            f"{name}, {on.X.shape[0]:,}x{on.X.shape[1]}: fixed (alpha 1, mu {on.mu:g}) {fixed:.3f} s, automatic "
            f"{auto:.3f} s; ratio {auto / fixed:.1f}x (claim at most 4x)",
            flush=True,
        )


if __name__ == "__main__":
    main()
