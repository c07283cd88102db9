from dataclasses import fields, replace

import numpy as np
import pytest

from irgym.core.target import AARCH64, LEVELS, NUMBERS, X86_64, X86_64_V3, X86_64_V4, Cache, Target
from irgym.core.target_observation import TARGET_VIEW

MACHINE = X86_64_V4.on(Target("", "", (), 0, 0, (Cache(1, 49152, 64, 12), Cache(2, 1 << 20, 64, 16)), 8))


def test_levels_have_the_registers_of_their_instruction_sets():
    found = {level.name: (level.lanes, level.registers, level.accumulators) for level in LEVELS}
    assert found == {
        "x86-64-v4": (16, 32, 28),
        "x86-64-v3": (8, 16, 12),
        "x86-64": (4, 16, 12),
        "aarch64": (4, 32, 28),
        "i686": (4, 8, 4),
    }


def test_a_wider_level_needs_all_that_a_narrower_one_does():
    assert set(X86_64_V3.features) < set(X86_64_V4.features)


def test_a_level_on_a_machine_has_its_caches_and_cores():
    narrow = X86_64_V3.on(MACHINE)
    assert (narrow.caches, narrow.cores) == (MACHINE.caches, 8)
    assert replace(narrow, caches=(), cores=0) == X86_64_V3


@pytest.mark.parametrize("part", [field.name for field in fields(Target)])
def test_every_part_is_in_the_text(part):
    others = {tuple: lambda value: value[:-1], int: lambda value: value + 1, str: lambda value: f"{value}x"}
    value = getattr(MACHINE, part)
    assert replace(MACHINE, **{part: others[type(value)](value)}).text != MACHINE.text


@pytest.mark.parametrize("part", [field.name for field in fields(Cache)])
def test_every_part_of_a_cache_is_in_the_text(part):
    first, *others = MACHINE.caches
    changed = replace(first, **{part: getattr(first, part) + 1})
    assert replace(MACHINE, caches=(changed, *others)).text != MACHINE.text


@pytest.mark.parametrize("target", [MACHINE, *LEVELS], ids=lambda target: target.name)
def test_numbers_for_policies(target):
    assert len(target.numbers) == NUMBERS and all(0 <= number <= 1 for number in target.numbers)


def test_numbers_tell_targets_apart():
    assert len({target.numbers for target in (MACHINE, X86_64_V4, X86_64_V3, X86_64, AARCH64)}) == 5
    assert MACHINE.numbers[-1] == 0.0, "it has no third level"


def test_the_observation_of_a_task_without_a_target_is_zero():
    class Made:
        target = MACHINE

    class Counted:
        target = None

    space = TARGET_VIEW.space()
    for task, wanted in ((Made(), MACHINE.numbers), (Counted(), (0.0,) * NUMBERS)):
        value = TARGET_VIEW.seen(task, None)
        assert value in space and np.allclose(value, wanted)
