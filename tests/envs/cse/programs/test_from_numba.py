"""Python functions as programs: numba writes their unoptimised IR."""

import pytest

import irgym
from irgym.base.errors import ProgramError
from irgym.envs.cse.environment import CSE
from irgym.programs import from_numba


def clipped(values, low):
    total = 0.0
    for place in range(len(values)):
        if values[place] * 2.0 > low:
            total += values[place] * 2.0
    return total


def test_a_function_is_tuned():
    uri = from_numba(clipped, "float64(float64[:], float64)")
    assert uri.startswith("cse:/") and len(CSE.task(uri).names) > 1
    result = irgym.tune(uri, searching=irgym.Searching(evaluations=8))
    assert result.cost <= result.cost_as_written


def test_a_function_that_numba_does_not_compile_is_refused():
    with pytest.raises(ProgramError, match="numba does not compile clipped"):
        from_numba(clipped, "float64(int64)")
