from pathlib import Path

import pytest
from llvm_modules import llvm_process

from irgym.base.errors import BackendError
from irgym.envs.llvm.compiling.installed import PREFERRED, llvm_named
from irgym.llvmir.programs import kernels
from irgym.llvmir.programs.clang import compiled

NAMES = ("signals", "sorting")
OPTIONS = ("-O2", "-Xclang", "-disable-llvm-passes", "-g0")

SMALL = b"""
target triple = "x86_64-unknown-linux-gnu"
@table = internal constant [2 x i32] [i32 7, i32 9]
declare i32 @g(i32)
define i32 @f(i32 %x, ptr %p) {
entry:
  %c = icmp eq i32 %x, 3
  br i1 %c, label %a, label %b
a:
  switch i32 %x, label %b [ i32 1, label %c1
    i32 -2, label %c1 ]
c1:
  store i128 1, ptr getelementptr (i8, ptr @table, i64 4)
  br label %b
b:
  %ph = phi i32 [ 0, %entry ], [ 1, %a ], [ 2, %c1 ]
  %r = call i32 @g(i32 %ph)
  ret i32 %r
}
define internal i32 @h(ptr %q) {
  %r = call i32 @f(i32 0, ptr @f)
  %s = call i32 %q(i32 %r)
  ret i32 %s
dead:
  %t = fcmp oeq double 1.0, 2.0
  unreachable
}
"""
"""A module with what is easily got wrong."""

RARE = rb"""
target triple = "x86_64-unknown-linux-gnu"
%s = type { i32, ptr }
@g = global ptr @callee
@alias = alias i32, ptr @number
@number = global i32 3
@labels = internal constant [2 x ptr] [ptr blockaddress(@jump, %l1), ptr blockaddress(@jump, %l2)]
declare i32 @__gxx_personality_v0(...)
declare void @callee()
declare void @llvm.experimental.noalias.scope.decl(metadata)
declare i32 @variadic(i32, ...)
define i32 @invoking() personality ptr @__gxx_personality_v0 {
  invoke void @callee() to label %fine unwind label %pad
fine:
  ret i32 0
pad:
  %p = landingpad { ptr, i32 } cleanup catch ptr @number
  %x = extractvalue { ptr, i32 } %p, 1
  %y = insertvalue { ptr, i32 } %p, i32 1, 1
  resume { ptr, i32 } %y
}
define i32 @jump(i32 %i) {
  %a = getelementptr [2 x ptr], ptr @labels, i32 0, i32 %i
  %t = load ptr, ptr %a
  indirectbr ptr %t, [label %l1, label %l2, label %l1]
l1:
  call void asm sideeffect "nop", "~{memory}"()
  br label %l2
l2:
  %v = add <4 x i32> <i32 1, i32 1, i32 1, i32 1>, zeroinitializer
  %e = extractelement <4 x i32> %v, i64 0
  %w = add i128 1, 340282366920938463463374607431768211455
  %z = icmp eq i128 %w, 18446744073709551617
  %q = call i32 (i32, ...) @variadic(i32 %e, i32 1, i1 true, i1 false, double 0.0)
  %f = fcmp une double 0.0, 1.0
  call void @llvm.experimental.noalias.scope.decl(metadata !1)
  %c = cmpxchg ptr @number, i32 0, i32 1 seq_cst seq_cst
  %r = atomicrmw add ptr @alias, i32 1 seq_cst
  fence seq_cst
  ret i32 %q
}
define i32 @goto() {
  callbr void asm "", "!i"() to label %a [label %b]
a:
  ret i32 1
b:
  %u = call i32 () @undefined_proto()
  ret i32 %u
}
define void @self(ptr %p) {
  br label %loop
loop:
  switch i32 undef, label %loop [ i32 1, label %loop
   i32 2, label %loop ]
}
declare i32 @undefined_proto(i32)
define void @empty_switch(i64 %x) {
  switch i64 %x, label %d []
d:
  unreachable
}
!0 = !{!"d"}
!2 = !{!"s", !0}
!1 = !{!2}
"""
"""A module with rare instructions and constants."""


@pytest.fixture(scope="session")
def llvm(built):
    """A process with LLVM, for the functions of `llvm_modules`."""
    try:
        llvm_named(PREFERRED)
    except BackendError as error:
        pytest.skip(str(error))
    with llvm_process(built) as process:
        yield process


@pytest.fixture(scope="session")
def sources(llvm):
    """IR of programs in C, unoptimised, by name."""
    folder = Path(kernels.__file__).parent
    return {name: compiled(folder / f"{name}.c", "x86-64", OPTIONS) for name in NAMES}


@pytest.fixture
def small():
    """The IR of `SMALL`."""
    return SMALL


@pytest.fixture
def rare():
    """The IR of `RARE`."""
    return RARE
