"""Whether there are groups at all, in the words of every surface: clear, possible, or no more than chance."""

from __future__ import annotations

from typing import Any

from scipy.special import ndtr

from imapce.clusters.significance import Evidence, Structure, Verdict
from imapce.common.archive import in_json
from imapce.common.settings import SETTINGS
from imapce.common.words import counted, enumerated
from imapce.errors import Phrase, Sentence

# Sizes of clusters in a sentence.
MAX_SIZES = 8
VERDICTS: tuple[Verdict, ...] = ("clear", "possible", "none")
# The way out of a verdict, which the command line says in its own words and the page with a button.
TAKES_IT = Phrase("take the split", ': run(structure="ignore") takes it')
SPLITS_IT = Phrase("split the cluster", ': split(cluster, structure="ignore") splits it so')
BEGINNINGS = {"clear": "Clear structure", "possible": "Possible structure", "none": "No structure beyond chance"}
RESAMPLES = SETTINGS.clusters.resamples


def verdict_in_words(structure: Structure) -> str:
    """The verdict and why, without a full stop."""
    return f"{BEGINNINGS[structure.verdict]}: {structure.reason}"


def best_split_in_words(structure: Structure | None) -> str:
    """What the best split would be where it is not more than chance, without a full stop; empty where there is none."""
    sizes = [] if structure is None or structure.is_taken else structure.sizes
    if len(sizes) < 2:
        return ""
    first = [f"{n:,}" for n in sizes[:MAX_SIZES]]
    told = enumerated(first) if len(sizes) <= MAX_SIZES else ", ".join([*first, "…"])
    return f"The best split would be {counted(len(sizes), 'cluster')} of {told} rows"


def evidence_in_words(structure: Structure | None) -> str:
    """What a verdict was tested against, a sentence; empty where nothing was."""
    if structure is None or not structure.evidence:
        return ""
    told = (
        f"{one.against} (z = {one.z:.1f}, p {'< 0.0001' if one.p_value < 1e-4 else f'= {one.p_value:.2g}'})"
        for one in structure.evidence
    )
    return f"Tested against {'; '.join(told)}."


def caveat(structure: Structure | None) -> str:
    """What is to be said wherever clusters are shown that are not clearly structure, without a full stop; else empty.

    >>> caveat(Structure("none", "z = 0.3")), caveat(Structure("clear", "z = 9.1"))
    ('No structure beyond chance, taken all the same: z = 0.3', '')
    """
    if structure is None or structure.verdict == "clear":
        return ""
    anyway = "" if structure.is_taken else ", taken all the same"
    return f"{BEGINNINGS[structure.verdict]}{anyway}: {structure.reason}"


def without_way_out(sentences: str) -> str:
    """The same sentences for those who write no Python.

    >>> without_way_out(Sentence("The best split would be 2 clusters of 9 and 8 rows", TAKES_IT, "."))
    'The best split would be 2 clusters of 9 and 8 rows.'
    """
    return Sentence(sentences).rendered(lambda part: "" if part in (TAKES_IT, SPLITS_IT) else str(part))


def stability_in_words(stability: float | None) -> str:
    """In how many resamples a cluster reappears, in words; empty if it is not known.

    >>> stability_in_words(0.9), stability_in_words(0.3)
    ('9 of 10 resamples', '3 of 10 resamples: unstable')
    """
    if stability is None:
        return ""
    unstable = ": unstable" if stability < SETTINGS.clusters.least_stability else ""
    return f"{round(stability * RESAMPLES)} of {RESAMPLES} resamples{unstable}"


def told_structure(structure: Structure) -> dict[str, Any]:
    """The verdict, the words and the evidence as a file and JSON hold them; the split is found again."""
    evidence = [
        {"against": one.against, "z": in_json(one.z), "p_value": in_json(one.p_value)} for one in structure.evidence
    ]
    return {"verdict": structure.verdict, "words": structure.reason, "evidence": evidence}


def structure_of_file(stored: Any) -> Structure | None:
    """What a file tells of it; sessions of clusters found view by view have none, and older ones two z-scores."""
    if stored is None:
        return None
    words = str(stored["words"])
    if "verdict" not in stored:
        named = (("one peak", "valley"), ("the same columns and correlations", "dependence"))
        scores = [(against, float(stored[key])) for against, key in named if stored[key] is not None]
        told = tuple(Evidence(against, z, float(ndtr(-z))) for against, z in scores)
        return Structure("clear" if stored["clear"] else "none", words, told)
    verdict = "possible" if stored["verdict"] == "perhaps" else stored["verdict"]
    if verdict not in VERDICTS:
        raise ValueError(f"the verdict on its structure is {verdict!r}")
    told = tuple(Evidence(str(one["against"]), float(one["z"]), float(one["p_value"])) for one in stored["evidence"])
    return Structure(verdict, words, told)
