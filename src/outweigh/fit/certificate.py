"""How good weights are: their level, and a verdict a person can read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape

import numpy as np

from outweigh.fit.problem import Problem
from outweigh.fit.search import Found
from outweigh.fit.tuning import TUNING
from outweigh.norms.floor import NoiseFloor
from outweigh.protocols import Status

# With fewer rows than this no second moment tells a wrong one from a clean one.
# The share of rows that it is told of how far they may lie from the others and not be seen.
_TOLD = 0.1
_DOUBTS = {
    "white": "in groups of outliers if columns are in truth uncorrelated: decide, and fit with "
    "covariance=None if so",
    "overlap": "a group that overlaps the others, and no tail of theirs: look whether they are of "
    "another kind",
    "many": "in groups that stand apart, too many to be called wrong: look whether rows are of "
    "several kinds",
    "few values": "together, apart from the others, in columns of so few values that such groups "
    "may be genuine: look whether they are of another kind",
}
_LOOK = "; that is more than a tenth: look at these rows (explain) before you go on"


@dataclass(frozen=True, slots=True)
class Moreau:
    r"""The gradient of the Moreau envelope at a point.

    Attributes
    ----------
    gradient_norm : float
        :math:`2\beta |w - \mathrm{prox}(w)|`; small only near a stationary point.
    accuracy : float
        By at most how much the norm may be off, from the gap of the proximal problem.
    beta : float
    """

    gradient_norm: float
    accuracy: float
    beta: float


@dataclass(frozen=True, slots=True)
class Certificate:
    """What is known about fitted weights.

    Attributes
    ----------
    objective : float
        The objective over all features at the weights.
    noise_floor : NoiseFloor
        What clean data of as many effective samples scores.
    removed : float
        The share of the sample weight taken away.
    contamination_bound : float
        The share that could have been taken away.
    status : Status
    n_effective : float
        How many rows of equal weight the weights are worth, (sum w)^2 / sum w^2.
    noise : {"white", "given", "elliptical", "other"}
        What the noise of clean rows was taken to be: white in its units, of the covariance that was
        given, elliptical of a covariance that was found, or none of these. Elliptical: the
        objective is the largest squared distance among the trusted rows, in units of the limit.
        Other: there is no level of clean rows to compare with, and the objective is the sum of the
        leading variances; of a mean, where columns have too few values to judge rows by, that of
        elliptical noise.
    unlike_clean : str
        Why, in other noise, there is no level of clean rows.
    expected : float
        More than this share removed is for a person to look at: with correlated or skewed columns
        it may be genuine. See `Settings.expected`.
    far, apart : float
        Shares of the rows, in elliptical noise: farther out than clean rows of this covariance, and
        in groups that stand apart from the others.
    spared : float
        The share of such rows that were kept, because contamination allows no more.
    doubtful : float
        The share of the rows that may be wrong but were kept, in elliptical noise.
    doubt : {"white", "overlap", "few values"}
        Why: they would be in groups of outliers if columns were uncorrelated, or they are a group
        that overlaps the others, or they stand together in columns of so few values that groups in
        them may be genuine.
    seen : float
        The share of the columns that rows are judged by, in elliptical noise. The others have too
        few values: only those far from all others were looked for in them.
    divided : float
        The share of the rows that are far from the others, where they are too many to be called
        wrong: nothing was removed.
    left_out, filled : int
        Rows with missing values that had no part in the fit, or had medians put in their place.
    support_level : float
        On the features of a sparse answer alone, the spectral norm over the level of clean rows
        there, or how far they go together by ranks where that is more; 0 where nobody looked.
    factors : int or None
        How many directions stand out from white noise under the weights; None where nobody looked.
    stationarity : float or None
        The norm of the steepest feasible descent for one subgradient: an upper bound on the
        stationarity of the paper (Definition 2.3), which at a kink need not vanish.
    theorem_stationarity : float or None
        The level n^(1/2) delta^2 eps^(-3/2), with delta = eps sqrt(log 1/eps) and constant one,
        below which the paper's theorem guarantees the estimate.
    moreau : Moreau or None
        As `stationarity` and `theorem_stationarity` it is None unless `certify(X)` asked for it.
    """

    objective: float
    noise_floor: NoiseFloor
    removed: float
    contamination_bound: float
    status: Status
    n_effective: float = math.inf
    noise: str = "white"
    expected: float = 1.0
    far: float = 0.0
    apart: float = 0.0
    spared: float = 0.0
    doubtful: float = 0.0
    doubt: str = "white"
    seen: float = 1.0
    divided: float = 0.0
    left_out: int = 0
    filled: int = 0
    support_level: float = 0.0
    factors: int | None = None
    unlike_clean: str = "the noise is not white"
    stationarity: float | None = None
    theorem_stationarity: float | None = None
    moreau: Moreau | None = None

    @property
    def ratio(self) -> float:
        """The objective in units of the median of clean data."""
        return self.objective / self.noise_floor.median if self.noise_floor.median > 0 else 1.0

    @property
    def unseen(self) -> float:
        """How far a tenth of the rows may lie from the others, together, and not be seen.

        In units of the noise. A share e of the rows at a distance s adds the variance e (1 - e) s^2
        along one direction, and the objective is at least the variance that any direction has in
        excess: rows farther away bring it above the level of clean rows. Infinite where that level
        is not known, or not reached.
        """
        known = self.noise not in ("elliptical", "other")
        if not known or self.objective > self.noise_floor.clean:
            return math.inf
        return math.sqrt(self.noise_floor.clean / (_TOLD * (1.0 - _TOLD)))

    @property
    def trust(self) -> str:
        """How far the answer is to be trusted, in a word, by the first test that says less.

        - "clean": nothing speaks against it.
        - "look": at the level of clean rows, but look at the rows removed before you go on.
        - "in doubt": the rows can be read in two ways, or hide what is wrong; decide.
        - "not clean": wrong rows are left, or what was assumed of the noise does not hold.
        - "no level": there is nothing to compare with.
        """
        return self._judged[0]

    @property
    def clean(self) -> bool:
        """Whether nothing speaks against the answer: `trust` is "clean"."""
        return self.trust == "clean"

    @property
    def verdict(self) -> str:
        """One sentence for a person."""
        said = self._judged[1]
        if self.factors is not None:
            s, verb = ("", "stands") if self.factors == 1 else ("s", "stand")
            # Noise that is not white has directions of more variance too.
            of = " from white noise" if self.noise == "other" else ""
            said += f"; {self.factors or 'no'} factor{s} {verb} out{of}"
        if self.seen < 1.0 and self.noise == "elliptical":
            said += f"; {1.0 - self.seen:.0%} of the columns have too few values to judge rows by"
        for n, how in (self.left_out, "left out"), (self.filled, "filled in with medians"):
            if n:
                said += f"; {n:,} {'row was' if n == 1 else 'rows were'} {how} for missing values"
        return said

    @property
    def _judged(self) -> tuple[str, str]:
        """The word and the sentence: the only place that weighs the tests against each other."""
        if round(self.n_effective, 6) < TUNING.fewest_rows:
            return "no level", (
                f"{self.removed:.1%} of the weight removed; what is left counts for "
                f"{self.n_effective:.2g} rows, too few to tell wrong ones from clean ones"
            )
        if self.noise == "other":
            found = f"{self.removed:.1%} of the weight removed by distance from the bulk"
            if self.removed == 0.0:
                found = "no row is far from the bulk, and nothing was removed"
            if self.doubtful > 0.0:
                return "in doubt", self._with_doubt(found)
            why = f"{self.unlike_clean}, so there is no level of clean data to compare with"
            return "no level", f"{found}; {why}"
        return self._judged_by_shape() if self.noise == "elliptical" else self._judged_by_level()

    def _judged_by_level(self) -> tuple[str, str]:
        """Return them for white noise: levels over all features, over few, below; what it took."""
        above = self.objective > self.noise_floor.clean
        if above and self.status is Status.EXHAUSTED:
            return "not clean", "budget exhausted: raise max_iter, or accept the level reached"
        together = self.support_level > 1.0
        if above or (together and self.status is Status.STALLED):
            where, level = ("", self.ratio) if above else (" on the support", self.support_level)
            return "not clean", (
                f"stalled above the clean level{where}, at {level:.2f} times it: the features may "
                "be correlated (see covariance) or not of unit noise (see scale), or more rows "
                "than contamination allows are wrong"
            )
        # As rows do in units of a covariance that was fitted to them, wrong rows included.
        least = 2.0 * self.noise_floor.median - self.noise_floor.upper
        if self.noise == "given" and self.removed == 0.0 and self.objective < least:
            return "in doubt", (
                f"in doubt: at {self.ratio:.2f} times the clean level, less than clean rows "
                "vary; a covariance that was fitted to these very rows hides what is wrong "
                'with them: pass that of other rows, or covariance="auto"'
            )
        if together:
            return "in doubt", (
                f"in doubt: {self.removed:.1%} of the weight removed, but the features of the "
                f"answer go together, by ranks, at {self.support_level:.2f} times the level of "
                "clean rows: they are correlated (see covariance), or wrong rows are left"
            )
        if self.removed == 0.0:
            return "clean", "clean level reached: nothing had to be removed"
        return self._unless_surprising(
            f"clean level reached: {self.removed:.1%} of the weight removed"
        )

    def _unless_surprising(self, said: str) -> tuple[str, str]:
        """Return what is said, or that a person should look at so many rows removed."""
        surprising = self.removed > self.expected * (1.0 + 1e-9)
        return ("look", said + _LOOK) if surprising else ("clean", said)

    def _judged_by_shape(self) -> tuple[str, str]:
        """Return them for correlated noise: rows far out, apart, spared, or of two kinds."""
        if self.divided > 0.0:
            return "in doubt", (
                f"in doubt: {self.divided:.0%} of the rows lie far from the others, too many to be "
                "called wrong, and nothing was removed: look whether rows are of two kinds"
            )
        if self.apart >= TUNING.second_group and max(self.spared, self.doubtful) == 0.0:
            said = (
                f"two groups: {self.apart:.0%} of the rows stand apart from the others and have no "
                "part in the mean; both groups may be genuine, so look at them first"
            )
            return self._unless_surprising(said)[0], said
        reasons = []
        if self.far > 0.0:
            reasons.append(f"{self.far:.1%} lie farther out than clean rows of this covariance do")
        if self.apart > 0.0:
            reasons.append(f"{self.apart:.1%} belong to a group that stands apart")
        said = f"in correlated noise {self.removed:.1%} of the weight removed: " + ", ".join(
            reasons
        )
        if not reasons:
            said = "in correlated noise no row is far out and no group stands apart"
        if self.spared > 0.0:
            allowed = "contamination allows no more: raise it, or look at them (explain)"
            return "in doubt", f"{said}; {allowed}"
        if self.doubtful > 0.0:
            return "in doubt", self._with_doubt(said)
        # Half is a convention: outliers in columns left out are not seen, many or few, as is said.
        if self.objective > self.noise_floor.clean or self.seen < 0.5:
            return "look", said
        return self._unless_surprising(said if reasons else f"clean: {said}")

    def _with_doubt(self, said: str) -> str:
        """Return what is said, and of which rows that were kept there is doubt."""
        return f"in doubt: {said}; but {self.doubtful:.1%} of the rows are {_DOUBTS[self.doubt]}"

    def _repr_html_(self) -> str:
        """Return the verdict and its numbers for a notebook."""
        verdict, *numbers = str(self).splitlines()
        rows = "".join(
            f'<tr><th>{escape(name)}</th><td style="text-align:left">{escape(rest)}</td></tr>'
            for name, rest in (line.split(maxsplit=1) for line in numbers)
        )
        mark = "&#10003;" if self.clean else "&#9888;"
        return f"<p>{mark} <strong>{escape(verdict)}</strong></p><table>{rows}</table>"

    def __str__(self) -> str:
        if self.noise == "elliptical":
            return (
                f"{self.verdict}\n  removed       {self.removed:.2%} of at most "
                f"{self.contamination_bound:.2%}\n  farthest      {np.sqrt(self.objective):.2f} "
                "times the distance up to which rows are trusted"
            )
        level = "no level of clean rows is known"
        if self.noise != "other":
            level = f"{self.ratio:.2f} x clean median, clean up to {self.noise_floor.clean:.4g}"
        lines = [
            self.verdict,
            f"  objective     {self.objective:.4g} ({level})",
            f"  removed       {self.removed:.2%} of at most {self.contamination_bound:.2%}",
        ]
        if math.isfinite(self.unseen):
            lines.append(
                f"  unseen        a tenth of the rows may lie together up to {self.unseen:.2g} "
                "noise units away"
            )
        if self.moreau is not None:
            lines += [
                f"  stationarity  {self.stationarity:.4g} "
                f"(the theorem's scale is {self.theorem_stationarity:.4g})",
                f"  Moreau        {self.moreau.gradient_norm:.4g} +- {self.moreau.accuracy:.2g}",
            ]
        return "\n".join(lines)


def certified(
    problem: Problem, found: Found, bound: float, noise: str, expected: float = 1.0
) -> Certificate:
    """Say how good weights are, from the last survey at them."""
    weights = found.weights.values
    floor = NoiseFloor(0.0, 0.0) if noise == "other" else problem.floor(weights)
    return Certificate(
        objective=found.value,
        noise_floor=floor,
        removed=problem.removed(weights),
        contamination_bound=bound,
        status=found.status or Status.EXHAUSTED,
        n_effective=problem.n_effective(weights),
        noise=noise,
        expected=expected,
        support_level=found.support_level,
    )
