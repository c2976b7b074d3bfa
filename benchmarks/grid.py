"""Three hundred fits of attacked rows, fixed once and for all.

Case number i is a pure function of i. The grid was written down before any rule was judged by it
and is not changed afterwards: an attack that should be added belongs into another study.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.attacked import ATTACKS, LAWS, Attacked, Scene, kind_of

N_CASES = 300
# Neither the seeds of the tests nor those of the other studies.
SEED = 7000

# Rows, features, nonzero entries of the mean.
SIZES = (
    (150, 5, 2),
    (150, 100, 5),
    (300, 20, 3),
    (500, 500, 5),
    (800, 50, 5),
    (1000, 200, 10),
    (2000, 20, 3),
    (3000, 300, 10),
    (5000, 50, 5),
    (20_000, 50, 5),
    (50_000, 20, 3),
)
SHARES = (0.01, 0.05, 0.1, 0.1, 0.2, 0.2, 0.3)


@dataclass(frozen=True)
class Case:
    """A fit of the grid: the rows, and what the estimator is told about them."""

    number: int
    attack: str
    law: str
    n: int
    d: int
    k: int
    eps: float
    sparse: bool
    known: bool

    @property
    def kind(self) -> str:
        return kind_of(self.attack)

    @property
    def told(self) -> float | str:
        """The contamination that the estimator is given."""
        return self.eps if self.known else "auto"

    @property
    def entries(self) -> int | None:
        """How many entries the estimate keeps; None for a dense one."""
        return self.k if self.sparse else None

    def draw(self) -> Attacked:
        """Return the attacked rows, the same in every run."""
        seed = [SEED, self.number]
        scene = Scene.draw(self.law, self.n, self.d, self.k, self.eps, seed)
        return ATTACKS[self.attack](scene)


def case(number: int) -> Case:
    """Return case `number` of the grid.

    An attack has ten cases. Their laws, sizes and shares run through lists of 9, 11 and 7, which
    have no divisor in common, at different strides, so that any two of them are nearly
    independent over the grid; so is what the estimator is told.
    """
    replicate, attack = divmod(number, len(ATTACKS))
    n, d, k = SIZES[(attack + replicate) % len(SIZES)]
    return Case(
        number=number,
        attack=list(ATTACKS)[attack],
        law=list(LAWS)[(attack + 4 * replicate) % len(LAWS)],
        n=n,
        d=d,
        k=k,
        eps=SHARES[(attack + 3 * replicate) % len(SHARES)],
        sparse=(attack + replicate // 2) % 2 == 0,
        known=(attack + 2 * replicate) % 3 == 0,
    )


def cases() -> list[Case]:
    """Return the whole grid."""
    return [case(number) for number in range(N_CASES)]
