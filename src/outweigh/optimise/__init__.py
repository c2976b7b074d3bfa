"""Descent over sample weights: one loop, step rules and updates as values."""

from outweigh.optimise.descent import descend
from outweigh.optimise.rounds import Rounds, descend_in_rounds
from outweigh.optimise.steps import Backtracking, Constant, Polyak
from outweigh.optimise.updates import EntropicMirror, ProjectedSubgradient
from outweigh.optimise.working_set import WorkingSet, descend_on_working_set

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
