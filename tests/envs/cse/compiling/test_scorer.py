"""Scores of LLVM's code."""

from itertools import chain, combinations
from pathlib import Path

import pytest

from irgym.base.errors import ProgramError
from irgym.envs.cse.compiling import llvm
from irgym.envs.cse.compiling.scorer import scores
from irgym.envs.cse.ir.analysis import analysed
from irgym.llvmir.ir.modules import ModuleText

CODE = """
@table = internal constant [4 x i32] [i32 1, i32 2, i32 3, i32 4]

define internal i32 @helper(i32 %x) {
  ret i32 %x
}

define double @f(ptr %p, i32 %n, i32 %i, i32 %j) {
  %m = mul nsw i32 %i, %n
  %k = add nsw i32 %m, %j
  %e = sext i32 %k to i64
  %g = getelementptr inbounds double, ptr %p, i64 %e
  %v = load double, ptr %g, align 8
  %t = getelementptr inbounds [4 x i32], ptr @table, i64 0, i64 %e
  %w = load i32, ptr %t, align 4
  %h = call i32 @helper(i32 %w)
  %c = icmp sgt i32 %h, 0
  br i1 %c, label %then, label %end

then:
  %m1 = mul nsw i32 %i, %n
  %k1 = add nsw i32 %m1, %j
  %e1 = sext i32 %k1 to i64
  %g1 = getelementptr inbounds double, ptr %p, i64 %e1
  %v1 = load double, ptr %g1, align 8
  %s = fadd double %v, %v1
  br label %end

end:
  %r = phi double [ %v, %0 ], [ %s, %then ]
  ret double %r
}
"""


@pytest.fixture
def module(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    file = tmp_path / "code.ll"
    file.write_text(llvm.prepare(llvm.read(CODE, "the code"), getattr(request, "param", "x86-64")))
    return file


@pytest.mark.parametrize("target", llvm.MACHINES)
def test_sharing_all_saves_something_on_every_target(tmp_path: Path, target: str):
    file = tmp_path / "code.ll"
    file.write_text(llvm.prepare(llvm.read(CODE, "the code"), target))
    count = len(analysed(ModuleText.read(file.read_text()), "@f").candidates)
    none, everything = scores(str(file), "@f", [(), range(count)], target)
    assert everything.cost < none.cost and everything.instructions < none.instructions


def test_scores_do_not_depend_on_what_else_is_scored(module: Path):
    function = analysed(ModuleText.read(module.read_text()), "@f")
    places = range(len(function.candidates))
    choices = list(chain.from_iterable(combinations(places, count) for count in range(len(places) + 1)))
    together = scores(str(module), "@f", choices, "x86-64")
    assert together == [scores(str(module), "@f", [choice], "x86-64")[0] for choice in choices]
    assert together == scores(str(module), "@f", [choice[::-1] for choice in choices], "x86-64")


@pytest.mark.parametrize(
    "head", ["define internal i32 @f", "define linkonce_odr hidden i32 @f", "define weak_odr noundef i32 @f"]
)
def test_functions_are_scored_however_they_are_linked(tmp_path: Path, head: str):
    comdat = "_odr" in head
    code = (
        f"{'$f = comdat any' if comdat else ''}\n{head}(i32 noundef %a) #0{' comdat' if comdat else ''} {{\n"
        "  %c = icmp eq i32 %a, 0\n  br i1 %c, label %end, label %again\n\n"
        "again:\n  %d = add i32 %a, -1\n  %r = call i32 @f(i32 %d)\n  %s = mul i32 %r, %a\n"
        "  br label %end\n\n"
        "end:\n  %x = phi i32 [ 1, %0 ], [ %s, %again ]\n  ret i32 %x\n}\n\nattributes #0 = { nounwind }\n"
    )
    file = tmp_path / "code.ll"
    file.write_text(llvm.prepare(llvm.read(code, "the code"), "x86-64"))
    [score] = scores(str(file), "@f", [()], "x86-64")
    assert score.instructions > 5 and score.cost > 1


def test_text_that_is_no_ir_is_refused_with_the_message_of_llvm():
    with pytest.raises(ProgramError, match=r"cannot read code.ll \(.*\): make it with a clang"):
        llvm.read("define nonsense", "code.ll")
    with pytest.raises(ProgramError, match=r"cannot read code.bc"):
        llvm.read(b"nonsense", "code.bc")
