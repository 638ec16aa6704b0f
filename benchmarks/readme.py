"""The tables of benchmarks/README.md, written from benchmarks/results; then how many claims hold, and which do not.

python -m benchmarks.readme [--check]
"""

from __future__ import annotations

from pathlib import Path

from experiments import pages
from experiments.result_files import read_figures

from benchmarks.record import CLAIM_COLUMNS, RESULTS

PAGE = Path(__file__).with_name("README.md")


def claims(folder: Path) -> tuple[int, list[str]]:
    """How many claims hold in a folder of results, and the names of those that do not."""
    bound, verdict = CLAIM_COLUMNS
    held, missed = 0, []
    for path in sorted(folder.glob("*.csv")):
        for block, rows in read_figures(path).items():
            for row, figures in rows.items():
                held += figures.get(verdict) == "holds"
                if figures.get(verdict) == "missed":
                    missed.append(f"{path.stem}, {block}, {row}: wanted {figures[bound]}")
    return held, missed


def main() -> None:
    held, missed = claims(RESULTS)
    print("\n".join([f"claims that hold: {held}; missed: {len(missed)}", *missed]))
    pages.main([PAGE])


if __name__ == "__main__":
    main()
