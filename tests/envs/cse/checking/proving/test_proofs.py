"""Shared expressions that are proved, refuted, or left to execution."""

import pytest

from irgym.core.cost import Call
from irgym.envs.cse.checking import choices as checks
from irgym.envs.cse.checking.proving.pairs import Match, Pairs
from irgym.envs.cse.checking.proving.proofs import Proofs, proved
from irgym.envs.cse.environment import CSE
from irgym.llvmir.ir.effects import Effects
from irgym.llvmir.ir.function import Function
from irgym.llvmir.ir.modules import ModuleText

MORE = """
declare i32 @pure(i32) #0
declare i32 @llvm.smax.i32(i32, i32) #0
declare { i32, i1 } @llvm.sadd.with.overflow.i32(i32, i32) #0
declare void @other()
attributes #0 = { nounwind willreturn memory(none) }
"""


def written(lines: str) -> str:
    """Split a text at semicolons into lines."""
    return "\n".join(f"  {line.strip()}" for line in lines.split(";"))


def compared(first: str, second: str, kept: str = "", between: str = "") -> tuple[Match, Proofs]:
    """Compare `%y` of a block with `%y2` of a later block.

    Args:
        first: Lines of the first block.
        second: Lines of the later block.
        kept: The first lines once `%y` replaces `%y2`; unchanged by default.
        between: Lines between them.
    """
    functions: list[Function] = []
    for body in (first, kept or first):
        text = (
            "define void @f(i32 %a, i32 %b, ptr %p, ptr %q, float %s, <2 x i32> %w, i1 %c) {\n"
            f"entry:\n{written(body)}\n  br i1 %c, label %then, label %end\n"
            f"then:\n{between}\n{written(second)}\n  br label %end\nend:\n  ret void\n}}\n"
        )
        module = ModuleText.read(text + MORE)
        function = module.functions["@f"]
        functions.append(Function.read("@f", function.header, function.lines))
    effects = Effects(module, functions[0].header)
    replaced = {"%y2": "%y"}
    match = Pairs(*functions, replaced, effects).compare("%y", "%y2")
    return match, proved(Pairs(*functions, replaced, effects), replaced, 64)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("%y = add nsw i32 %a, %b", "%y2 = add nsw i32 %b, %a"),
        ("%x = mul i32 %a, 3; %y = xor i32 %x, %b", "%x2 = mul i32 3, %a; %y2 = xor i32 %b, %x2"),
        ("%y = fadd fast float %s, %s", "%y2 = fadd fast float %s, %s"),
        ("%y = load i32, ptr %p, align 4", "%y2 = load i32, ptr %p, align 1"),
        ("%y = call i32 @pure(i32 %a)", "%y2 = call i32 @pure(i32 %a)"),
        ("%y = freeze i32 %a", "%y2 = freeze i32 %a"),
    ],
)
def test_the_same_expression_needs_no_solver(first: str, second: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        "irgym.envs.cse.checking.proving.proofs.solver_module", lambda: pytest.fail("z3 was asked")
    )
    match, proofs = compared(first, second)
    assert match is Match.SAME
    assert proofs == Proofs(1, 0, 0, ())


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        ("%y = add nsw i32 %a, %b", "%y2 = add nsw nuw i32 %a, %b", ""),
        ("%x = sub nsw i32 %a, 9; %y = mul i32 %x, %b", "%x2 = sub i32 %a, 9; %y2 = mul nsw i32 %x2, %b",
         "%x = sub i32 %a, 9; %y = mul i32 %x, %b"),
        ("%y = lshr <2 x i32> %w, splat (i32 3)", "%y2 = lshr exact <2 x i32> %w, splat (i32 3)", ""),
        ("%x = icmp ult i32 %a, 7; %y = select i1 %x, i32 %a, i32 7",
         "%x2 = icmp samesign ult i32 %a, 7; %y2 = select i1 %x2, i32 %a, i32 7", ""),
        ("%y = getelementptr i8, ptr %p, i32 %a", "%y2 = getelementptr inbounds nuw i8, ptr %p, i32 %a", ""),
        ("%x = add i32 %a, 1; %y = call i32 @llvm.smax.i32(i32 %x, i32 %b)",
         "%x2 = add nsw i32 %a, 1; %y2 = call i32 @llvm.smax.i32(i32 %x2, i32 %b)", ""),
        ("%y = load i32, ptr %p, align 4", "%y2 = load i32, ptr %p, align 4, !range !5", ""),
        ("%x = getelementptr i8, ptr %p, i32 %a; %y = load i32, ptr %x, align 4",
         "%x2 = getelementptr inbounds i8, ptr %p, i32 %a; %y2 = load i32, ptr %x2, align 4", ""),
        ("%y = fadd float %s, %s", "%y2 = fadd nnan ninf float %s, %s", ""),
        ("%x = add i32 %a, 1; %y = freeze i32 %x", "%x2 = add nsw i32 %a, 1; %y2 = freeze i32 %x2", ""),
        ("%x = call { i32, i1 } @llvm.sadd.with.overflow.i32(i32 %a, i32 %b);"
         "%z = extractvalue { i32, i1 } %x, 0; %y = shl i32 %z, 2",
         "%x2 = call { i32, i1 } @llvm.sadd.with.overflow.i32(i32 %a, i32 %b);"
         "%z2 = extractvalue { i32, i1 } %x2, 0; %y2 = shl nuw i32 %z2, 2", ""),
    ],
)  # fmt: skip
def test_fewer_flags_are_proved_by_z3(first: str, second: str, kept: str):
    match, proofs = compared(first, second, kept)
    assert match is Match.WEAKER
    assert proofs == Proofs(0, 1, 0, ())


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("%y = add nsw i32 %a, %b", "%y2 = add i32 %a, %b"),
        ("%x = sub nsw i32 %a, 9; %y = xor i32 %x, %b", "%x2 = sub i32 %a, 9; %y2 = xor i32 %x2, %b"),
        ("%x = or disjoint i32 %a, %b; %y = freeze i32 %x", "%x2 = or i32 %a, %b; %y2 = freeze i32 %x2"),
        ("%y = sub i32 %a, %b", "%y2 = sub i32 %b, %a"),
        ("%y = ashr i32 %a, 3", "%y2 = lshr i32 %a, 3"),
        ("%y = zext i32 %a to i64", "%y2 = sext i32 %a to i64"),
        ("%y = load i32, ptr %p, align 4", "%y2 = load i32, ptr %q, align 4"),
        ("%y = load i32, ptr %p, align 4, !range !5", "%y2 = load i32, ptr %p, align 4"),
        ("%y = load volatile i32, ptr %p, align 4", "%y2 = load volatile i32, ptr %p, align 4"),
        ("%y = fmul nnan float %s, %s", "%y2 = fmul float %s, %s"),
        ("%y = fmul float %s, 2.0", "%y2 = fmul float %s, 3.0"),
        ("%x = freeze i32 %a; %y = add i32 %x, 1", "%x2 = freeze i32 %a; %y2 = add i32 %x2, 1"),
    ],
)
def test_different_values_are_refuted(first: str, second: str):
    match, proofs = compared(first, second)
    assert match is Match.DIFFERENT
    assert proofs.refuted == (("%y", "%y2"),)


def test_loads_with_a_write_between_them_are_refuted():
    first, second = "%y = load i32, ptr %p, align 4", "%y2 = load i32, ptr %p, align 4"
    for between in ("  store i32 %a, ptr %q, align 4", "  call void @other()", "  fence seq_cst"):
        assert compared(first, second, between=between)[1].refuted
    assert not compared(first, second, between="  %u = add i32 %a, 1")[1].refuted


def test_equal_constants_of_other_widths_and_sides_are_the_same_to_z3():
    match, proofs = compared("%y = shl i32 %a, 1", "%y2 = mul i32 %a, 2")
    assert match is Match.DIFFERENT, "no candidate, but"
    assert proofs.solved == 1


def test_values_that_round_differently_are_executed_only():
    match, proofs = compared("%y = fmul float %s, %s", "%y2 = fmul contract float %s, %s")
    assert match is Match.WEAKER
    assert proofs == Proofs(0, 0, 1, ())


def test_a_result_says_how_much_was_proved():
    task = CSE.task("cse://kernels/sorting.c#sift", target="aarch64")
    call = task.validation(task.initial(), 1, 0)
    assert call == Call("irgym.envs.cse.checking.choices:checked", call.arguments)
    name = task.analysed.function.name
    said = checks.checked(str(task.module), name, tuple(range(len(task.names))), 1, 0, False)
    assert said.ok and said.figures["shared_results"] == said.figures["proved_by_comparison"] > 0
    assert f"of {said.figures['shared_results']} shared results proved equal" in said.notes[0]


def test_a_refuted_choice_is_wrong(monkeypatch: pytest.MonkeyPatch):
    task = CSE.task("cse://kernels/sorting.c#sift", target="x86-64")
    monkeypatch.setattr(checks, "proofs_of", lambda *_: Proofs(1, 0, 0, (("%a", "%b"),)))
    said = checks.checked(str(task.module), task.analysed.function.name, (0,), 1, 0, True)
    assert not said.ok and said.detail == "%a cannot take the place of %b"
