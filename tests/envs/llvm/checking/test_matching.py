"""Variables and allocations of the two forms are matched wherever others see them, while they live."""

import pytest

from irgym.envs.llvm.checking.validation import compared

from .conftest import Passes

MERGED = """
declare void @fill(ptr)
declare void @llvm.lifetime.start.p0(ptr)
declare void @llvm.lifetime.end.p0(ptr)

define i32 @merged(i32 %x) {
  %p = alloca i32
  %q = alloca i32
  call void @llvm.lifetime.start.p0(ptr %p)
  store i32 %x, ptr %p
  call void @fill(ptr %p)
  %a = load i32, ptr %p
  call void @llvm.lifetime.end.p0(ptr %p)
  call void @llvm.lifetime.start.p0(ptr %q)
  call void @fill(ptr %q)
  %b = load i32, ptr %q
  call void @llvm.lifetime.end.p0(ptr %q)
  %s = sub i32 %a, %b
  ret i32 %s
}
"""

BY_VALUE = """
%pair = type { i64, i64 }
declare void @take(ptr byval(%pair))
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define i64 @by_value(ptr %p) {
  %c = alloca %pair
  call void @llvm.memcpy.p0.p0.i64(ptr %c, ptr %p, i64 16, i1 false)
  call void @take(ptr byval(%pair) %c)
  %x = load i64, ptr %c
  ret i64 %x
}
"""

FREED = """
declare ptr @malloc(i64)
declare void @free(ptr)
declare void @keep(ptr)
declare void @show()

define void @freed(i64 %x) {
  %p = call ptr @malloc(i64 8)
  %none = icmp eq ptr %p, null
  br i1 %none, label %end, label %go
go:
  store i64 7, ptr %p
  call void @keep(ptr %p)
  store i64 %x, ptr %p
  call void @free(ptr %p)
  br label %end
end:
  call void @show()
  ret void
}
"""

UNKNOWN = """
@table = external constant [0 x i32]
declare i32 @ask(ptr captures(none))

define i32 @unknown(ptr %a, i32 %n) {
  %v = alloca i32
  store i32 %n, ptr %v
  %l = load ptr, ptr %a
  %same = icmp eq ptr %l, %v
  br i1 %same, label %never, label %go
never:
  ret i32 1
go:
  %r = call i32 @ask(ptr captures(none) %v)
  %low = and i32 %n, 255
  %wide = zext i32 %low to i64
  %e = getelementptr inbounds [0 x i32], ptr @table, i64 0, i64 %wide
  %t = load i32, ptr %e
  %s = add i32 %r, %t
  ret i32 %s
}
"""

WIDE = """
define i64 @length(ptr %s) {
entry:
  br label %loop
loop:
  %n = phi i64 [ 0, %entry ], [ %m, %loop ]
  %p = getelementptr inbounds i32, ptr %s, i64 %n
  %c = load i32, ptr %p
  %m = add i64 %n, 1
  %end = icmp eq i32 %c, 0
  br i1 %end, label %done, label %loop
done:
  ret i64 %n
}
declare i64 @wcslen(ptr)
!llvm.module.flags = !{!0}
!0 = !{i32 1, !"wchar_size", i32 4}
"""

POSITIVE = """
define i64 @at(ptr %p, i64 %i) {
entry:
  %above = icmp sgt i64 %i, 0
  br i1 %above, label %go, label %none
go:
  %e = getelementptr inbounds i64, ptr %p, i64 %i
  %x = load i64, ptr %e
  ret i64 %x
none:
  ret i64 0
}
"""


def _body(text: str, first: str, replacement: str) -> str:
    """Return a module whose function has another body from a line on."""
    head, _, rest = text.partition(first)
    return head + replacement + rest.partition("}")[2]


@pytest.mark.parametrize(
    ("text", "old", "new", "right"),
    [
        (MERGED, "(ptr %q)", "(ptr %p)", True),
        (MERGED, "call void @llvm.lifetime.end.p0(ptr %p)", "", True),
        (MERGED, "%b = load i32, ptr %q", "%b = load i32, ptr %p", False),
        (MERGED, "store i32 %x, ptr %p", "", False),
        (BY_VALUE, "@take(ptr byval(%pair) %c)", "@take(ptr byval(%pair) %p)", True),
        (BY_VALUE, "%x = load i64, ptr %c", "%x = load i64, ptr %p", False),
        (BY_VALUE, "%p, i64 16", "%p, i64 8", False),
        (BY_VALUE, "call void @take", "store i64 3, ptr %c\n  call void @take", False),
        (FREED, "store i64 %x, ptr %p", "", True),
        (FREED, "store i64 7, ptr %p", "", False),
        (UNKNOWN, "br i1 %same, label %never, label %go", "br label %go", True),
        (UNKNOWN, "i64 %wide", "i64 1", False),
        (UNKNOWN, "store i32 %n, ptr %v", "", False),
        (POSITIVE, "inbounds i64", "inbounds nuw i64", True),
        (POSITIVE, "sgt i64 %i, 0", "sgt i64 %i, 1", False),
    ],
)
def test_objects_are_matched(text: str, old: str, new: str, right: bool, after_passes: Passes) -> None:
    """Right changes pass on all functions, wrong ones are told."""
    assert old in text
    changed = text.replace(old, new)
    if (old, right) == ("(ptr %q)", True):
        changed = changed.replace("%b = load i32, ptr %q", "%b = load i32, ptr %p")
    [before], [after] = (after_passes(each, [["verify"]]) for each in (text, changed))
    assert before and after
    validation = compared(before, after, 1, 0)
    assert validation.checked if right else not validation.ok, validation


def test_living_variables_are_told_apart(after_passes: Passes) -> None:
    """Two variables that others may know at the same time cannot be merged."""
    text = "\n".join(line for line in MERGED.splitlines() if "call void @llvm" not in line)
    [before, after] = (
        after_passes(each, [["verify"]])[0]
        for each in (text, text.replace("(ptr %q)", "(ptr %p)").replace("i32, ptr %q", "i32, ptr %p"))
    )
    assert not compared(before, after, 1, 0).ok


@pytest.mark.parametrize(
    ("result", "right"), [("ret i64 %n", True), ("%o = add i64 %n, 1\n  ret i64 %o", False)]
)
def test_lengths_of_wide_texts(result: str, right: bool, after_passes: Passes) -> None:
    """LLVM makes calls of `wcslen`."""
    other = _body(WIDE, "entry:", f"%n = call i64 @wcslen(ptr %s)\n  {result}\n}}")
    [before], [after] = (after_passes(each, [["verify"]]) for each in (WIDE, other))
    assert compared(before, after, 1, 0).ok == right


@pytest.mark.parametrize("pair", ["i16 16, i16 16", "i16 24, i16 16", "i16 2000, i16 16", "i16 7, i16 7"])
def test_small_numbers_are_no_addresses(pair: str, after_passes: Passes) -> None:
    """Numbers in memory that others see do not show them a variable whose address is not there."""
    stored = f"""store <4 x i16> <i16 0, i16 0, {pair}>, ptr %q
  call void @fill(ptr %q)"""
    text = f"""
declare void @fill(ptr)
define i32 @numbers(i32 %x) {{
  %p = alloca i32
  %q = alloca [4 x i16]
  store i32 %x, ptr %p
  {stored}
  {stored}
  %y = load i32, ptr %p
  ret i32 %y
}}
"""
    [before, after] = after_passes(text, [["verify"], ["sroa"]])
    assert "%p = alloca" not in after
    assert compared(before, after, 1, 0).checked
