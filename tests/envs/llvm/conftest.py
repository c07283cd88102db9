"""Small modules of LLVM's IR, as files of bitcode."""

from pathlib import Path

import pytest

from irgym.core.cost import Call
from irgym.envs.llvm.compiling.modules import ProgramModules
from irgym.envs.llvm.compiling.pool import Pool
from irgym.envs.llvm.task import LlvmTask
from irgym.measure.isolation.child import Child
from irgym.measure.isolation.protocol import Limits, Returned

SUM = """
define i32 @sum(ptr %a, i32 %n) minsize optsize {
entry:
  %s = alloca i32
  %i = alloca i32
  store i32 0, ptr %s
  store i32 0, ptr %i
  br label %head
head:
  %i1 = load i32, ptr %i
  %more = icmp slt i32 %i1, %n
  br i1 %more, label %body, label %end
body:
  %i2 = load i32, ptr %i
  %wide = sext i32 %i2 to i64
  %place = getelementptr inbounds i32, ptr %a, i64 %wide
  %x = load i32, ptr %place
  %s1 = load i32, ptr %s
  %s2 = add nsw i32 %s1, %x
  store i32 %s2, ptr %s
  %i3 = add nsw i32 %i2, 1
  store i32 %i3, ptr %i
  br label %head
end:
  %s3 = load i32, ptr %s
  ret i32 %s3
}
"""

CALLS = """
@table = private constant [4 x i32] [i32 3, i32 5, i32 7, i32 9]
declare void @seen(i32)
define internal i32 @twice(i32 %x) minsize optsize {
  %y = mul i32 %x, 2
  ret i32 %y
}
define i32 @calls(i32 %n) minsize optsize {
entry:
  %low = and i32 %n, 3
  %wide = zext i32 %low to i64
  %place = getelementptr [4 x i32], ptr @table, i64 0, i64 %wide
  %x = load i32, ptr %place
  %y = call i32 @twice(i32 %x)
  %z = call i32 @twice(i32 %x)
  %both = add i32 %y, %z
  call void @seen(i32 %both)
  %big = icmp sgt i32 %both, 20
  br i1 %big, label %one, label %two
one:
  ret i32 %both
two:
  %w = sub i32 %both, %n
  ret i32 %w
}
"""

TEXTS = {"sum": SUM, "calls": CALLS}
BACKEND = "llvm-23"


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Files of bitcode by name."""
    folder = tmp_path_factory.mktemp("modules")
    found: dict[str, Path] = {}
    child = Child(Limits(timeout_s=60.0))
    try:
        for name, text in TEXTS.items():
            reply = child.call(Call("llvm_bitcode:of_text", (text,)))
            assert isinstance(reply, Returned), reply
            found[name] = folder / f"{name}.bc"
            found[name].write_bytes(reply.value)
    finally:
        child.close()
    return found


@pytest.fixture(scope="session")
def pool():
    """Two processes for passes."""
    processes = Pool(BACKEND, 2)
    yield processes
    processes.close()


@pytest.fixture(params=list(TEXTS))
def task(request: pytest.FixtureRequest, files: dict[str, Path], pool: Pool) -> LlvmTask:
    """A task of each module, of which nothing is known yet."""
    file = files[request.param]
    return LlvmTask(ProgramModules(f"llvm:{file}", file, request.param, pool))
