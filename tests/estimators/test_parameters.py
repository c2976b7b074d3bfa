from __future__ import annotations

import inspect

import pytest

from outweigh import RobustMean, RobustPCA, RobustSparseMean, RobustSparsePCA
from outweigh.estimators.parameters import documented

FOUR = (RobustMean, RobustSparseMean, RobustPCA, RobustSparsePCA)


@pytest.mark.parametrize("cls", FOUR)
def test_every_parameter_is_documented_once_and_has_a_constraint(cls: type) -> None:
    assert cls.__doc__ is not None
    assert "{{" not in cls.__doc__
    for name in inspect.signature(cls).parameters:
        assert cls.__doc__.count(f"\n    {name} : ") == 1, name
        assert name in cls._parameter_constraints, name


def test_entries_of_a_base_are_filled_in_one_by_one_and_in_a_row() -> None:
    class Base:
        """Said once.

        Parameters
        ----------
        a : int
            The first.

        b, c : float
        d : str
            The last,
            in two lines.
        """

    Base.__doc__ = inspect.cleandoc(Base.__doc__ or "").replace("\n", "\n    ")

    @documented
    class Derived(Base):
        """{{a}}|{{b ... d}}"""

    assert Derived.__doc__ == (
        "a : int\n        The first.|b, c : float\n    d : str\n        The last,\n"
        "        in two lines."
    )


def test_a_name_that_no_base_documents_is_an_error() -> None:
    with pytest.raises(ValueError, match="nothing"):

        @documented
        class Derived:
            """{{nothing}}"""
