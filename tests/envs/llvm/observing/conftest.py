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
