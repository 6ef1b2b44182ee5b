"""Checks of what a user chose; each error names the input, its value and what is accepted."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real


def check_number(name: str, value: object, least: float, most: float) -> None:
    """``value`` is a number from ``least`` to ``most``."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not least <= value <= most:  # type: ignore[operator]  # also refuses NaN
        raise ValueError(f"{name} is {value!r}, expected {least} to {round(most, 4)}")


def check_whole(name: str, value: object, least: int, most: int) -> None:
    """``value`` is a whole number from ``least`` to ``most``."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{name} is {value!r}, expected a whole number from {least} to {most}")


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """``value`` is one of ``choices``."""
    # Types are compared too: for Python 1 equals True.
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        raise ValueError(f"{name} is {value!r}, expected one of {', '.join(map(repr, choices))}")


def check_flag(name: str, value: object) -> None:
    """``value`` is True or False."""
    check_choice(name, value, (True, False))
