"""Descent over sample weights: one loop, step rules and updates as values."""

from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.optimise.descent import descend
from outweigh.optimise.steps import (
    SOLVERS,
    Backtracking,
    Constant,
    EntropicMirror,
    Polyak,
    ProjectedSubgradient,
    Subgradient,
    steps_for,
)

__all__ = [
    "SOLVERS",
    "Backtracking",
    "CappedSimplex",
    "Constant",
    "EntropicMirror",
    "Polyak",
    "ProjectedSubgradient",
    "Subgradient",
    "descend",
    "steps_for",
]
