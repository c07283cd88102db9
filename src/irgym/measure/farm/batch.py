"""Messages between a run and a worker of a farm: batches of calls, and their answers."""

from dataclasses import dataclass

from irgym.measure.isolation.child import Answer
from irgym.measure.isolation.protocol import Limits

BATCH_S = 0.2
"""Duration of a batch in seconds: much longer than its transfer."""

LEAST_S = 0.005
"""Duration of work that is not worth dividing among workers, in seconds: about as long as its transfer."""

LARGEST = 32
"""Greatest number of calls in a batch."""

SEND_S = 0.0
"""Time in seconds that Dask may delay a message to send it together with the next one. Its default is up to
10 ms on each hop between run and worker, longer than many candidates take."""


@dataclass(frozen=True)
class Batch:
    """Calls for one worker.

    Attributes:
        requests: Packed calls.
        limits: Limits of each call; the worker chooses the core.
        run: Name of the run that they belong to.
        waiting: Number of the run's calls that no worker has yet.
    """

    requests: tuple[bytes, ...]
    limits: Limits
    run: str
    waiting: int


@dataclass(frozen=True)
class Answers:
    """The answers to a batch.

    Attributes:
        answers: A packed answer for each of the first calls, in order. The other calls did not start within
            `BATCH_S`, and may run elsewhere.
        seconds: Time that the answered calls took.
    """

    answers: tuple[Answer, ...]
    seconds: float


class Left(Exception):
    """The worker is leaving the farm, and the batch must run elsewhere."""


def batch_size(waiting: int, workers: int, call_s: float) -> int:
    """Return the number of calls for the next batch.

    Args:
        waiting: Number of calls that no worker has.
        workers: Number of workers.
        call_s: Recent duration of a call in seconds.

    Returns:
        The number of calls that take `BATCH_S`, or fewer near the end, so that no worker is idle; at least 1,
        and at most `waiting`.
    """
    call_s = max(call_s, 1e-6)
    shared = max(waiting // (2 * workers), int(LEAST_S / call_s))
    return max(1, min(int(BATCH_S / call_s), LARGEST, waiting, shared))
