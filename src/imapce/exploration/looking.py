"""What a session looks at when it is asked: the next view, its clusters, other views, the one of all clusters together.

Looking moves nothing. What was looked at stays with the record (`look.py`), so that asking again computes nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from imapce.common.work import Tell, Watch
from imapce.exploration.results import Results
from imapce.exploration.steps import Step, View

Cancel = Callable[[], bool]


class Looking(Results):
    """The questions of a session that it takes a look at the rows to answer."""

    def propose(self, *, clusters: bool = True, progress: Tell | None = None, cancel: Cancel | None = None) -> Step:
        """The next view of the unexplored rows and its clusters; asking again gives the same step.

        With clusters=False the view comes without them, for those who want to see it first; `cluster` finds them.
        `progress(words, share)` is told what is being done, and `cancel()` may return True to end it: then
        CancelledError is raised and the session is as it was.
        """
        return self.found.propose(Watch(progress, cancel), clusters=clusters)

    def cluster(self, view: int = 0, *, progress: Tell | None = None, cancel: Cancel | None = None) -> View:
        """The clusters of one of the views of the current step; they stay with it."""
        return self.found.cluster(view, Watch(progress, cancel))

    def test(self, *, progress: Tell | None = None, cancel: Cancel | None = None) -> float:
        """How often one Gaussian would look as split as the unexplored rows do; it stays with the step as `p_value`.

        Where so few rows are left that there is no view of them, nothing of them is split: 1.
        """
        return self.found.test(Watch(progress, cancel))

    def look(
        self,
        *,
        n_components: int | None = None,
        alpha: float | str | None = None,
        mu: float | str | None = None,
        progress: Tell | None = None,
        cancel: Cancel | None = None,
    ) -> View:
        """A view of the unexplored rows with other settings than those of the session, which it leaves as it is.

        With alpha=0 and mu=0 it shows the directions of most variance, whatever is known.

        >>> from imapce import Exploration
        >>> exploration = Exploration(np.random.default_rng(0).normal(size=(60, 5)), random_state=0)
        >>> exploration.look(n_components=3).embedding.shape
        (60, 3)
        """
        given = {"n_components": n_components, "alpha": alpha, "mu": mu}
        parameters = {name: value for name, value in given.items() if value is not None}
        return self.found.look_with(Watch(progress, cancel), **parameters)

    def overview(self, *, progress: Tell | None = None, cancel: Cancel | None = None) -> View:
        """All rows in one view, that in which all accepted clusters are seen best, with these clusters; it stays until
        the next move.

        It is one of the optima of the first look, at all rows that were not known at the start; of a session that was
        loaded that look is taken again. Before anything is accepted it is the view proposed, with its clusters.

        >>> from imapce import Exploration
        >>> rng = np.random.default_rng(0)
        >>> exploration = Exploration(rng.normal(size=(150, 4)) + 9 * np.eye(3, 4)[np.arange(150) % 3]).run()
        >>> exploration.overview().embedding.shape, exploration.overview().numbers.tolist()
        ((150, 2), [0, 1, 2])
        """
        return self.found.see_all(Watch(progress, cancel))
