"""What a run and a worker of a farm say to each other: calls by the batch, and their answers."""

from dataclasses import dataclass

from irgym.measure.isolation.child import Answer
from irgym.measure.isolation.protocol import Limits

BATCH_S = 0.2
"""Work that a worker does at once, in seconds: much more than handing it over takes."""

LEAST_S = 0.005
"""Work that is not worth dividing among workers, in seconds: about as much as handing it over takes."""

LARGEST = 32
"""Calls that a worker gets at once, at most."""

SEND_S = 0.0
"""How long Dask may hold a message back to send it with the next one, in seconds. By itself it does so for up
to 10 ms on each of the ways from a run to a worker and back, longer than many a candidate takes."""


@dataclass(frozen=True)
class Batch:
    """Calls for one worker.

    Attributes:
        requests: Packed calls.
        limits: What each of them may use; the worker chooses the core.
        run: Name of the run that they belong to.
        waiting: Calls of the run that no worker has yet.
    """

    requests: tuple[bytes, ...]
    limits: Limits
    run: str
    waiting: int


@dataclass(frozen=True)
class Answers:
    """What became of a batch.

    Attributes:
        answers: One for each of the first calls, in order, packed. The others had to wait longer than
            `BATCH_S`: they may run elsewhere.
        seconds: Time that they took.
    """

    answers: tuple[Answer, ...]
    seconds: float


class Left(Exception):
    """The worker leaves the farm: the batch must run elsewhere."""


def batch_size(waiting: int, workers: int, call_s: float) -> int:
    """Return how many calls to hand to a worker at once.

    Args:
        waiting: Calls that no worker has.
        workers: Number of workers.
        call_s: Seconds that a call took lately.

    Returns:
        As many as `BATCH_S` takes, but fewer near the end, so that no worker is left idle; at least 1, and
        at most those that wait.
    """
    call_s = max(call_s, 1e-6)
    shared = max(waiting // (2 * workers), int(LEAST_S / call_s))
    return max(1, min(int(BATCH_S / call_s), LARGEST, waiting, shared))
