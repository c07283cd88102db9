"""Right passes pass the comparison; what others can observe is compared, and nothing else."""

from collections.abc import Mapping

import pytest

from irgym.envs.llvm.checking.entries import Entry, Partners
from irgym.envs.llvm.checking.validation import compared
from irgym.llvmir.ir.modules import ModuleText

from .conftest import Passes

PIPELINES = ("default<O1>", "default<O2>", "default<O3>")

MODULE = """
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"
%struct.pair = type { i32, i64 }
@count = internal global i32 0
@shared = global i32 7
@text = private unnamed_addr constant [4 x i8] c"a%s\\00"
@word = private unnamed_addr constant [4 x i8] c"bcd\\00"
@line = private unnamed_addr constant [4 x i8] c"hi\\0A\\00"
declare void @effect(ptr)
declare i32 @measure(ptr) memory(read) nounwind willreturn
declare i32 @printf(ptr, ...)
declare i64 @strlen(ptr)
declare i32 @strcmp(ptr, ptr)
declare ptr @malloc(i64)
declare void @free(ptr)

define internal i32 @helper(i32 %x, i32 %unused) {
  %y = add nsw i32 %x, 3
  ret i32 %y
}
define i32 @inlined(i32 %x) {
  %y = call i32 @helper(i32 %x, i32 5)
  %z = mul i32 %y, %y
  ret i32 %z
}
define i32 @variable(i32 %x) {
  %p = alloca i32
  %q = alloca [4 x i32]
  store i32 %x, ptr %p
  %e = getelementptr inbounds [4 x i32], ptr %q, i64 0, i64 2
  store i32 9, ptr %e
  call void @effect(ptr %p)
  %y = load i32, ptr %p
  %z = load i32, ptr %e
  %s = add i32 %y, %z
  ret i32 %s
}
define i32 @counted(i32 %x) {
  %old = load i32, ptr @count
  %new = add i32 %old, %x
  store i32 %new, ptr @count
  store i32 %x, ptr @shared
  ret i32 %old
}
define i64 @texts(ptr %s) {
  %r = call i32 (ptr, ...) @printf(ptr @line)
  %n = call i64 @strlen(ptr %s)
  %c = call i32 @strcmp(ptr %s, ptr @word)
  %e = icmp eq i32 %c, 0
  %k = select i1 %e, i64 77, i64 %n
  ret i64 %k
}
define i32 @allocated(i32 %x) {
  %p = call ptr @malloc(i64 16)
  %none = icmp eq ptr %p, null
  br i1 %none, label %fail, label %go
go:
  store i32 %x, ptr %p
  %y = load i32, ptr %p
  call void @free(ptr %p)
  ret i32 %y
fail:
  ret i32 -1
}
define ptr @kept(i32 %x) {
  %p = call ptr @malloc(i64 16)
  %none = icmp eq ptr %p, null
  br i1 %none, label %end, label %go
go:
  store i32 %x, ptr %p
  br label %end
end:
  ret ptr %p
}
define void @sums(ptr %a, ptr noalias %b) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %n, %loop ]
  %p = getelementptr inbounds i32, ptr %a, i64 %i
  %q = getelementptr inbounds i32, ptr %b, i64 %i
  %x = load i32, ptr %p
  %y = load i32, ptr %q
  %s = add i32 %x, %y
  store i32 %s, ptr %p
  %n = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %n, 16
  br i1 %more, label %loop, label %end
end:
  ret void
}
define i32 @kinds(i32 %x, i32 %y, float %f) {
  %m = call i32 @llvm.smax.i32(i32 %x, i32 %y)
  %b = call i32 @llvm.bswap.i32(i32 %m)
  %c = call i32 @llvm.fshl.i32(i32 %b, i32 %b, i32 7)
  %d = call i32 @llvm.ctpop.i32(i32 %c)
  %g = fadd float %f, 1.000000e+00
  %h = fcmp olt float %g, 0.000000e+00
  %z = freeze i32 %d
  %r = select i1 %h, i32 %z, i32 %c
  ret i32 %r
}
declare i32 @llvm.smax.i32(i32, i32)
declare i32 @llvm.bswap.i32(i32)
declare i32 @llvm.fshl.i32(i32, i32, i32)
declare i32 @llvm.ctpop.i32(i32)
"""

SINGLE = (
    *("adce", "aggressive-instcombine", "argpromotion", "bdce", "constmerge"),
    *("constraint-elimination", "correlated-propagation", "deadargelim", "dse", "early-cse<memssa>"),
    *("function-attrs", "globaldce", "globalopt", "gvn", "gvn-hoist"),
    *("gvn-sink", "indvars", "inferattrs", "inline", "instcombine<no-verify-fixpoint>"),
    *("ipsccp", "jump-threading", "licm", "loop-idiom", "loop-reduce"),
    *("loop-rotate", "loop-unroll", "loop-vectorize", "mem2reg", "memcpyopt"),
    *("mergefunc", "newgvn", "reassociate", "reg2mem", "sccp"),
    *("simplifycfg", "sink", "slp-vectorizer", "speculative-execution", "sroa"),
    *("tailcallelim", "vector-combine", "hotcoldsplit", "iroutliner"),
)


@pytest.fixture(scope="session")
def module(after_passes: Passes) -> str:
    """The module as LLVM prints it."""
    [text] = after_passes(MODULE, [["verify"]])
    assert text
    return text


def test_single_passes_are_right(module: str, after_passes: Passes) -> None:
    """No pass changes what the module does, and each of its functions is compared."""
    changed = 0
    for name, text in zip(SINGLE, after_passes(module, [[name] for name in SINGLE]), strict=True):
        assert text, name
        validation = compared(module, text, 1, 0)
        assert validation.ok, (name, validation.detail)
        assert not validation.blind, (name, validation.blind)
        changed += validation.figures["functions_compared"] > 0
    assert changed > 15


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_pipelines_are_right(module: str, after_passes: Passes, pipeline: str) -> None:
    """Whole pipelines pass, on all functions."""
    [text] = after_passes(module, [[pipeline]])
    validation = compared(module, text, 1, 0)
    assert validation.checked, validation
    assert validation.figures["functions_compared"] == 8


@pytest.mark.parametrize("name", ["bytes", "geometry", "matrices", "signals", "sorting"])
def test_kernels_are_right(kernel_texts: Mapping[str, str], after_passes: Passes, name: str) -> None:
    """The kernels pass after the usual pipeline, with nearly all branches taken."""
    [text] = after_passes(kernel_texts[name], [["default<O2>"]])
    validation = compared(kernel_texts[name], text, 1, 0)
    assert validation.checked, validation
    assert validation.figures["branches_taken"] > 0.9 * validation.figures["branches"]


@pytest.mark.parametrize(
    ("old", "new", "function"),
    [
        ("store i32 %x, ptr @shared", "", "counted"),
        ("store i32 %new, ptr @count", "", "counted"),
        ("call void @effect(ptr %p)", "", "variable"),
        ("store i32 %x, ptr %p\n  %e", "%e", "variable"),
        ("store i32 9, ptr %e", "store i32 8, ptr %e", "variable"),
        ("@printf(ptr @line)", "@printf(ptr @word)", "texts"),
        ("%r = call i32 (ptr, ...) @printf(ptr @line)", "", "texts"),
        ('c"bcd\\00"', 'c"bce\\00"', "texts"),
        ("@helper(i32 %x, i32 5)", "@helper(i32 poison, i32 5)", "inlined"),
        ("add nsw i32 %x, 3", "add nsw i32 %x, 4", "inlined"),
        ("  store i32 %x, ptr %p\n  br label %end", "  br label %end", "kept"),
        ("br i1 %none, label %end, label %go", "br i1 false, label %end, label %go", "kept"),
        ("icmp ult i64 %n, 16", "icmp ult i64 %n, 15", "sums"),
        ("@llvm.fshl.i32(i32 %b, i32 %b, i32 7)", "@llvm.fshl.i32(i32 %b, i32 %b, i32 8)", "kinds"),
        ("freeze i32 %d", "add nsw i32 %d, 1", "kinds"),
        ("define ptr @kept", "define internal ptr @kept", "kept"),
    ],
)
def test_wrong_changes_are_told(module: str, old: str, new: str, function: str, after_passes: Passes) -> None:
    """A wrong change is found before and after optimisation, and the function is named."""
    assert old in MODULE
    for passes in (["verify"], ["default<O1>"]):
        [text] = after_passes(MODULE.replace(old, new, 1), [passes])
        assert text
        validation = compared(module, text, 1, 0)
        assert not validation.ok
        assert f"{function}: " in validation.detail


def test_poison_may_become_anything(after_passes: Passes) -> None:
    """Whatever the original leaves open may be chosen, but nothing may become open."""
    text = """
define i32 @loose(i32 %x) {
  %y = add nsw i32 %x, 1
  %z = icmp sgt i32 %y, %x
  %w = zext i1 %z to i32
  ret i32 %w
}
"""
    [before, after] = after_passes(text, [["verify"], ["instcombine<no-verify-fixpoint>"]])
    assert "ret i32 1" in after
    assert compared(before, after, 1, 0).checked
    assert not compared(before, after.replace("ret i32 1", "ret i32 0"), 1, 0).ok
    assert not compared(after, before, 1, 0).ok


def test_what_cannot_run_is_named(after_passes: Passes) -> None:
    """A function that the interpreter cannot run is named, and the others are compared."""
    text = """
define x86_fp80 @wide(x86_fp80 %x) {
  %y = fadd x86_fp80 %x, %x
  ret x86_fp80 %y
}
define i32 @twice(i32 %x) {
  %y = add i32 %x, %x
  ret i32 %y
}
"""
    [before, after] = after_passes(text, [["verify"], ["instcombine<no-verify-fixpoint>"]])
    validation = compared(before, after.replace("fadd x86_fp80 %x, %x", "fadd x86_fp80 %x, %x "), 1, 0)
    assert validation.ok
    assert "wide" in validation.blind
    assert validation.figures["functions_compared"] == 1


def test_vectors_of_bits_and_special_numbers(after_passes: Passes) -> None:
    """Vectors whose elements are no whole bytes, casts of them, NaN and infinity are run."""
    text = """
define double @bits(ptr %p, <8 x i16> %v, i1 %c) {
  store i32 7, ptr %p
  %n = icmp slt <8 x i16> %v, zeroinitializer
  %b = bitcast <8 x i1> %n to i8
  %q = getelementptr i8, ptr %p, i64 8
  store i8 %b, ptr %q
  %r = getelementptr i8, ptr %p, i64 9
  store <8 x i1> %n, ptr %r
  %f = select i1 %c, double 0x7FF8000000000000, double 0x7FF0000000000000
  ret double %f
}
"""
    [before, after] = after_passes(text, [["verify"], ["default<O2>"]])
    assert "<8 x i1> %n, ptr" in before
    assert compared(before, after, 1, 0).checked
    for old, new in (
        ("store i32 7, ptr %p", ""),
        ("store i8 %b, ptr %q", ""),
        ("store <8 x i1> %n, ptr %r", "store i8 0, ptr %r"),
        ("icmp slt", "icmp sgt"),
        ("double 0x7FF8000000000000, double 0x7FF0000000000000", "double 1.0, double 0x7FF0000000000000"),
    ):
        assert old in text
        [wrong] = after_passes(text.replace(old, new), [["verify"]])
        assert not compared(before, wrong, 1, 0).ok, old


def test_classes_of_numbers_are_run(after_passes: Passes) -> None:
    """LLVM prints a comment beside the mask."""
    text = """
declare i1 @llvm.is.fpclass.f64(double, i32)
define i32 @special(double %x) {
  %n = call i1 @llvm.is.fpclass.f64(double %x, i32 3)
  %r = select i1 %n, i32 5, i32 6
  ret i32 %r
}
"""
    [before, after] = after_passes(text, [["verify"], ["default<O2>"]])
    [wrong] = after_passes(text.replace("i32 3", "i32 516"), [["verify"]])  # infinities, not NaN
    assert "/* (nan) */" in before
    assert compared(before, after, 1, 0).checked
    assert not compared(before, wrong, 1, 0).ok


def test_memory_is_told_from_its_state_after_calls(after_passes: Passes) -> None:
    """Internal variables are seen through later calls, allocations where they are shared."""
    text = """
@state = internal global i32 0
@given = global ptr null
declare ptr @malloc(i64)
declare void @show()
define void @put(i32 %x) {
  store i32 %x, ptr @state
  ret void
}
define i32 @get() {
  %x = load i32, ptr @state
  ret i32 %x
}
define void @share(i32 %x) {
  %p = call ptr @malloc(i64 8)
  %none = icmp eq ptr %p, null
  br i1 %none, label %end, label %go
go:
  store i32 %x, ptr %p
  store ptr %p, ptr @given
  call void @show()
  br label %end
end:
  ret void
}
"""
    [before, after] = after_passes(text, [["verify"], ["default<O2>"]])
    assert compared(before, after, 1, 0).checked
    for old in (
        "store i32 %x, ptr @state",
        "store i32 %x, ptr %p",
        "store ptr %p, ptr @given",
        "call void @show()",
    ):
        for passes in (["verify"], ["default<O2>"]):
            [wrong] = after_passes(text.replace(old, ""), [passes])
            assert not compared(before, wrong, 1, 0).ok, (old, passes)


COUNTERS = """
@first = internal global i32 0
@second = internal global i32 0
define internal i32 @inner() {
  %v = load i32, ptr @first
  ret i32 %v
}
define i32 @a() {
  %v = call i32 @inner()
  ret i32 %v
}
define i32 @b(i32 %x) {
  store i32 %x, ptr @first
  ret i32 %x
}
define i32 @c() {
  %v = load i32, ptr @second
  ret i32 %v
}
define i32 @d(i32 %x) {
  %y = add i32 %x, 0
  ret i32 %y
}
"""


def test_partners_share_internal_variables(after_passes: Passes):
    [text] = after_passes(COUNTERS, [["verify"]])
    module = ModuleText.read(text)
    found = {name: Entry(name, name, True) for name in ("@a", "@b", "@c", "@d")}
    partners = Partners(module, [*found.values()])
    sharing = {name: [other.name for other in partners.of(entry)] for name, entry in found.items()}
    assert sharing == {"@a": ["@a", "@b"], "@b": ["@a", "@b"], "@c": ["@c"], "@d": []}


def test_functions_without_time_are_counted(after_passes: Passes):
    before, after = after_passes(COUNTERS, [["verify"], ["default<O2>"]])
    found = compared(before, after, 2, seed=3, seconds=0.0)
    assert found.ok and not found.checked and found.inputs == 2
    assert found.blind == "not compared for lack of time: 3 of 4 functions"
    assert found.figures["functions_left_out"] == 3
    assert compared(before, after, 2, seed=3).checked
