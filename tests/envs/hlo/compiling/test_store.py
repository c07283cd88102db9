"""Store and pool: modules are those of their paths, whatever the order of requests."""

import hashlib
import re
from pathlib import Path

import numpy as np
import pytest
from hlo_modules import ALL
from hypothesis import given, settings
from hypothesis import strategies as st

from irgym.envs.hlo.actions import KIND, PASSES, STOP
from irgym.envs.hlo.compiling.engine import load_engine
from irgym.envs.hlo.compiling.pool import LIMITS, Pool, failed_check
from irgym.envs.hlo.compiling.store import Request, Store, Summary
from irgym.envs.hlo.environment import HLO
from irgym.measure.passes.pool import PassPool
from irgym.measure.passes.store import Failure, PassFailure

pytestmark = pytest.mark.usefixtures("engine")


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    for name, text in ALL.items():
        (folder / f"{name}.pb").write_bytes(load_engine().from_text(text).proto())
    return [str(folder / f"{name}.pb") for name in ALL]


def fresh(program, kinds):
    """Return a module replayed from the original, and the kinds that changed it."""
    store = Store(load_engine())
    module = store.module(program, ()).clone()
    return module, tuple(kind for kind in kinds if store.apply(module, kind))


kinds = st.integers(0, len(PASSES) - 1)


@settings(max_examples=60, deadline=None)
@given(
    walks=st.lists(st.tuples(st.integers(0, 3), st.lists(kinds, max_size=6)), min_size=1, max_size=6),
    order=st.randoms(use_true_random=False),
    capacity=st.sampled_from([1, 40, 10_000]),
)
def test_steps_in_any_order_are_replays(programs, walks, order, capacity):
    store = Store(load_engine(), capacity)
    paths = [() for _ in walks]
    left = [list(steps) for _, steps in walks]
    while any(left):
        chosen = [place for place, steps in enumerate(left) if steps and order.random() < 0.7]
        chosen.sort(key=lambda place: (programs[walks[place][0]], paths[place]))
        requests = [
            Request(programs[walks[place][0]], paths[place], left[place].pop(0), False) for place in chosen
        ]
        for place, request, reply in zip(chosen, requests, store.step(requests), strict=True):
            assert not isinstance(reply, Failure)
            module, effective = fresh(request.program, (*request.path, request.kind))
            assert effective == ((*request.path, request.kind) if reply else request.path)
            if isinstance(reply, Summary):
                assert reply == store.summary(module, analysed=False)
                paths[place] = (*request.path, request.kind)
    for path, (program, _) in zip(paths, walks, strict=True):
        found = store.module(programs[program], path)
        assert found.fingerprint() == fresh(programs[program], path)[0].fingerprint()
        assert found.fingerprint() == store.exported(programs[program], path).fingerprint()


def test_a_module_that_gave_way_to_its_successor_is_taken_over(programs):
    store, (program, *_) = Store(load_engine(), capacity=1), programs
    first = next(kind for kind in range(len(PASSES)) if fresh(program, (kind,))[1])
    store.step([Request(program, (), first, False)])
    onward = next(kind for kind in range(len(PASSES)) if fresh(program, (first, kind))[1] == (first, kind))
    replies = store.step([Request(program, (first,), onward, False)] * 2)
    assert replies[0] == replies[1] and isinstance(replies[0], Summary)


def test_the_mask_rules_out_only_what_changes_nothing(programs):
    from irgym.envs.hlo.compiling.modules import node_of

    store, rng = Store(load_engine()), np.random.default_rng(0)
    for program in programs:
        for _ in range(30):
            module = store.module(program, ()).clone()
            for _ in range(6):
                possible = node_of(store.summary(module, analysed=False)).possible[:STOP]
                before = module.fingerprint()
                for kind in np.flatnonzero(~possible).tolist():
                    assert not store.apply(module, kind), PASSES[kind].name
                assert module.fingerprint() == before
                store.apply(module, int(rng.choice(np.flatnonzero(possible))))


def test_a_pass_that_says_it_changed_nothing_changed_nothing(programs):
    store, rng = Store(load_engine()), np.random.default_rng(1)
    for program in programs:
        module = store.module(program, ()).clone()
        for _ in range(80):
            before = module.fingerprint()
            if not store.apply(module, int(rng.integers(len(PASSES)))):
                assert module.fingerprint() == before


def unnamed(orders):
    """Return orders with numbers for names: new names depend on those that were there before."""
    numbers = {}
    return re.sub(r"[^\s:]+", lambda name: str(numbers.setdefault(name[0], len(numbers))), orders)


@pytest.mark.parametrize(
    "uri", ["hlo://mlp?layers=2", "hlo://pinn?layers=2", "hlo://gru?layers=2", "hlo://decode"]
)
def test_a_pass_does_the_same_to_a_module_and_to_its_copy(uri):
    # A search copies modules that an episode changes in place.
    program, store, rng = HLO.task(uri).modules.file, Store(load_engine()), np.random.default_rng(1)
    for _ in range(8):
        module = store.module(program, ()).clone()
        for _ in range(25):
            possible = store.summary(module, analysed=False).possible
            kind = int(rng.choice([kind for kind in range(len(PASSES)) if possible >> kind & 1]))
            copy, before = module.clone(), (module.digest(), module.size)
            assert (copy.orders(), copy.text()) == (module.orders(), module.text())
            assert copy.fingerprint() == module.fingerprint()
            changed = store.apply(module, kind)
            assert store.apply(copy, kind) == changed
            assert (copy.digest(), copy.size) == (module.digest(), module.size)
            assert unnamed(copy.orders()) == unnamed(module.orders())
            assert changed or before == (module.digest(), module.size)
            module = copy if rng.random() < 0.5 else module


def test_processes_agree(pool, programs):
    path = (KIND["algsimp"], KIND["dce"])
    with_another = Pool(1)
    try:
        prints = {
            processes.call("fingerprint", program, path)
            for program in programs[:1]
            for processes in (pool, with_another)
        }
    finally:
        with_another.close()
    assert len(prints) == 1


def test_a_pass_that_fails_is_a_failure_and_nothing_is_lost(programs, monkeypatch):
    store = Store(load_engine())
    apply = store.apply

    def failing(module, kind):
        if kind == KIND["cse"]:
            raise PassFailure("cse: planted")
        return apply(module, kind)

    monkeypatch.setattr(store, "apply", failing)
    requests = [Request(programs[0], (), KIND[name], False) for name in ("algsimp", "cse", "dce")]
    first, failed, last = store.step(requests)
    assert isinstance(first, Summary) and isinstance(last, Summary)
    assert failed == Failure("cse: planted")


def test_an_abort_costs_its_own_request_only(programs, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    processes = PassPool[Request, Summary]("aborting_store", "XLA", LIMITS, 1, failed_check)
    requests = [Request(programs[0], (), KIND[name], False) for name in ("algsimp", "cse", "dce")]
    try:
        first, failed, last = processes.step(requests)
    finally:
        processes.close()
    assert isinstance(first, Summary) and isinstance(last, Summary)
    assert isinstance(failed, Failure)
    assert failed.reason == "XLA aborted: planted == 1"


def test_content_is_named_by_its_hash(programs, tmp_path):
    from irgym.envs.hlo.programs.sources import content_of

    file = tmp_path / "x.pb"
    file.write_bytes(b"abc")
    assert hashlib.sha256(b"abc").hexdigest().startswith(content_of(file))
