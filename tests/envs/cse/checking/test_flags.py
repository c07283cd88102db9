"""A leader promises no more than the expression it replaces, whatever the flags of operands."""

from pathlib import Path

import pytest

from irgym.envs.cse.environment import CSE
from irgym.envs.cse.ir.analysis import Analysed, analysed
from irgym.llvmir.ir.modules import ModuleText

CASES = Path(__file__).parents[3] / "cases" / "cse"


def branching(first: str, second: str, arguments: str = "i32 %a, i32 %b, ptr %p, float %s") -> Analysed:
    """Return a function with one computation in its first block and another in the second."""
    text = (
        f"define void @f({arguments}, i1 %c) {{\nentry:\n{first}  br i1 %c, label %then, label %end\n"
        f"then:\n{second}  br label %end\nend:\n  ret void\n}}\n"
        "declare i32 @llvm.abs.i32(i32, i1) #0\ndeclare i32 @constant(i32) #0\n"
        "define i32 @pure(i32 %a) #0 {\nentry:\n  %r = freeze i32 %a\n  ret i32 %r\n}\n"
        "declare i1 @llvm.is.constant.i32(i32) #0\n"
        "attributes #0 = { nounwind willreturn memory(none) }\n"
    )
    return analysed(ModuleText.read(text), "@f")


def shared(function: Analysed, *names: str) -> list[str]:
    """Return the lines of a function with some candidates shared."""
    known = [candidate.name for candidate in function.candidates]
    return [line.strip() for line in function.sharing.lines([known.index(name) for name in names])]


@pytest.mark.parametrize(
    ("flagged", "plain"),
    [
        ("sub nsw i32 %a, 9", "sub i32 %a, 9"),
        ("add nuw nsw i32 %a, %b", "add nsw i32 %b, %a"),
        ("mul nuw i32 %a, 3", "mul i32 %a, 3"),
        ("shl nsw i32 %a, 3", "shl i32 %a, 3"),
        ("udiv exact i32 %a, 3", "udiv i32 %a, 3"),
        ("ashr exact i32 %a, 3", "ashr i32 %a, 3"),
        ("or disjoint i32 %a, %b", "or i32 %a, %b"),
        ("load i32, ptr %p, align 4, !range !5", "load i32, ptr %p, align 4"),
        ("load i32, ptr %p, align 4, !noundef !5, !tbaa !6", "load i32, ptr %p, align 1, !tbaa !6"),
        ("trunc nuw i64 %w to i32", "trunc i64 %w to i32"),
    ],
)
def test_operands_lose_flags_that_the_others_have_not(flagged: str, plain: str) -> None:
    function = branching(
        f"  %w = sext i32 %a to i64\n  %x = {flagged}\n  %y = xor i32 %x, %b\n",
        f"  %x2 = {plain}\n  %y2 = xor i32 %b, %x2\n",
    )
    kept = next(line for line in shared(function, "y") if line.startswith("%x ="))
    assert kept != f"%x = {flagged}"
    promised = {"nsw", "nuw", "exact", "disjoint", "!range", "!noundef"}
    assert promised & {*kept.split()} == promised & {*flagged.split()} & {*plain.split()}
    assert ("!tbaa !6" in kept) == ("!tbaa !6" in plain)
    assert f"%x = {flagged}" in shared(function), "nothing is weakened where nothing is shared"


def names(function: Analysed) -> list[str]:
    return [candidate.name for candidate in function.candidates]


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        (  # through several operations, addresses and loads among them
            "  %o = add nuw nsw i32 %a, 1\n  %i = zext nneg i32 %o to i64\n"
            "  %q = getelementptr inbounds nuw i32, ptr %p, i64 %i\n  %v = load i32, ptr %q, align 4\n",
            "  %o2 = add i32 %a, 1\n  %i2 = zext i32 %o2 to i64\n"
            "  %q2 = getelementptr nuw i32, ptr %p, i64 %i2\n  %v2 = load i32, ptr %q2, align 4\n",
            ["%o = add i32 %a, 1", "%i = zext i32 %o to i64", "%q = getelementptr nuw i32, ptr %p, i64 %i"],
        ),
        (  # floating-point numbers
            "  %t = fmul nnan ninf float %s, %s\n  %v = fcmp nnan olt float %t, 1.000000e+00\n",
            "  %t2 = fmul ninf float %s, %s\n  %v2 = fcmp nnan olt float %t2, 1.000000e+00\n",
            ["%t = fmul ninf float %s, %s"],
        ),
        (  # comparisons that decide
            "  %t = icmp samesign ult i32 %a, %b\n  %v = select i1 %t, i32 %a, i32 7\n",
            "  %t2 = icmp ult i32 %a, %b\n  %v2 = select i1 %t2, i32 %a, i32 7\n",
            ["%t = icmp ult i32 %a, %b"],
        ),
        (  # intrinsics
            "  %t = sub nsw i32 0, %a\n  %v = call i32 @llvm.abs.i32(i32 %t, i1 false)\n",
            "  %t2 = sub i32 0, %a\n  %v2 = call i32 @llvm.abs.i32(i32 %t2, i1 false)\n",
            ["%t = sub i32 0, %a"],
        ),
    ],
)
def test_all_operands_of_a_shared_expression_are_weakened(first: str, second: str, kept: list[str]) -> None:
    lines = shared(branching(first, second), "v")
    assert {*kept} <= {*lines}


def test_the_leader_of_an_operand_is_weakened_by_all_that_it_serves() -> None:
    function = branching(
        "  %x = add nuw nsw i32 %a, 1\n  %x1 = add nsw i32 %a, 1\n  %y = mul i32 %x1, %b\n",
        "  %x2 = add i32 %a, 1\n  %y2 = mul i32 %b, %x2\n",
    )
    assert "%x1 = add i32 %a, 1" in shared(function, "y")
    assert "%x = add nuw nsw i32 %a, 1" in shared(function, "y")
    assert "%x = add i32 %a, 1" in shared(function, "x", "y")


@pytest.mark.parametrize(
    "repeated", ["freeze i32 %a", "call i32 @pure(i32 %a)", "zext i1 %k{} to i32"], ids=str
)
def test_an_expression_that_may_differ_equals_no_other(repeated: str) -> None:
    """Sharing only the dependent expression would give other users a different value."""
    guess = "  %k{0} = call i1 @llvm.is.constant.i32(i32 %a)\n" if "%k" in repeated else ""
    function = branching(
        f"{guess.format(1)}  %x = {repeated.format(1)}\n  %y = add i32 %x, 1\n",
        f"{guess.format(2)}  %x2 = {repeated.format(2)}\n  %y2 = add i32 %x2, 1\n",
    )
    assert "y" not in names(function)


def test_calls_of_constant_functions_elsewhere_are_equal() -> None:
    function = branching(
        "  %x = call i32 @constant(i32 %a)\n  %y = add i32 %x, 1\n",
        "  %x2 = call i32 @constant(i32 %a)\n  %y2 = add i32 %x2, 1\n",
    )
    assert {*names(function)} == {"x", "y"}


def test_a_coroutine_calls_each_function_anew() -> None:
    function = branching("  %x = call i32 @pure(i32 %a)\n", "  %x2 = call i32 @pure(i32 %a)\n")
    assert names(function) == ["x"]
    text = "\n".join([function.function.header, *function.sharing.lines(()), "}"])
    module = ModuleText.read(
        text.replace(") {", ") presplitcoroutine {", 1)
        + "\ndeclare i32 @pure(i32) #0\nattributes #0 = { nounwind willreturn memory(none) }\n"
    )
    assert not analysed(module, "@f").candidates


def test_the_case_of_the_flag_that_was_kept() -> None:
    task = CSE.task(f"cse:{CASES / 'operand_flags.ll'}#f")
    written = task.text(task.initial())
    assert "%x = add nsw i32 %a, -9" in written
    lines = shared(task.analysed, "y")
    assert "%x = add i32 %a, -9" in lines and "%z = sext i32 %y to i64" in lines
