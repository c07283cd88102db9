"""What runs in the child: compile a nest, check its result, time it."""

import time
from collections.abc import Callable
from contextlib import closing
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from irgym.core.cost import Measurement, Outcome, Validation
from irgym.core.environment import Versus
from irgym.core.errors import IrgymError
from irgym.envs.loops.baselines import PEERS
from irgym.envs.loops.codegen.backends import Executable, backend
from irgym.envs.loops.codegen.lower import CodeTooLarge
from irgym.envs.loops.contraction import Contraction, Floats, parse_uri
from irgym.envs.loops.nest import Nest
from irgym.measure.arrays import aligned
from irgym.measure.machine import fingerprint
from irgym.measure.peak import peak_kernel
from irgym.measure.timing import Timing, interleave, sample

SEED = 20230904
"""Seed of the inputs on which candidates are checked and timed."""


def tolerance(contraction: Contraction) -> float:
    """Return the absolute error allowed on standard-normal inputs.

    Summing K products in float32 one after the other errs by about 2e-8 K (root mean square); the bound
    is well above the greatest of all outputs and far below one wrong or missing product.
    """
    terms = 1
    for dim in contraction.reductions:
        terms *= contraction.sizes[dim]
    return 1e-6 * (terms + 8)


@lru_cache(maxsize=4)
def _problem(uri: str, seed: int) -> tuple[Contraction, Floats, Floats, NDArray[np.float64]]:
    """Return the contraction, random inputs and the reference result; the last few are kept."""
    contraction = parse_uri(uri)
    a, b = contraction.random_inputs(seed)
    return contraction, a, b, contraction.reference(a, b)


@lru_cache(maxsize=4)
def _output(shape: tuple[int, ...]) -> Floats:
    """Return an output array, kept so that all candidates of a program write to the same memory."""
    return aligned(shape)


def _bind(executable: Executable, a: Floats, b: Floats, c: Floats) -> Callable[[int], None]:
    addresses = a.ctypes.data, b.ctypes.data, c.ctypes.data
    return lambda repetitions: executable.run(*addresses, repetitions)


def _error(c: Floats, reference: NDArray[np.float64]) -> float:
    """Return the greatest absolute error; NaN (an element never written) counts as infinite."""
    error = float(np.max(np.abs(c - reference)))
    return error if np.isfinite(error) else float("inf")


def measure(uri: str, nest: Nest, backend_name: str, timing: Timing) -> Measurement:
    """Compile, check and time a nest.

    Returns:
        Samples in nanoseconds, or the outcome of what failed: the code is too large, or the result wrong.
    """
    contraction, a, b, reference = _problem(uri, SEED)
    started = time.perf_counter()
    try:
        executable = backend(backend_name).compile(contraction, nest)
    except CodeTooLarge as error:
        return Measurement(Outcome.COMPILE_ERROR, detail=str(error))
    compile_s = time.perf_counter() - started
    with closing(executable):
        c = _output(contraction.shapes[2])
        c.fill(np.nan)
        run = _bind(executable, a, b, c)
        run(1)
        error = _error(c, reference)
        if error > tolerance(contraction):
            detail = f"the greatest error is {error:.3g}, more than {tolerance(contraction):.3g}"
            return Measurement(Outcome.WRONG_RESULT, compile_s=compile_s, detail=detail)
        return Measurement(Outcome.OK, sample(run, timing), compile_s)


def validate(uri: str, nest: Nest, backend_name: str, inputs: int, seed: int) -> Validation:
    """Compare a nest with numpy in float64 on random inputs."""
    contraction = parse_uri(uri)
    worst = 0.0
    with closing(backend(backend_name).compile(contraction, nest)) as executable:
        for place in range(inputs):
            a, b = contraction.random_inputs(seed + place)
            c = np.full(contraction.shapes[2], np.nan, np.float32)
            _bind(executable, a, b, c)(1)
            worst = max(worst, _error(c, contraction.reference(a, b)))
    allowed = tolerance(contraction)
    words = f"absolute error {allowed:.3g} on standard-normal inputs, against numpy in float64"
    return Validation(worst <= allowed, worst, words, inputs)


def compare(uri: str, nest: Nest, backend_name: str, peer: str, rounds: int) -> Versus:
    """Time a nest and a peer in turn, on the same inputs, in this process.

    Raises:
        IrgymError: The peer is not installed, or its result is wrong.
    """
    contraction, a, b, reference = _problem(uri, SEED)
    theirs = PEERS[peer](contraction, a, b)
    theirs.run(1)
    error = _error(theirs.result().reshape(reference.shape), reference)
    if error > tolerance(contraction):
        raise IrgymError(f"{peer} gives a wrong result for {uri} (error {error:.3g}): leave it out")
    with closing(backend(backend_name).compile(contraction, nest)) as executable:
        ours = _bind(executable, a, b, _output(contraction.shapes[2]))
        pairs = interleave(ours, theirs.run, rounds)
    return Versus(
        ratios=tuple(theirs_ns / ours_ns for ours_ns, theirs_ns in pairs),
        peer_ns=min(theirs_ns for _, theirs_ns in pairs),
        ours_ns=min(ours_ns for ours_ns, _ in pairs),
        detail=theirs.detail,
    )


def share_of_peak(uri: str, nest: Nest, backend_name: str, rounds: int) -> Versus:
    """Time a nest and the core's peak in turn, in this process.

    A core that runs wide vectors for long lowers its clock: only a peak measured at the same moment tells
    which share of it a nest reaches.

    Returns:
        Ratios that are shares of the peak; `peer_ns` is the time of the nest's operations at the peak.
    """
    contraction, a, b, _ = _problem(uri, SEED)
    with (
        peak_kernel(fingerprint()) as peak,
        closing(backend(backend_name).compile(contraction, nest)) as executable,
    ):
        iterations = max(1, contraction.flops // peak.flops)
        ours = _bind(executable, a, b, _output(contraction.shapes[2]))

        def at_peak(count: int) -> None:
            peak.run(count * iterations)

        pairs = interleave(ours, at_peak, rounds)
        scale = contraction.flops / (peak.flops * iterations)
    return Versus(
        ratios=tuple(scale * peak_ns / ours_ns for ours_ns, peak_ns in pairs),
        peer_ns=scale * min(peak_ns for _, peak_ns in pairs),
        ours_ns=min(ours_ns for ours_ns, _ in pairs),
        detail=peak.method,
    )
