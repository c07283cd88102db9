"""Expressions that count as equal, and expressions that do not."""

import pytest

from irgym.envs.cse.ir.analysis import Analysed, analysed
from irgym.llvmir.ir.modules import ModuleText


def module_of(body: str, arguments: str = "i32 %a, i32 %b, ptr %p", more: str = "") -> ModuleText:
    """Return a module with the single function `@f`."""
    return ModuleText.read(f"{more}\ndefine i32 @f({arguments}) {{\n{body}}}\n")


def function_of(body: str, more: str = "") -> Analysed:
    """Return the function `@f` with some body."""
    return analysed(module_of(body, more=more), "@f")


def branching(first: str, second: str, between: str = "", more: str = "") -> Analysed:
    """Return a function with one instruction in its first block and another in the second."""
    return function_of(
        f"entry:\n  {first}\n  %c = icmp eq i32 %a, 7\n  br i1 %c, label %then, label %end\n\n"
        f"then:                                             ; preds = %entry\n{between}  {second}\n"
        "  br label %end\n\nend:\n  %r = phi i32 [ 1, %entry ], [ 2, %then ]\n  ret i32 %r\n",
        more,
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("%x = add i32 %a, %b", "%y = add i32 %a, %b"),
        ("%x = add nsw i32 %a, %b", "%y = add i32 %b, %a"),
        ("%x = getelementptr inbounds i8, ptr %p, i32 %a", "%y = getelementptr i8, ptr %p, i32 %a"),
        ("%x = load i32, ptr %p, align 4", "%y = load i32, ptr %p, align 1"),
        ("%x = load i32, ptr %p, align 4, !tbaa !5", "%y = load i32, ptr %p, align 4, !range !6"),
        ("%x = select i1 true, i32 %a, i32 %b", "%y = select i1 true, i32 %a, i32 %b"),
        ("%x = udiv exact i32 %a, %b", "%y = udiv i32 %a, %b"),
    ],
)
def test_equal_expressions_are_a_candidate(first: str, second: str) -> None:
    [candidate] = branching(first, second).candidates
    assert candidate.name == "x"
    assert candidate.replaced == (("%y", "%x"),)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("%x = sub i32 %a, %b", "%y = sub i32 %b, %a"),
        ("%x = add i32 %a, 1", "%y = add i32 %a, 2"),
        ("%x = icmp slt i32 %a, %b", "%y = icmp sle i32 %a, %b"),
        ("%x = zext i32 %a to i64", "%y = sext i32 %a to i64"),
        ("%x = load volatile i32, ptr %p, align 4", "%y = load volatile i32, ptr %p, align 4"),
        ("%x = load i32, ptr %p, align 4", "%y = load i16, ptr %p, align 4"),
        ("%x = load atomic i32, ptr %p seq_cst, align 4", "%y = load i32, ptr %p, align 4"),
        ("%x = call i32 @g(i32 %a)", "%y = call i32 @g(i32 %a)"),
    ],
)
def test_others_are_none(first: str, second: str) -> None:
    assert not branching(first, second, more="declare i32 @g(i32)").candidates


@pytest.mark.parametrize(
    ("between", "shared"),
    [
        ("", True),
        ("  store i32 %b, ptr %p, align 4\n", False),
        ("  %g = call i32 @g(i32 %a)\n", False),
        ("  %g = call i32 @none(i32 %a)\n", True),
        ("  %g = call i32 @reads(i32 %a)\n", True),
        ("  fence seq_cst\n", False),
        ("  %v = load volatile i32, ptr %p, align 4\n", False),
    ],
)
def test_loads_are_equal_where_nothing_writes_between(between: str, shared: bool) -> None:
    found = branching(
        "%x = load i32, ptr %p, align 4",
        "%y = load i32, ptr %p, align 4",
        between,
        "declare i32 @g(i32)\ndeclare i32 @none(i32) #0\ndeclare i32 @reads(i32) #1\n"
        "attributes #0 = { nounwind willreturn memory(none) }\n"
        "attributes #1 = { memory(read, inaccessiblemem: write) }\n",
    )
    assert bool(found.candidates) == shared


def test_calls_of_pure_functions_are_candidates() -> None:
    found = branching(
        "%x = call i32 @llvm.smax.i32(i32 %a, i32 %b)",
        "%y = tail call i32 @llvm.smax.i32(i32 %a, i32 %b)",
        more="declare i32 @llvm.smax.i32(i32, i32) #0\n"
        "attributes #0 = { nocallback nofree nosync nounwind speculatable willreturn memory(none) }",
    )
    assert [candidate.name for candidate in found.candidates] == ["x"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("call nnan float @pure(float %x)", "call float @pure(float %x)"),
        ("call float @pure(float %x), !range !5", "call float @pure(float %x)"),
    ],
)
def test_calls_that_promise_more_are_others(first: str, second: str) -> None:
    more = "declare float @pure(float) #0\nattributes #0 = { nounwind willreturn memory(none) }"
    before = "%x = bitcast i32 %a to float\n  %u = "
    assert not branching(before + first, f"%v = {second}", more=more).candidates
    assert branching(before + first, f"%v = {first}", more=more).candidates


def test_a_write_on_the_way_round_a_loop_counts() -> None:
    body = (
        "entry:\n  %x = load i32, ptr %p, align 4\n  br label %loop\n\n"
        "loop:\n  %y = load i32, ptr %p, align 4\n{}  %c = icmp eq i32 %y, %b\n"
        "  br i1 %c, label %end, label %loop\n\nend:\n  ret i32 %x\n"
    )
    assert function_of(body.format("")).candidates
    assert not function_of(body.format("  store i32 %a, ptr %p, align 4\n")).candidates


def test_expressions_of_equal_values_are_equal() -> None:
    found = branching(
        "%x = load i32, ptr %p, align 4\n  %m = mul i32 %x, %a",
        "%y = load i32, ptr %p, align 4\n  %n = mul i32 %y, %a",
    )
    assert {candidate.name: candidate.replaced for candidate in found.candidates} == {
        "x": (("%y", "%x"),),
        "m": (("%n", "%m"),),
    }


def test_branches_beside_each_other_share_nothing() -> None:
    assert not function_of(
        "entry:\n  %c = icmp eq i32 %a, 7\n  br i1 %c, label %left, label %right\n\n"
        "left:\n  %x = add i32 %a, %b\n  br label %end\n\nright:\n  %y = add i32 %a, %b\n  br label %end\n\n"
        "end:\n  %r = phi i32 [ %x, %left ], [ %y, %right ]\n  ret i32 %r\n"
    ).candidates


def test_within_a_block_there_is_nothing_to_choose() -> None:
    assert not function_of(
        "entry:\n  %x = add i32 %a, %b\n  %y = add i32 %a, %b\n  %z = mul i32 %x, %y\n  ret i32 %z\n"
    ).candidates


def test_the_kept_expression_promises_no_more_than_the_dropped_ones() -> None:
    found = branching("%x = add nuw nsw i32 %a, %b, !range !5, !note !7", "%y = add nsw i32 %a, %b, !note !7")
    lines = found.sharing.lines([0])
    assert "  %x = add nsw i32 %a, %b, !note !7" in lines
    assert not any("%y" in line for line in lines)
    assert "  %x = add nuw nsw i32 %a, %b, !range !5, !note !7" in found.sharing.lines([])


def test_users_of_a_dropped_expression_use_the_kept_one() -> None:
    found = branching("%x = add i32 %a, %b", "%y = add i32 %b, %a\n  store i32 %y, ptr %p, align 4")
    assert "  store i32 %x, ptr %p, align 4" in found.sharing.lines([0])
    assert "  store i32 %y, ptr %p, align 4" in found.sharing.lines([])
