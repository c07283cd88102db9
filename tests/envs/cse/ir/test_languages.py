"""IR from compilers of several languages is opened, reduced, scored and exported correctly."""

from pathlib import Path

import pytest
from fuzz.cse import compilers
from fuzz.fuzzer import Tally

from irgym.core.schedule import replay
from irgym.envs.cse.checking.proving.proofs import proofs_of
from irgym.envs.cse.compiling import llvm
from irgym.envs.cse.compiling.export import export_module
from irgym.envs.cse.environment import CSE
from irgym.envs.cse.task import CseTask
from irgym.llvmir.ir.linking import unlinked
from irgym.llvmir.ir.modules import with_bodies
from irgym.measure.evaluators import Inline

CASES = Path(__file__).parents[3] / "cases" / "cse"
FUNCTIONS = ("tables", "symbols", "throws", "varies", "debugged")


def task_of(name: str, file: str = "languages.ll") -> CseTask:
    return CSE.task(f"cse:{CASES / file}#{name}", target="x86-64")


@pytest.mark.parametrize(
    ("file", "name"), [("tiny_comdat.ll", "f"), *(("languages.ll", name) for name in FUNCTIONS)]
)
def test_functions_are_scored_and_proved(file: str, name: str):
    task = task_of(name, file)
    everything = replay(task, task.pipeline("all"))
    assert task.names
    for measured in Inline().evaluate([task.job(task.initial()), task.job(everything)]):
        assert measured.ok, measured.detail
    proofs = proofs_of(str(task.module), task.analysed.function.name, tuple(range(len(task.names))))
    assert proofs.proved == proofs.pairs > 0


def test_the_module_is_written_with_all_that_was_in_it(tmp_path: Path):
    parts = [(task, replay(task, task.pipeline("all"))) for task in map(task_of, FUNCTIONS)]
    [file] = export_module([task.choice(state) for task, state in parts], tmp_path / "out.ll")
    text = file.read_text()
    llvm.read(text, "what was written")
    before = parts[0][0].module.read_text()
    for kept in ("comdat", "alias", "ifunc", "llvm.global_ctors", "thread_local", "!dbg", "landingpad"):
        assert text.count(kept) <= before.count(kept) and kept in text
    for task, _ in parts:
        assert not CSE.task(f"cse:{file}#{task.analysed.function.name[1:]}", target="x86-64").names


def test_debug_records_follow_the_result_that_stays(tmp_path: Path):
    task = task_of("debugged")
    [file] = task.export(replay(task, task.pipeline("all")), tmp_path / "out.ll")
    body = file.read_text().partition("@debugged")[2].partition("\n}")[0]
    records = [line.strip().partition(",")[0] for line in body.splitlines() if "#dbg_value" in line]
    assert records == ["#dbg_value(i32 %x", "#dbg_value(i32 %m", "#dbg_value(i32 %m"]
    assert "%m2" not in body


def test_debug_information_changes_no_choice_and_no_score(tmp_path: Path):
    plain = tmp_path / "plain.ll"
    lines = (CASES / "languages.ll").read_text().partition("!llvm.dbg.cu")[0].splitlines()
    without = [line.partition(", !dbg")[0] for line in lines if "#dbg_" not in line]
    plain.write_text("\n".join(without).replace(" !dbg !5", "").replace("!dbg !9 ", ""))
    tasks = [task_of("debugged"), CSE.task(f"cse:{plain}#debugged", target="x86-64")]
    assert tasks[0].names == tasks[1].names
    first, second = Inline().evaluate([task.job(replay(task, task.pipeline("all"))) for task in tasks])
    assert first.cost == second.cost


UNTOUCHED = """
@0 = private constant [10 x i8] c"no name, \\00"
@1 = private constant ptr @0
@2 = private constant ptr @1
@g = global i32 0
declare void @take(ptr)
define internal i32 @3(i32 %x) #0 {
  %2 = alloca i32
  store i32 %x, ptr %2
  call void @take(ptr @2)
  %4 = load i32, ptr %2
  %5 = mul i32 %4, 3
  %6 = icmp eq i32 %5, 9
  br i1 %6, label %7, label %9
7:
  call void @take(ptr @0)
  %8 = mul i32 3, %4
  store i32 %8, ptr @g
  ret i32 7
9:
  ret i32 %5
}
define i32 @f(i32 %x) {
  %r = call i32 @3(i32 %x)
  ret i32 %r
}
attributes #0 = { noinline nounwind optnone uwtable }
"""


def test_symbols_without_names_and_functions_that_are_not_to_be_optimised(tmp_path: Path):
    file = tmp_path / "code.ll"
    file.write_text(UNTOUCHED)
    [uri] = CSE.parts(f"cse:{file}")
    task = CSE.task(uri, target="x86-64")
    [measured] = Inline().evaluate([task.job(replay(task, task.pipeline("all")))])
    assert measured.ok, measured.detail


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("@a = global i32 0, comdat, align 4", "@a = global i32 0, align 4"),
        ('@a = global i32 0, section "s", comdat($b), !type !5', '@a = global i32 0, section "s", !type !5'),
        ('@a = constant [9 x i8] c", comdat,", align 1', '@a = constant [9 x i8] c", comdat,", align 1'),
        ("@a = global i32 0, comdat", "@a = global i32 0"),
        ("@a = alias void (ptr, ...), ptr @b", "declare void @a(ptr, ...)"),
        ("@a = hidden ifunc ptr (), ptr @b", "declare ptr @a()"),
        ("@a = alias i32, ptr @b", "@a = alias i32, ptr @b"),
    ],
)
def test_symbols_lose_what_ties_them_to_others(line: str, wanted: str):
    assert unlinked(line, "@a", whole=False) == wanted


def test_cpp_with_debug_information_from_clang(tmp_path: Path):
    source, words = compilers.COMMANDS["shapes.cpp -O1 -g -Xclang -disable-llvm-passes"]
    tally = Tally()
    compilers.tried(compilers.written(source, words, tmp_path), 0, tally)
    assert not tally.findings and tally.cases


def test_an_alias_names_the_function_behind_it():
    assert task_of("same").analysed.function.name == "@tables"


def test_a_body_without_its_function_is_a_bug():
    with pytest.raises(ValueError, match="no function that begins with"):
        with_bodies("define void @f() {\n  ret void\n}\n", {"define void @g() {": []})
