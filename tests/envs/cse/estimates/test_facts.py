"""Facts about candidates: types, register pressure, savings and costs."""

from dataclasses import replace

import pytest

from irgym.envs.cse.estimates.cost_test import passes
from irgym.envs.cse.estimates.facts import Facts, Surroundings
from irgym.envs.cse.ir.analysis import Analysed, analysed
from irgym.llvmir.ir.instruction import Instruction
from irgym.llvmir.ir.modules import ModuleText
from irgym.llvmir.ir.types import register_of, type_of

LOOP = """
declare void @g()

define i32 @f(ptr %p, i32 %n, double %d) {
entry:
  %m = mul i32 %n, 3
  %e = getelementptr i32, ptr %p, i32 %m
  store i32 1, ptr %e
  br label %head

head:
  %i = phi i32 [ 0, %entry ], [ %j, %body ]
  %c = icmp slt i32 %i, %n
  br i1 %c, label %body, label %end

body:
  %m1 = mul i32 %n, 3
  %e1 = getelementptr i32, ptr %p, i32 %m1
  store i32 2, ptr %e1
  CALL
  %j = add i32 %i, 1
  br label %head

end:
  %k = fptosi double %d to i32
  ret i32 %k
}
"""


def function(call: str = "") -> Analysed:
    return analysed(ModuleText.read(LOOP.replace("CALL", call)), "@f")


@pytest.mark.parametrize(
    ("text", "kind", "register"),
    [
        ("%x = add nsw i32 %a, %b", "i32", "integer"),
        ("%x = load <4 x float>, ptr %p, align 16", "<4 x float>", "vector"),
        ("%x = load ptr, ptr %p, align 8", "ptr", "integer"),
        ("%x = getelementptr inbounds [4 x i32], ptr %p, i64 0, i64 1", "ptr", "integer"),
        ("%x = fcmp olt double %a, %b", "i1", "integer"),
        ("%x = sitofp i32 %a to double", "double", "float"),
        ("%x = select i1 %c, float %a, float %b", "float", "float"),
        ("%x = extractelement <4 x float> %v, i32 0", "float", "float"),
        ("%x = phi i64 [ 0, %entry ], [ %y, %body ]", "i64", "integer"),
        ("%x = tail call fastcc noundef signext i16 @g(i32 1)", "i16", "integer"),
        ("%x = call double @llvm.sqrt.f64(double %d)", "double", "float"),
        ("%x = extractvalue { i32, i1 } %s, 0", "", "none"),
        ("store i32 1, ptr %p", "", "none"),
    ],
)
def test_types_of_results(text: str, kind: str, register: str):
    assert type_of(Instruction.read(text)) == kind
    assert register_of(kind) == register


def test_live_values_on_entering_and_leaving_blocks():
    around = Surroundings(function())
    names = {block.name: number for number, block in enumerate(function().function.blocks)}
    live = around.liveness
    assert live.entering[names["head"]] == {"%p", "%n", "%d", "%i"} - {"%i"}
    assert live.leaving[names["entry"]] == {"%p", "%n", "%d"}
    assert live.leaving[names["body"]] == {"%p", "%n", "%d", "%j"}
    assert live.entering[names["end"]] == {"%d"}
    assert around.pressure == {"integer": 3, "float": 1, "vector": 0}


def test_costs_and_savings_of_sharing():
    analysis = function()
    around = Surroundings(analysis)
    facts = dict(zip([candidate.name for candidate in analysis.candidates], around.facts, strict=True))
    product, address = facts["m"], facts["e"]
    assert (product.made, product.cost, product.depth_made, product.depth_saved) == (1.0, 3.0, 0, 1)
    assert product.saved > 4 and product.saved == address.saved
    assert (address.folded, address.users) == (1.0, 1)
    places = {candidate.name: place for place, candidate in enumerate(analysis.candidates)}
    assert product.within == (places["e"],) and address.holds == (places["m"],)
    assert not product.across_calls
    assert {analysis.function.blocks[block].name for block in product.kept} == {"entry", "head", "body"}


@pytest.mark.parametrize(
    ("call", "across"), [("call void @g()", True), ("call void @llvm.assume(i1 true)", False)]
)
def test_values_that_outlive_a_call(call: str, across: bool):
    assert [facts.across_calls for facts in Surroundings(function(call)).facts] == [across, across]


def test_the_test_of_costs():
    def facts(pressure: int, cost: float = 1.0, saved: float = 1.0, across: bool = False) -> Facts:
        kept = frozenset((0,))
        return replace(
            Surroundings(function("call void @g()")).facts[0],
            **{"register": "integer", "cost": cost, "made": 1.0, "saved": saved, "kept": kept, "reads": 0},
            **{"pressure": pressure, "across_calls": across},
        )

    assert passes(facts(0, saved=8.0, cost=2.0), "x86-64")
    assert not passes(facts(0, saved=1.0), "x86-64"), "what is saved once is not worth a register"
    assert not passes(facts(20, saved=8.0), "x86-64"), "registers are out"
    assert passes(facts(20, saved=8.0, cost=20.0), "x86-64"), "a division is worth a place on the stack"
    assert passes(facts(5, saved=8.0, cost=2.0), "x86-64") and not passes(
        facts(8, saved=2.0, cost=2.0), "i686"
    )
    assert not passes(facts(6, saved=8.0, cost=2.0, across=True), "x86-64")
