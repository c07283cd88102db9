"""Single operations of a program as separate programs."""

import numpy as np
import pytest

from irgym.core.cost import Outcome
from irgym.core.schedule import Schedule, replay
from irgym.envs.linalg import actions, runner
from irgym.envs.linalg.environment import LINALG
from irgym.envs.linalg.importing.description import describe
from irgym.envs.linalg.importing.parts import parts_of
from irgym.envs.linalg.scheduling.operations import OperationKind
from irgym.measure.timing import Timing

CAPTURING = """
func.func @main(%image: tensor<4x8xf32>, %bias: tensor<8xf32>) -> tensor<4x8xf32> {
  %half = arith.constant 0.5 : f32
  %empty = tensor.empty() : tensor<4x8xf32>
  %rows = linalg.broadcast ins(%bias : tensor<8xf32>) outs(%empty : tensor<4x8xf32>) dimensions = [0]
  %first = linalg.generic {
    indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>],
    iterator_types = ["parallel", "parallel"]}
    ins(%image : tensor<4x8xf32>) outs(%rows : tensor<4x8xf32>) {
    ^body(%one: f32, %other: f32):
      %scaled = arith.mulf %one, %half : f32
      %sum = arith.addf %scaled, %other : f32
      linalg.yield %sum : f32
  } -> tensor<4x8xf32>
  %second = linalg.generic {
    indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>],
    iterator_types = ["parallel", "parallel"]}
    ins(%first : tensor<4x8xf32>) outs(%rows : tensor<4x8xf32>) {
    ^body(%one: f32, %other: f32):
      %scaled = arith.mulf %one, %half : f32
      %sum = arith.addf %scaled, %other : f32
      linalg.yield %sum : f32
  } -> tensor<4x8xf32>
  return %second : tensor<4x8xf32>
}
"""

PROGRAMS = ("linalg://sequence/1?length=4", "linalg://sequence/2?length=5", "linalg://softmax/8x16")


def random_schedule(task, rng):
    state, taken = task.initial(), []
    while not task.terminal(state):
        action = task.space.sample(task.mask(state), rng)
        state = task.step(state, action)
        taken.append(action)
    return Schedule(tuple(taken))


def test_a_part_takes_fills_and_constants_along():
    text, program = describe(CAPTURING)
    kinds = [program.operations[place].kind for place in program.turns]
    assert kinds == [OperationKind.ELEMENTWISE] * 2
    first, second = parts_of(text, program.turns)
    assert first == second
    _, part = describe(first)
    assert [operation.name for operation in part.operations] == ["broadcast", "generic"]
    assert len(part.arguments) == 2


@pytest.mark.parametrize("uri", PROGRAMS)
def test_every_operation_with_a_turn_is_a_part(uri):
    task = LINALG.task(uri)
    parts = task.parts()
    loops = [task.program.operations[place].bounds for place in reversed(task.order)]
    assert [part.program.operations[part.order[0]].bounds for part in parts] == loops
    assert all(len(part.order) == 1 and part.parts() == () for part in parts)
    assert len({part.uri for part in parts}) == len({part.text for part in parts})


@pytest.mark.parametrize("uri", PROGRAMS)
def test_the_schedule_of_the_whole_does_what_those_of_the_parts_do(uri):
    task, rng = LINALG.task(uri), np.random.default_rng(0)
    parts = task.parts()
    for _ in range(2):
        schedules = [random_schedule(part, rng) for part in parts]
        whole = replay(task, task.joined(schedules))
        assert task.terminal(whole)
        alone = [replay(part, schedule) for part, schedule in zip(parts, schedules, strict=True)]
        for place, part, state in zip(reversed(task.order), parts, alone, strict=True):
            assert whole.operations[place].steps == state.operations[part.order[0]].steps
        quick = Timing(budget_ns=1, fewest=1, most=1)
        measured = runner.measure(task.text, task.script(whole), task.target, quick)
        assert measured.outcome in (Outcome.OK, Outcome.COMPILE_ERROR), measured.detail


def test_equal_operations_of_a_network_are_one_part():
    task = LINALG.task("linalg://resnet18?size=32")
    parts = task.parts()
    assert len(parts) == len(task.order)
    assert len({id(part) for part in parts}) == len({part.text for part in parts}) < 0.6 * len(parts)
    assert task.joined([Schedule()] * len(parts)).actions[0].kind == actions.NEXT
