"""Descent over sample weights: one loop, step rules and updates as values."""

from outweigh.solvers.loop import descend
from outweigh.solvers.rounds import Rounds, descend_in_rounds
from outweigh.solvers.steps import Backtracking, Constant, Polyak
from outweigh.solvers.updates import EntropicMirror, ProjectedSubgradient
from outweigh.solvers.working_set import WorkingSet, descend_on_working_set

__all__ = [
    "Backtracking",
    "Constant",
    "EntropicMirror",
    "Polyak",
    "ProjectedSubgradient",
    "Rounds",
    "WorkingSet",
    "descend",
    "descend_in_rounds",
    "descend_on_working_set",
]
