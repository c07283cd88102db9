"""Dials whose costs crash, take their time, or scatter; measured in a separate process."""

import os
import random
import time

import dials

from irgym.core.cost import Call, Job, Measurement, Outcome


class Wild(dials.Dials):
    """How its candidates behave is named by a function of this module."""

    def __init__(self, code: tuple[int, ...], behaviour: str) -> None:
        super().__init__(code)
        self.behaviour = behaviour

    def job(self, state: dials.State) -> Job:
        call = Call(f"wild:{self.behaviour}", (state[0], self.code))
        return Job(call, self.uri, self.key(state), self.behaviour, "score", target="")


def crash(digits: tuple[int, ...], code: tuple[int, ...]) -> Measurement:
    """Crash wherever the first dial shows 4."""
    if digits[0] == 4:
        os.abort()
    return dials.cost(digits, code)


def hang(digits: tuple[int, ...], code: tuple[int, ...]) -> Measurement:
    """Hang wherever the first dial shows 4."""
    while digits[0] == 4:
        time.sleep(0.1)
    return dials.cost(digits, code)


def nap(digits: tuple[int, ...], code: tuple[int, ...]) -> Measurement:
    time.sleep(0.3)
    return dials.cost(digits, code)


def scatter(digits: tuple[int, ...], code: tuple[int, ...]) -> Measurement:
    """Measure something else each time."""
    cost = dials.cost(digits, code).cost
    return Measurement(Outcome.OK, (cost * random.uniform(1.0, 1.1),))


def bug(digits: tuple[int, ...], code: tuple[int, ...]) -> Measurement:
    raise KeyError(digits)
