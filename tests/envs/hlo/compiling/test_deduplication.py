"""irgym's pass, which merges equal computations unless another pass may change one for a single caller."""

import numpy as np
import pytest

from irgym.envs.hlo.compiling.engine import load_engine

pytestmark = pytest.mark.usefixtures("engine")

SUMS = """HloModule sums

first {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y)
}

second {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] OPERATION(a, b)
}

ENTRY main {
  p = f32[8,4] parameter(0)
  zero = f32[] constant(0)
  rows = f32[8] reduce(p, zero), dimensions={1}, to_apply=first
  columns = f32[4] reduce(p, zero), dimensions={0}, to_apply=second
  ROOT both = (f32[8], f32[4]) tuple(rows, columns)
}
"""

UNUSED = """HloModule unused

one {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] negate(x)
}

other {
  x = f32[] parameter(0)
  y = s32[] parameter(1)
  ROOT z = f32[] negate(x)
}

ENTRY main {
  p = f32[] parameter(0)
  n = s32[] parameter(1)
  a = f32[] call(p, p), to_apply=one
  b = f32[] call(p, n), to_apply=other
  ROOT sum = f32[] add(a, b)
}
"""

TOTAL = """
addN {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y)
}

totalN {
  p = f32[8] parameter(0)
  zero = f32[] constant(0)
  ROOT sum = f32[] reduce(p, zero), dimensions={0}, to_apply=addN
}
"""

NESTED = f"""HloModule nested
{TOTAL.replace("N {", "1 {").replace("addN", "add1")}{TOTAL.replace("N {", "2 {").replace("addN", "add2")}
ENTRY main {{
  p = f32[8] parameter(0)
  twice = f32[8] add(p, p)
  a = f32[] call(p), to_apply=total1
  b = f32[] call(twice), to_apply=total2
  ROOT sum = f32[] add(a, b)
}}
"""

LOOP = """
bodyN {
  t = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[] get-tuple-element(t), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  twice = f32[] add(x, x)
  ROOT r = (s32[], f32[]) tuple(next, twice)
}

conditionN {
  t = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(5)
  ROOT r = pred[] compare(i, n), direction=LT
}
"""

LOOPS = f"""HloModule loops
{LOOP.replace("N {", "1 {")}{LOOP.replace("N {", "2 {")}
ENTRY main {{
  x = f32[] parameter(0)
  zero = s32[] constant(0)
  begin = (s32[], f32[]) tuple(zero, x)
  first = (s32[], f32[]) while(begin), condition=condition1, body=body1
  ROOT second = (s32[], f32[]) while(first), condition=condition2, body=body2
}}
"""


def size(module) -> int:
    return int(np.sum(np.frombuffer(module.content().counts, dtype=np.int32)))


@pytest.mark.parametrize(
    ("text", "left_out"),
    [
        (SUMS.replace("OPERATION", "add"), 3),
        (SUMS.replace("OPERATION", "subtract"), 0),
        (UNUSED, 0),
        (UNUSED.replace("s32[]", "f32[]"), 3),
        (NESTED, 6),
        (LOOPS, 0),
    ],
    ids=["equal", "other operation", "other arguments", "equal arguments", "nested", "loops"],
)
def test_one_of_equal_computations_is_kept(text: str, left_out: int):
    engine = load_engine()
    module, before = engine.from_text(text), engine.from_text(text)
    assert module.run(engine.number("computation-deduplicator")) == (left_out > 0)
    module.verify()
    assert size(before) - size(module) == left_out
    assert not module.run(engine.number("computation-deduplicator"))
    assert not module.run(engine.number("dce"))


def test_calls_of_a_shared_computation_are_still_inlined():
    engine = load_engine()
    module = engine.from_text(NESTED)
    for name in ("computation-deduplicator", "call-inliner"):
        assert module.run(engine.number(name))
        module.verify()
    assert size(module) == 3 + 2 * 2 + 3
