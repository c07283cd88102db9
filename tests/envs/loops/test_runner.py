import ctypes

import numpy as np
import pytest

from irgym.core.cost import Outcome
from irgym.core.errors import IrgymError
from irgym.core.schedule import Schedule, replay
from irgym.envs.loops import runner
from irgym.envs.loops.baselines import PEERS, Peer
from irgym.envs.loops.codegen.backends import preferred
from irgym.envs.loops.codegen.lower import CodeTooLarge
from irgym.envs.loops.contraction import parse_uri
from irgym.envs.loops.environment import LOOPS
from irgym.measure.arrays import aligned
from irgym.measure.bench import MeasuringBench
from irgym.measure.cache import CostCache
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
    """A back end whose code does what it is told to."""

    def __init__(self, act):
        self.act = act

    def compile(self, contraction, nest):
        return self

    def run(self, a, b, c, repetitions):
        self.act(c)

    def close(self):
        pass


def plant(monkeypatch, act):
    monkeypatch.setattr(runner, "backend", lambda name: Planted(act))


def test_a_right_nest_gets_samples():
    found = runner.measure(URI, nest_of(URI, "split_8 down swap_down"), preferred().name, TIMING)
    assert found.ok and found.cost > 0 and 0 < found.compile_s < 1


def test_an_output_never_written_is_wrong(monkeypatch):
    plant(monkeypatch, lambda c: None)
    assert runner.measure(URI, nest_of(URI), "planted", TIMING).outcome is Outcome.WRONG_RESULT


def test_one_wrong_element_is_wrong(monkeypatch):
    _contraction, _a, _b, reference = runner._problem(URI, runner.SEED)

    def act(c):
        right = reference.astype(np.float32).ravel()
        right[-1] += 0.01
        ctypes.memmove(c, right.ctypes.data, right.nbytes)

    plant(monkeypatch, act)
    found = runner.measure(URI, nest_of(URI), "planted", TIMING)
    assert found.outcome is Outcome.WRONG_RESULT and "0.01" in found.detail
    assert not runner.validate(URI, nest_of(URI), "planted", inputs=1, seed=runner.SEED).ok


def test_code_that_is_too_large_is_a_compile_error(monkeypatch):
    class Refuses:
        def compile(self, contraction, nest):
            raise CodeTooLarge("65,537 multiply-adds")

    monkeypatch.setattr(runner, "backend", lambda name: Refuses())
    found = runner.measure(URI, nest_of(URI), "planted", TIMING)
    assert found.outcome is Outcome.COMPILE_ERROR and "65,537" in found.detail


@pytest.mark.parametrize("uri", PROGRAMS)
@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_peers_compute_the_same(uri: str, name: str):
    if name == "torch":
        pytest.importorskip("torch")
    contraction = parse_uri(uri)
    a, b = contraction.random_inputs(3)
    peer = PEERS[name](contraction, a, b)
    peer.run(2)
    expected = contraction.reference(a, b)
    np.testing.assert_allclose(peer.result(), expected, atol=runner.tolerance(contraction))
    assert name in peer.detail and "thread" in peer.detail


def test_a_wrong_peer_is_refused(monkeypatch):
    wrong = aligned((24, 32))
    wrong[:] = 1.0
    monkeypatch.setitem(
        runner.PEERS, "wrong", lambda contraction, a, b: Peer(lambda n: None, lambda: wrong, "wrong")
    )
    with pytest.raises(IrgymError, match="wrong gives a wrong result"):
        runner.compare(URI, nest_of(URI), preferred().name, "wrong", 3)


@pytest.mark.parametrize("uri", PROGRAMS)
def test_validation_agrees_with_numpy(uri: str):
    found = runner.validate(uri, nest_of(uri), preferred().name, inputs=2, seed=5)
    assert found.ok and found.inputs == 2 and found.error < runner.tolerance(parse_uri(uri))


def test_the_bench_measures_loops_in_a_child(tmp_path):
    task = LOOPS.task("loops://mm/128x128x128")
    good = "split_8 down swap_down down split_32 swap_up swap_up"
    states = [replay(task, Schedule.parse(text, task.space)) for text in ("", good)]
    with MeasuringBench(CostCache(tmp_path / "costs.sqlite")) as bench:
        slow, fast = (found.cost for found in bench.evaluator.evaluate([task.job(s) for s in states]))
        assert fast < slow
        versus = bench.call(LOOPS.versus_call("numpy", task, states[1]))
        assert len(versus.ratios) == 15 and "numpy" in versus.detail
        peak = bench.call(LOOPS.peak_call(task, states[1]))
        assert 0.05 < np.median(peak.ratios) < 1.1
        assert 0.3 < task.contraction.flops / peak.peer_ns / bench.peak_gflops < 3.0
        assert all(found.cached for found in bench.evaluator.evaluate([task.job(s) for s in states]))


def test_the_shipped_policy_is_quick_and_good(tmp_path):
    pytest.importorskip("torch")
    from irgym.nets.policy import TorchPolicy
    from irgym.search.rollout import rollout

    path = LOOPS.policies()["default"]
    assert path.stat().st_size < 2_000_000
    policy = TorchPolicy.load(path)
    with MeasuringBench(CostCache(tmp_path / "costs.sqlite")) as bench:
        gains = []
        for uri in LOOPS.dataset("mm64_256_16_range").test[::54]:
            task = LOOPS.task(uri)
            policy.check(task.space, task.observe(task.initial()))
            [path_taken] = rollout(task, policy, 1, None)
            first, last = bench.evaluator.evaluate([task.job(task.initial()), task.job(path_taken[-1].state)])
            gains.append(first.cost / last.cost)
    assert np.exp(np.mean(np.log(gains))) > 1.3
