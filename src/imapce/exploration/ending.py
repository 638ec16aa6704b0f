"""When an exploration is over, and why: in a sentence, and in a few words for each row left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imapce.common.words import counted
from imapce.errors import Argument, Sentence
from imapce.exploration.verdict import TAKES_IT, best_split_in_words, verdict_in_words

if TYPE_CHECKING:
    from imapce.exploration.state import Session

# Why rows are in no cluster.
TOO_FEW, ONE_GROUP = "too few for a cluster", "one group"


def end_of(session: Session, *, n_components: int, is_flat: bool, by_chance: float | None) -> tuple[str, str] | None:
    """Why the exploration is over, in a sentence, and in a few words for each row left; None while it is not."""
    left, least = len(session.row_ids) - int(session.known.sum()), session.min_cluster_size
    if left == 0:
        return "Every row is taken.", ""
    aside = int((session.set_aside & ~session.known).sum())
    rows = counted(left, "row")
    if aside:
        rows += f" ({aside:,} of them gross outliers, set aside)"
    are_left = f"{rows} {'is' if left == 1 else 'are'} left"
    if left < least or (left == least and not session.is_joint):
        size = Argument("min_cluster_size", least)
        return Sentence(f"{are_left}, no more than ", size, "; they are outliers."), TOO_FEW
    if left <= n_components:
        return f"{are_left}, too few for a view of {n_components} axes; they are outliers.", TOO_FEW
    if is_flat:
        return f"The {rows} left do not vary in {n_components} directions; they stay as outliers.", "do not vary"
    step = session.proposal
    if step is not None and step.structure is not None and not session.shows(step.structure):
        best = best_split_in_words(step.structure) if not session.steps else ""
        way_out = Sentence(f" {best}", TAKES_IT, ".") if best else ""
        verdict = f"{verdict_in_words(step.structure)}; the {rows} are one group."
        return Sentence(verdict, way_out), ONE_GROUP
    seen = None if step is None else step.views[0]
    if seen is not None and seen.looked_at and not seen.most_distinct:
        stay = "stays" if left == 1 else "stay"
        return f"No cluster of at least {counted(least, 'row')} is in the view; {rows} {stay} as outliers.", TOO_FEW
    if by_chance is not None:
        chance = f"No structure is left that one Gaussian would not show (p = {by_chance:.2g})"
        return f"{chance}; the {rows} left are not split further.", ONE_GROUP
    return None
