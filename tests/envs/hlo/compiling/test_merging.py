"""No pass merges instructions or computations whose texts differ in anything but names."""

import re

import pytest

from irgym.envs.hlo.compiling.engine import Engine, Module, load_engine

from .pairs import COMPUTATIONS, PAIRS, Pair

pytestmark = pytest.mark.usefixtures("engine")

MERGING = (
    "cse",
    "computation-deduplicator",
    "algsimp",
    "algsimp-fixpoint",
    "algsimp-reassociate",
    "simplify-conditional",
    "simplify-while-loops",
    "slice-sinker",
    "flatten-call-graph",
    "call-inliner",
    "map-inline",
    "constant-folding",
    "reshape-mover",
    "tuple-simplifier",
    "simplify-sorts",
    "while-loop-invariant-code-motion",
)
"""The passes that compare instructions, and those that make instructions equal."""

BRANCHES = """
ENTRY main {
  p = pred[] parameter(0)
  pair = (f32[4,4]{1,0}, f32[4,4]{1,0}) parameter(1)
  ROOT r = f32[4,4]{1,0} conditional(p, pair, pair), true_computation=branch_float, false_computation=OTHER
}
"""

REDUCES = """
ENTRY main {
  x = f32[4,4]{1,0} parameter(0)
  zero = f32[] constant(0)
  a = f32[4]{0} reduce(x, zero), dimensions={0}, to_apply=largest_float
  ROOT r = f32[] reduce(a, zero), dimensions={0}, to_apply=OTHER
}
"""

SLICES = """
ENTRY main {
  x = f32[8]{0} parameter(0)
  y = f32[8]{0} parameter(1)
  a = f32[4]{0} slice(x), slice={[0:4]}
  b = f32[4]{0} slice(y), slice={[0:4]}
  c = f32[4]{0} slice(x), slice={[4:8]}
  d = f32[4]{0} slice(y), slice={[4:8]}
  f = pred[4]{0} compare(a, b), direction=LT, type=FLOAT
  g = pred[4]{0} compare(c, d), direction=LT, type=OTHER
  ROOT r = (pred[4]{0}, pred[4]{0}) tuple(f, g)
}
"""


def entry(module: Module) -> str:
    text = module.text()
    return text[text.index("ENTRY") :]


def results(module: Module) -> list[str]:
    """Return the names of the operands of the result."""
    found = re.search(r"ROOT .* tuple\((.*?)\)", entry(module))
    assert found is not None
    return found[1].split(", ")


def after(text: str, *passes: str) -> Module:
    engine = load_engine()
    module = engine.from_text(text)
    for name in passes:
        module.run(engine.number(name))
        module.verify()
    return module


def test_there_are_enough_pairs_and_none_twice():
    assert len({pair.name for pair in PAIRS}) == len(PAIRS) >= 60
    assert all(pair.first != pair.second for pair in PAIRS)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_instructions_that_differ_in_a_field_are_not_merged(pair: Pair):
    for name in MERGING:
        first, second = results(after(pair.module, name))
        assert first != second, name
        first, second = results(after(pair.module, name, "computation-deduplicator", "cse"))
        assert first != second, f"{name}, then cse"


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_equal_instructions_are_merged(pair: Pair):
    if pair.name in KEPT:
        pytest.skip(KEPT[pair.name])
    for text in (pair.first, pair.second):
        if text in APART:
            continue
        first, second = results(after(Pair("twins", text, text).module, "cse"))
        assert first == second, text
        assert "irgym" not in after(Pair("twins", text, text).module, "cse").text()


KEPT = {
    "all-reduce: channel": "a collective with a channel has effects elsewhere",
    "all-reduce: global ids": "a collective with a channel has effects elsewhere",
    "iota: frontend attributes": "iotas are shared through their users",
    "iota: dimension": "iotas are shared through their users",
    "iota: layout": "iotas are shared through their users",
}
"""Pairs whose instructions XLA never merges directly."""

APART = {
    f"{name}({operands}), {attributes}"
    for name, operands, attributes in (
        ("f32[4,4]{1,0} add", "x, y", "control-predecessors={x}"),
        ("f32[4,4]{1,0} custom-call", "x", 'custom_call_target="a", custom_call_has_side_effect=true'),
    )
}
"""Instructions that are never merged, as their order matters."""


def test_the_ways_to_compare_reach_into_branches_reductions_and_slices():
    for text, other, same, name, count in (
        (BRANCHES, "branch_total", "branch_float", "simplify-conditional", " compare("),
        (REDUCES, "largest_total", "largest_float", "algsimp", " reduce("),
        (REDUCES.replace("largest_float", "sum_zero"), "sum_minus_zero", "sum_zero", "algsimp", " reduce("),
        (SLICES, "TOTALORDER", "FLOAT", "slice-sinker", " compare("),
    ):
        different = after(f"HloModule m\n{COMPUTATIONS}{text.replace('OTHER', other)}", name, "cse", "dce")
        alike = after(f"HloModule m\n{COMPUTATIONS}{text.replace('OTHER', same)}", name, "cse", "dce")
        assert entry(different).count(count) > entry(alike).count(count), name
        assert "irgym" not in different.text() + alike.text()


def test_iotas_that_differ_are_not_exchanged():
    iota = "f32[4,4]{1,0} iota(), iota_dimension=0"
    marked = 'frontend_attributes={mark="1"}'
    text = f"""HloModule m
ENTRY main {{
  one = {iota}
  other = {iota}, {marked}
  a = f32[4,4]{{1,0}} negate(one)
  b = f32[4,4]{{1,0}} negate(other)
  ROOT both = (f32[4,4]{{1,0}}, f32[4,4]{{1,0}}) tuple(a, b)
}}
"""
    assert results(after(text, "cse")) == ["a", "b"]
    assert "barrier" not in after(text, "cse").text()
    assert results(after(text.replace(f", {marked}", ""), "cse")) == ["a", "a"]


def test_a_negative_zero_is_read_back():
    engine: Engine = load_engine()
    module = engine.from_text(
        "HloModule m\nENTRY e {\n a = f32[2] constant({-0.0, 0})\n b = c64[] constant((-0.0, 1))\n"
        " ROOT t = (f32[2], c64[]) tuple(a, b)\n}"
    )
    text = module.text()
    assert "constant({-0.0, 0})" in text and "constant((-0.0, 1))" in text
    assert engine.from_text(text).text() == text
