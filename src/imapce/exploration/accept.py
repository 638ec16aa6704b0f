"""What is accepted of a proposal: clusters of one of its views, or any unexplored rows; and step by step, all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from imapce.common.arrays import Codes
from imapce.common.checks import is_whole
from imapce.common.words import counted, listing
from imapce.common.work import Watch
from imapce.errors import Argument, InvalidTypeError, InvalidValueError, Phrase, Sentence
from imapce.exploration.look import Findings
from imapce.exploration.record import AcceptedStep, TakenCluster
from imapce.exploration.steps import Step, View
from imapce.priors.problem import FlatRowsError

if TYPE_CHECKING:
    from imapce.exploration.session import Exploration

# As long as a line of a legend or of a table may be.
LONGEST_NAME = 200


def take_steps(
    exploration: Exploration,
    most: int | None,
    callback: Callable[[Step, AcceptedStep], None] | None,
    significance: float | None,
    watch: Watch,
) -> None:
    """Algorithm 1 by itself: propose, accept what is most distinct, and look again until the end, or for `most` steps.

    With a `significance` a step whose split is no more than chance is the end.
    """
    told, cancel = watch.progress, watch.cancel
    # Of a whole run the share of the rows explored is told, whatever the share of the work in hand.
    tell = told and (lambda words, share: told(words, float(exploration.known.mean())))
    count = 0
    while exploration.found.end is None and (most is None or count < most):
        try:
            step = exploration.propose(progress=tell, cancel=cancel)
        except FlatRowsError:
            break
        if significance is not None and exploration.found.end is None:
            p_value = exploration.test(progress=tell, cancel=cancel)
            exploration.found.by_chance = p_value if p_value > significance else None
            step = exploration.propose()
        if exploration.found.end is not None:
            break
        accepted = exploration.accept(progress=tell, cancel=cancel)
        count += 1
        if callback is not None:
            callback(step, accepted)


def accept(
    found: Findings,
    clusters: int | Sequence[int] | None,
    *,
    mask: Any,
    view: int,
    name: str | None,
    number: int | None,
    watch: Watch,
) -> AcceptedStep:
    """The step that takes clusters of a view, the most distinct where none is named, or the rows of a mask."""
    if clusters is not None and mask is not None:
        raise InvalidValueError("accept takes clusters or mask, not both; call it twice.")
    name = name_of_cluster(name)
    _require_free(number, mask, found)
    left = found.record.n_left
    if left <= found.record.estimator.n_components:
        few = counted(left, "row is", "rows are")
        raise InvalidValueError(f"nothing can be accepted: {few} unexplored. Use undo() to go back.")
    chosen: list[tuple[int, Codes, float | None, float | None]]
    if mask is not None:
        seen = found.view(view, watch)
        rows = _unexplored_rows(mask, found)
        chosen = [(_number_for(rows, seen, found) if number is None else number, rows, None, None)]
    else:
        seen = found.cluster(view, watch)
        measured = zip(seen.numbers.tolist(), seen.distinctness.tolist(), seen.overlap.tolist(), strict=True)
        apart_of = {c: (apart, None if np.isnan(overlap) else overlap) for c, apart, overlap in measured}
        chosen = [(c, np.flatnonzero(seen.clusters == c), *apart_of[c]) for c in clusters_meant(clusters, seen)]
    watch.tell("describing what was taken")
    step = found.propose(watch, clusters=False)
    taken = tuple(
        TakenCluster(
            rows,
            apart,
            found.features_of(rows),
            number=c,
            chosen="automatic" if clusters is None and mask is None else "hand",
            name=name,
            stability=found.fact_of(c, "stability") if apart is not None else None,
            group=found.fact_of(c, "groups") if apart is not None else None,
            overlap=overlap,
        )
        for c, rows, apart, overlap in chosen
    )
    return AcceptedStep(
        taken,
        seen.components,
        mean=seen.mean,
        scale=seen.scale,
        objective=seen.objective,
        kurtosis=seen.kurtosis,
        view=int(view),
        p_value=step.p_value,
        structure=found.structure if found.record.is_joint else None,
        explained=seen.explained,
        read_back=step.read_back,
    )


def name_of_cluster(name: Any) -> str | None:
    """What a person calls a cluster, without blanks around it; None where nothing is left."""
    if name is None:
        return None
    if not isinstance(name, str):
        raise InvalidTypeError(f"name must be None or a text; got {name!r:.80}.")
    text = name.strip()
    if len(text) > LONGEST_NAME:
        raise InvalidValueError(f"name must have at most {LONGEST_NAME} letters; got {len(text):,}. Shorten it.")
    if not text.isprintable():
        raise InvalidValueError(f"name must be one line of letters that can be printed; got {text!r:.80}.")
    return text or None


def clusters_meant(clusters: int | Sequence[int] | None, view: View) -> list[int]:
    """The numbers of the clusters meant; the most distinct where none is named."""
    if clusters is None:
        if not view.most_distinct:
            raise InvalidValueError(
                Sentence(
                    "no cluster of this view can be taken: the rows are one group or none is large enough; "
                    "pass a mask, lower ",
                    Argument("min_cluster_size"),
                    ", or take the best split with ",
                    Phrase("anyway", 'run(structure="ignore")'),
                    ".",
                )
            )
        return list(view.most_distinct)
    numbers = list(clusters) if isinstance(clusters, Iterable) else [clusters]
    for number in numbers:
        if not is_whole(number) or number not in view.numbers:
            there = listing(map(str, view.numbers.tolist()), 20) if len(view.numbers) else "there are none"
            raise InvalidValueError(f"clusters must be numbers of clusters in this view ({there}); got {number!r}.")
    if not numbers or len(set(numbers)) != len(numbers):
        raise InvalidValueError(f"clusters must name at least one cluster and none twice; got {clusters!r}.")
    return [int(number) for number in numbers]


def _unexplored_rows(mask: Any, found: Findings) -> Codes:
    chosen = found.data.mask_of(mask, "mask")
    again = np.flatnonzero(chosen & found.record.known)
    if len(again):
        raise InvalidValueError(
            f"mask must name unexplored rows only; {len(again)} are known already, the first is row {again[0]}."
        )
    return np.flatnonzero(chosen)


def _number_for(rows: Codes, seen: View, found: Findings) -> int:
    """The number of the cluster that some rows are in the view in sight, or the next free one."""
    if seen.looked_at:
        numbers = np.unique(seen.clusters[rows])
        if len(numbers) == 1 and numbers[0] >= 0 and np.count_nonzero(seen.clusters == numbers[0]) == len(rows):
            return int(numbers[0])
    return found.next_number


def _require_free(number: Any, mask: Any, found: Findings) -> None:
    """Refuse a number for a cluster that is none, that another has, or that is given to clusters which have one."""
    if number is None:
        return
    if mask is None:
        raise InvalidValueError("number is for rows by mask; clusters of the proposal have theirs: leave it out.")
    if not is_whole(number) or number < 0 or number in found.record.moves.by_number:
        raise InvalidValueError(
            f"number must be a whole number, not negative, that no accepted cluster has; got {number!r:.80}."
        )
