from dataclasses import replace

import pytest

from irgym.base.errors import IrgymError
from irgym.core.schedule import Schedule, replay
from irgym.core.target import X86_64_V3, X86_64_V4, Cache, Target
from irgym.envs.loops.compiling.plan import plan
from irgym.envs.loops.environment import LOOPS
from irgym.envs.loops.legality import MAX_LOOPS
from irgym.envs.loops.modelling.analytical import ranked, widths
from irgym.envs.loops.modelling.model import slots
from irgym.envs.loops.nest import Nest, initial_nest
from irgym.envs.loops.programs.contraction import parse_uri
from irgym.envs.loops.runner import validate
from irgym.envs.loops.sketches import route
from irgym.envs.loops.task import ANALYTICAL

SMALL = replace(X86_64_V3, caches=(Cache(1, 32 << 10, 64, 8), Cache(2, 256 << 10, 64, 4)))
LARGE = replace(X86_64_V4, caches=(Cache(1, 48 << 10, 64, 12), Cache(2, 2 << 20, 64, 16)))
PROGRAMS = (
    "loops://mm/256x256x256",
    "loops://mm/1x4096x1024",
    "loops://mm/1023x517x259",
    "loops://bmm/3x17x31x8",
    "loops://conv/1x14x14x16x32x3x3?stride=2",
    "loops://einsum/mk,k->m?m=40&k=70",
    "loops://einsum/mk,nk->mn?m=40&n=70&k=90",
    "loops://mm/1x1x1",
    "loops://einsum/ij->ji?dtype=bf16&i=30&j=41",
    "loops://mm/65x130x70?dtype=i8",
)


@pytest.mark.parametrize("uri", PROGRAMS)
@pytest.mark.parametrize("target", (SMALL, LARGE), ids=("small", "large"))
def test_its_nests_are_made_by_actions_and_the_best_is_no_worse_than_the_program(uri: str, target: Target):
    contraction = parse_uri(uri)
    nests = ranked(contraction, target)
    assert len(set(nests)) == len(nests)
    here: list[Nest] = []
    for nest in nests[:8]:
        task = LOOPS.task(uri, "llvm")
        state = task.initial()
        for action in route(contraction, nest, task.target):
            state = task.step(state, action)
        here.append(state.nest)
    assert here == list(nests[:8])
    assert slots(contraction, nests[0], target) <= slots(contraction, initial_nest(contraction), target)


@pytest.mark.parametrize("uri", PROGRAMS)
def test_the_pipeline_computes_the_right_result(uri: str):
    task = LOOPS.task(uri, "llvm")
    state = replay(task, task.pipeline(ANALYTICAL))
    assert state.nest == ranked(parse_uri(uri), task.target)[0]
    assert validate(uri, state.nest, task.backend.name, task.target, 2, 1).ok


@pytest.mark.parametrize("uri", PROGRAMS)
def test_the_action_makes_the_nest_of_the_pipeline(uri: str):
    task = LOOPS.task(uri, "llvm")
    made = replay(task, Schedule.parse("analytical", task.space))
    assert made.nest == replay(task, task.pipeline(ANALYTICAL)).nest and made.cursor == 0


@pytest.mark.parametrize("uri", PROGRAMS)
def test_the_action_has_the_width_and_the_packed_inputs_that_it_is_given(uri: str):
    task = LOOPS.task(uri, "llvm")
    arrangements = [
        action
        for action in task.space.legal(task.mask(task.initial()))
        if task.space.kinds[action.kind].name == "analytical"
    ]
    assert arrangements
    for action in arrangements:
        made = task.step(task.initial(), action)
        width, packs = (
            choices[index] for choices, index in zip(task.space.kinds[0].slots, action.params, strict=True)
        )
        assert packs in (0, "".join(sorted("".join(loop.packs for loop in made.nest.loops))) or "none")
        tiles = plan(task.contraction, made.nest, task.target)
        if len(widths(task.contraction, task.target)) > 1:
            assert width in (0, -(-tiles.spans[-1] // tiles.lanes))
        # Only the unscheduled nest can be arranged.
        again = task.space.allows(task.mask(made), action)
        assert again == (made.nest == initial_nest(task.contraction))


def test_nests_of_many_dimensions_have_no_more_loops_than_a_nest_may():
    uri = "loops://einsum/abcdefgh,hijk->abcdefgijk?" + "&".join(f"{dim}=3" for dim in "abcdefghijk")
    task = LOOPS.task(uri, "llvm")
    made = replay(task, Schedule.parse("analytical", task.space))
    assert len(task.initial().nest.loops) <= len(made.nest.loops) <= MAX_LOOPS


def test_sizes_follow_the_target():
    product = parse_uri("loops://mm/1024x1024x1024")
    small, large = (ranked(product, target)[0] for target in (SMALL, LARGE))
    assert small != large
    # The copied block of A stays within the second cache.
    for nest, target in ((small, SMALL), (large, LARGE)):
        steps = {loop.dim: loop.step for loop in reversed(nest.loops)}
        assert 4 * steps["m"] * steps["k"] <= target.cache(2)


def test_there_is_no_other_pipeline():
    with pytest.raises(IrgymError, match="choose analytical"):
        LOOPS.task("loops://mm/8x8x8", "llvm").pipeline("oz")
