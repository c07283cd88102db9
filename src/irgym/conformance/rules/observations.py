"""Rules about observations."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, cast

import numpy as np

from irgym.conformance.case import Case
from irgym.conformance.rule import StateRule
from irgym.core.candidates import CandidateObservation


def _arrays(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    """Yield the arrays that an observation is made of."""
    if isinstance(value, np.ndarray):
        yield cast("np.ndarray[Any, Any]", value)
    elif isinstance(value, Mapping):
        for part in value.values():  # pyright: ignore[reportUnknownVariableType]
            yield from _arrays(part)
    elif isinstance(value, tuple | list):
        for part in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _arrays(part)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from _arrays(getattr(value, field.name))


def _form(value: Any) -> str:
    """Return the type of an observation, with its shape if it is an array."""
    if not isinstance(value, np.ndarray):
        return type(value).__name__
    array = cast("np.ndarray[Any, Any]", value)
    return f"{array.dtype}{list(array.shape)}"


def _in_spaces(case: Case) -> str:
    for name, value in case.elements.items():
        space = case.task.views[name].space()
        if space is None:
            continue
        wanted = getattr(space, "dtype", None)
        if isinstance(value, np.ndarray) and wanted is not None and not _form(value).startswith(f"{wanted}["):
            return f"the observation {name} is {_form(value)}, and its space has {wanted}"
        if not space.contains(value):
            return f"the observation {name} ({_form(value)}) does not lie in its space, {space}"
    return ""


def _finite(case: Case) -> str:
    for name, value in case.elements.items():
        for array in _arrays(value):
            if np.issubdtype(array.dtype, np.floating) and not np.isfinite(array).all():
                return f"the observation {name} has a number that is not finite"
    return ""


def _steady(case: Case) -> str:
    task = case.task
    for name, seen in case.seen.items():
        view = task.views[name]
        first, second = list(_arrays(seen)), list(_arrays(view.seen(task, case.state)))
        if len(first) != len(second) or any(map(_differ, first, second)):
            return f"the observation {name} of one state differs from call to call"
        shown = case.elements[name]
        initial = view.element(task, task.initial(), lambda: 1.0)
        if _form(shown) != _form(initial):
            return f"the observation {name} is {_form(shown)} here, and {_form(initial)} at the start"
    return ""


def _differ(first: np.ndarray[Any, Any], second: np.ndarray[Any, Any]) -> bool:
    return first.shape != second.shape or bool((first != second).any())


def same_observations(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Say whether observations of two states, by name, hold equal numbers."""
    arrays, others = (list(_arrays(list(seen.values()))) for seen in (first, second))
    return len(arrays) == len(others) and not any(map(_differ, arrays, others))


def _rows(case: Case) -> str:
    pairs = len(case.mask.candidates)
    for name, seen in case.seen.items():
        if isinstance(seen, CandidateObservation) and len(seen.candidates) != pairs:
            return f"the observation {name} has {len(seen.candidates)} rows for {pairs} candidates"
    return ""


OBSERVATION_RULES = (
    StateRule("observation-finite", "Observations hold finite numbers.", _finite),
    StateRule(
        "observation-space", "Every observation lies in its space, with its dtype and shape.", _in_spaces
    ),
    StateRule(
        "observation-steady",
        "An observation is the same at each call, and has one form in all states.",
        _steady,
    ),
    StateRule("observation-rows", "An observation has a row for each candidate of the mask.", _rows),
)
