import ctypes
from dataclasses import replace

import numpy as np
import pytest

from irgym.base.errors import IrgymError
from irgym.core.cost import Outcome
from irgym.core.schedule import Schedule, replay
from irgym.envs.loops import runner
from irgym.envs.loops.baselines import BASELINES, PreparedBaseline, prepared_baseline
from irgym.envs.loops.checking import inputs as checking
from irgym.envs.loops.checking.inputs import tolerant
from irgym.envs.loops.compiling.backends import preferred
from irgym.envs.loops.compiling.lower import CodeTooLarge
from irgym.envs.loops.environment import LOOPS
from irgym.envs.loops.programs.contraction import parse_uri
from irgym.envs.loops.programs.elements import ELEMENTS, F32
from irgym.measure.arrays import aligned
from irgym.measure.bench import MeasuringBench
from irgym.measure.cache import CostCache
from irgym.measure.checking.agreement import compare
from irgym.measure.target import host_target
from irgym.measure.timing import Timing

URI = "loops://mm/24x32x16"
TIMING = Timing(budget_ns=200_000)
PROGRAMS = (
    "loops://mm/24x33x17",
    "loops://bmm/3x9x17x8",
    "loops://conv/1x7x7x8x16x3x3?stride=2",
    "loops://einsum/km,kn->nm?k=9&m=8&n=7",
)


def nest_of(uri: str, text: str = ""):
    task = LOOPS.task(uri)
    return replay(task, Schedule.parse(text, task.space)).nest


class Planted:
    """Back end whose code is a given function."""

    def __init__(self, act):
        self.act = act

    def compile(self, contraction, nest):
        return self

    def run(self, a, b, c, repetitions):
        for _ in range(repetitions):
            self.act(a, b, c)

    def close(self):
        pass


def plant(monkeypatch, act):
    monkeypatch.setattr(runner, "backend", lambda name, target: Planted(act))


def test_a_right_nest_gets_samples():
    found = runner.measure(
        URI, nest_of(URI, "split_8 down swap_down"), preferred().name, host_target(), TIMING
    )
    assert found.ok and found.cost > 0 and found.compile_s > 0


def write(address, values):
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.ascontiguousarray(values, np.float32)
    ctypes.memmove(address, values.ctypes.data, values.nbytes)


def results_of(uri, a, b):
    """Return the results of the contraction for inputs in memory."""
    contraction = parse_uri(uri)
    inputs = [
        np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctypes.c_float)), shape)
        for address, shape in zip((a, b), contraction.shapes, strict=False)
    ]
    with np.errstate(over="ignore", invalid="ignore"):
        return contraction.reference(*inputs), inputs


def refused(monkeypatch, act, uri=URI):
    """Return why a planted program is rejected, both in a search and by the validation."""
    plant(monkeypatch, act)
    found = runner.measure(uri, nest_of(uri), "planted", host_target(), TIMING)
    assert found.outcome is Outcome.WRONG_RESULT
    for inputs in (1, 3):
        checked = runner.validate(uri, nest_of(uri), "planted", host_target(), inputs=inputs, seed=5)
        assert not checked.ok and not checked.checked and checked.detail
    return found.detail


def test_an_output_never_written_is_wrong(monkeypatch):
    assert "unwritten" in refused(monkeypatch, lambda a, b, c: None)


def test_one_wrong_element_is_wrong(monkeypatch):
    def act(a, b, c):
        right, _ = results_of(URI, a, b)
        right[-1, -1] += 1.0
        write(c, right)

    assert "1 of 768 numbers differ, the first at [23, 31]" in refused(monkeypatch, act)


def test_right_results_are_right(monkeypatch):
    plant(monkeypatch, lambda a, b, c: write(c, results_of(URI, a, b)[0]))
    assert runner.measure(URI, nest_of(URI), "planted", host_target(), TIMING).ok
    assert runner.validate(URI, nest_of(URI), "planted", host_target(), 3, 0).checked


def _skips_zeros(right, left, down):
    """Return the results of a kernel that takes any product with 0 to be 0."""
    products = left[:, :, None] * down[None]
    return np.where((left[:, :, None] == 0.0) | (down[None] == 0.0), 0.0, products).sum(1)


def _leaks(right, left, down):
    """Return sums with padding added: 0 times the last element of each row."""
    return right + 0.0 * left[:, -1:]


SPECIAL = {
    "NaN is 0": lambda right, left, down: np.where(np.isnan(right), 0.0, right),
    "NaN is infinite": lambda right, left, down: np.where(np.isnan(right), np.inf, right),
    "infinities are the greatest number": lambda right, left, down: np.clip(right, -3.4e38, 3.4e38),
    "infinities lose their sign": lambda right, left, down: np.where(np.isinf(right), np.inf, right),
    "products with 0 are left out": _skips_zeros,
    "padding leaks": _leaks,
    "the last row is infinite or right": lambda right, left, down: np.where(
        (np.arange(len(right))[:, None] == len(right) - 1) & np.isinf(left).any(), np.inf, right
    ),
}
"""Wrong results that are correct on all ordinary numbers, from the correct ones and the inputs."""


@pytest.mark.parametrize("name", SPECIAL)
def test_errors_on_special_numbers_alone_are_found(monkeypatch, name):
    def act(a, b, c):
        right, inputs = results_of(URI, a, b)
        with np.errstate(all="ignore"):
            write(c, SPECIAL[name](right, *inputs))

    plant(monkeypatch, act)
    assert runner.measure(URI, nest_of(URI), "planted", host_target(), TIMING).ok
    checked = runner.validate(URI, nest_of(URI), "planted", host_target(), inputs=1, seed=5)
    assert not checked.ok and "instead of" in checked.detail


def test_numbers_of_all_magnitudes_are_among_special_inputs():
    a, b = checking.special_inputs(parse_uri("loops://mm/64x64x64"), 1)
    for array in (a, b):
        assert all(
            (np.isnan(array) if np.isnan(number) else array == np.float32(number)).any()
            for number in checking.SPECIAL["f32"]
        )
        assert np.isinf(array[:, -1]).any()
    expected = checking.expected_of_special(parse_uri("loops://mm/64x64x64"), a, b)
    known = np.isfinite(expected.numbers) & ~expected.ignored
    assert 0.1 < known.mean() < 0.9, "some sums have no special factor, and some have"


@pytest.mark.parametrize("place", [0, 1_234_567, 3_999_999])
def test_one_product_missing_from_each_of_sums_of_four_million_is_wrong(monkeypatch, place):
    uri = "loops://mm/4x4x4000000"

    def act(a, b, c):
        right, (left, down) = results_of(uri, a, b)
        write(c, right - np.outer(left[:, place], down[place]))

    plant(monkeypatch, act)
    monkeypatch.setattr(runner, "sample", lambda run, timing: (run(1), (1.0,))[1])
    assert runner.measure(uri, nest_of(uri), "planted", host_target(), TIMING).outcome is Outcome.WRONG_RESULT


def test_sums_too_long_to_show_an_error_are_not_checkable(monkeypatch):
    monkeypatch.setitem(ELEMENTS, "f32", replace(F32, exact=1 << 20))
    uri = "loops://mm/1x1x4000000"
    checked = runner.validate(uri, nest_of(uri), preferred().name, host_target(), inputs=1, seed=77)
    assert checked.ok and not checked.checked and "first product" in checked.blind


def test_a_write_beyond_the_result_is_wrong(monkeypatch):
    def act(a, b, c):
        write(c, results_of(URI, a, b)[0])
        write(c + 4 * 24 * 32, np.zeros(1))

    assert "wrote beyond result 0" in refused(monkeypatch, act)


def test_a_write_to_an_input_is_wrong(monkeypatch):
    def act(a, b, c):
        write(c, results_of(URI, a, b)[0])
        write(b + 400, np.full(1, 0.5))

    assert "changed argument 1" in refused(monkeypatch, act)
    monkeypatch.undo()
    # The next candidate is not affected.
    assert runner.measure(URI, nest_of(URI), preferred().name, host_target(), TIMING).ok


def test_results_that_add_up_from_run_to_run_are_wrong(monkeypatch):
    runs = []

    def act(a, b, c):
        runs.append(None)
        write(c, results_of(URI, a, b)[0] * len(runs))

    plant(monkeypatch, act)
    assert runner.measure(URI, nest_of(URI), "planted", host_target(), TIMING).outcome is Outcome.WRONG_RESULT


def test_code_that_is_too_large_is_a_compile_error(monkeypatch):
    class Refuses:
        def compile(self, contraction, nest):
            raise CodeTooLarge("65,537 multiply-adds")

    monkeypatch.setattr(runner, "backend", lambda name, target: Refuses())
    found = runner.measure(URI, nest_of(URI), "planted", host_target(), TIMING)
    assert found.outcome is Outcome.COMPILE_ERROR and "65,537" in found.detail


@pytest.mark.parametrize("uri", PROGRAMS)
@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_baselines_compute_the_same(uri: str, name: str):
    if name == "torch":
        pytest.importorskip("torch")
    contraction = parse_uri(uri)
    a, b = contraction.random_inputs(3)
    baseline = prepared_baseline(name, contraction, a, b, 1)
    baseline.run(2)
    expected = tolerant(contraction, a, b)
    assert compare(expected, baseline.result().reshape(contraction.shapes[2])).ok
    assert name in baseline.detail and "thread" in baseline.detail


def test_a_wrong_baseline_is_refused(monkeypatch):
    wrong = aligned((24, 32))
    wrong[:] = 1.0
    monkeypatch.setitem(
        BASELINES,
        "wrong",
        lambda contraction, a, b, threads: PreparedBaseline(lambda n: None, lambda: wrong, "wrong"),
    )
    with pytest.raises(IrgymError, match="wrong gives a wrong result"):
        runner.compare(URI, nest_of(URI), preferred().name, host_target(), "wrong", 3)


@pytest.mark.parametrize("uri", PROGRAMS)
def test_validation_agrees_with_numpy(uri: str):
    found = runner.validate(uri, nest_of(uri), preferred().name, host_target(), inputs=2, seed=5)
    assert found.checked and found.inputs == 3 and 0 < found.error < 1


@pytest.mark.timed
def test_the_bench_measures_loops_in_a_child(tmp_path):
    small, large = (LOOPS.task(f"loops://mm/{size}x{size}x{size}") for size in (16, 128))
    schedule = "split_8 down swap_down down split_32 swap_up swap_up"
    scheduled = replay(large, Schedule.parse(schedule, large.space))
    jobs = [small.job(small.initial()), large.job(large.initial()), large.job(scheduled)]
    with MeasuringBench(CostCache(tmp_path / "costs.sqlite")) as bench:
        little, *much = (found.cost for found in bench.evaluator.evaluate(jobs))
        assert min(much) > 10 * little, "512 times the work"
        versus = bench.call(large.baseline_call("numpy", scheduled))
        assert len(versus.ratios) == 15 and "numpy" in versus.detail
        peak = bench.call(large.peak_call(scheduled))
        assert 0.01 < np.median(peak.ratios) < 1.1
        assert 0.3 < large.contraction.flops / peak.baseline_ns / bench.peak_gflops < 3.0
        assert all(found.cached for found in bench.evaluator.evaluate(jobs))


def episodes_of_the_shipped_policy():
    """Yield held-out tasks, each with the final state of this machine's policy."""
    pytest.importorskip("torch")
    from irgym.search.policies import load_policy
    from irgym.search.rollouts import rollout

    uris = LOOPS.dataset("mm64_256_16_range").test[::54]
    if host_target().name == "x86-64-v3":
        # The other policy never saw these.
        uris += LOOPS.dataset("bmm_attention").test[::2] + LOOPS.dataset("conv_networks").test[::2]
    for uri in uris:
        task = LOOPS.task(uri)
        policy = load_policy(LOOPS, "default", task)
        [path] = rollout(task, policy, 1, None)
        yield task, path[-1].state


def test_the_shipped_policies_are_small_and_their_code_is_right():
    assert all(path.stat().st_size < 2_000_000 for path in LOOPS.policies().values())
    for task, state in episodes_of_the_shipped_policy():
        assert state != task.initial()
        assert runner.validate(task.uri, state.nest, preferred().name, host_target(), inputs=1, seed=5).ok


@pytest.mark.timed
def test_the_shipped_policy_is_good_where_it_was_trained(tmp_path):
    if preferred().name not in ("avx512", "avx2"):
        pytest.skip("the policies were trained with AVX-512 and AVX2")
    with MeasuringBench(CostCache(tmp_path / "costs.sqlite")) as bench:
        gains = []
        for task, state in episodes_of_the_shipped_policy():
            jobs = [task.job(task.initial()), task.job(state)]
            first, last = bench.evaluator.evaluate(jobs)
            gains.append(first.cost / last.cost)
    assert np.exp(np.mean(np.log(gains))) > 1.3
