"""Whole programs: linked, run on their arguments and input, timed, and compared by their output."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import irgym
from irgym.base.errors import BackendError, IrgymError, ProgramError
from irgym.core.cost import Call, Outcome
from irgym.core.datasets import dataset_named
from irgym.core.schedule import replay
from irgym.envs.llvm.environment import LLVM
from irgym.envs.llvm.task import LlvmTask
from irgym.measure.isolation.child import Child
from irgym.measure.isolation.protocol import Limits
from irgym.measure.replies import answered

SUM = """
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **words) {
    int n = count > 1 ? atoi(words[1]) : 10, letter, letters = 0;
    unsigned sum = 4711;
    for (int i = 0; i < n; i++) sum = sum * 31 + i;
    while ((letter = getchar()) != EOF) letters += letter == 'x';
    printf("%u %d %s\\n", sum, letters, count > 2 ? words[2] : "");
    return letters;
}
"""


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    """A process in which programs are measured."""
    with Child(Limits(timeout_s=60.0)) as opened:
        yield opened


def called(child: Child, call: Call):
    return answered(child, call, "a program", "LLVM")


def program(folder: Path, text: str = SUM, query: str = "", objective: str | None = "time") -> LlvmTask:
    """Return the task of a C file."""
    file = folder / "prog.c"
    file.write_text(text)
    return LLVM.task(f"llvm:{file}{query}", objective=objective)


def test_a_program_is_tuned_for_time_and_timed_in_turn_with_o3(tmp_path: Path):
    task = program(tmp_path, query="?args=3000000")
    result = irgym.tune(
        task.uri,
        seconds=15.0,
        searching=irgym.Searching(search="random", evaluations=3),
        measuring=irgym.Measuring(objective="time"),
    )
    assert result.objective.timed and result.validated and result.cost > 0
    assert result.baseline == "o3" and "-O3 of LLVM 23" in result.versus.detail
    assert result.reference is None and result.task.target is not None
    assert any("the program was run: output and exit status" in note for note in result.validation.notes)


def test_whole_programs_keep_the_rules_under_all_objectives(tmp_path: Path):
    uri = program(tmp_path, query="?args=1000").uri
    irgym.check_environment("llvm", [uri], walks=1, steps=3)


def test_searches_for_time_begin_with_o3_and_others_with_oz(tmp_path: Path):
    task = program(tmp_path)
    assert tuple(LLVM.beginnings(task.objective)) == ("o3",) and LLVM.reference(task.objective) is None
    assert "oz" in LLVM.beginnings(LLVM.objective("size")) and LLVM.reference(LLVM.objective("size")) == "oz"


def test_code_for_time_is_made_fast_and_for_this_machine(tmp_path: Path):
    timed, small = program(tmp_path), program(tmp_path, objective=None)
    assert "minsize" in small.text(small.initial()) and "optsize" in small.text(small.initial())
    text = timed.text(timed.initial())
    assert "optsize" not in text and f'"target-cpu"="{timed.target.name}"' in text
    lesser = LLVM.task(timed.uri, target="x86-64", objective="time")
    assert '"target-cpu"="x86-64"' in lesser.text(lesser.initial()) and lesser.target.name == "x86-64"
    assert lesser.job(lesser.initial()).target != timed.job(timed.initial()).target
    assert small.target is None
    with pytest.raises(BackendError):
        LLVM.task(timed.uri, target="aarch64", objective="time")


def test_ir_without_a_processor_gets_this_machine_and_other_ir_keeps_its_own(tmp_path: Path):
    file = tmp_path / "f.ll"
    file.write_text(
        'define i32 @main() {\n  ret i32 0\n}\ndefine void @g() "target-cpu"="core2" {\n  ret void\n}\n'
    )
    task = LLVM.task(f"llvm:{file}", objective="time")
    text = task.text(task.initial())
    assert f'"target-cpu"="{task.target.name}"' in text and '"target-cpu"="core2"' in text


def test_programs_of_another_processor_do_not_link(tmp_path: Path):
    file = tmp_path / "f.ll"
    file.write_text('target triple = "i686-unknown-linux-gnu"\ndefine i32 @main() {\n  ret i32 0\n}\n')
    with pytest.raises(ProgramError, match=r"f\.ll does not link \(.*: name a program with a main"):
        LLVM.task(f"llvm:{file}", objective="time")


def test_arguments_and_input_reach_the_program(tmp_path: Path, child: Child):
    (tmp_path / "in.txt").write_text("axbxxc")
    right = program(tmp_path, query="?args=100 'a %26 b'&stdin=in.txt")
    assert right.uri.endswith("?args=100 'a %26 b'&stdin=in.txt")
    expected = called(child, Call("irgym.envs.llvm.whole.timing:original_of", (right.whole,))).expected
    assert expected.first.output.endswith(b" 3 a & b\n") and expected.first.status == 3
    other = program(tmp_path, query="?args=101&stdin=in.txt")
    assert other.job(other.initial()).toolchain != right.job(right.initial()).toolchain
    (tmp_path / "in.txt").write_text("another input")
    again = LLVM.task(right.uri, objective="time")
    assert again.job(again.initial()).toolchain != right.job(right.initial()).toolchain


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "int twice(int x) { return 2 * x; }",
            "has no main, so it cannot be run: name a program with a main",
        ),
        (
            "int missing(void); int main(void) { return missing(); }",
            "lacks missing, so it cannot be run: add",
        ),
    ],
)
def test_what_does_not_link_is_refused_with_the_remedy(tmp_path: Path, text: str, said: str):
    with pytest.raises(ProgramError, match=said):
        program(tmp_path, text)
    assert program(tmp_path, text, objective=None).initial().node.total > 0


def test_programs_that_crash_or_never_end_are_refused(tmp_path: Path, child: Child):
    task = program(tmp_path, "#include <stdlib.h>\nint main(void) { abort(); }")
    with pytest.raises(
        ProgramError, match="crashes with signal SIGABRT before any pass: mend it, or give it"
    ):
        called(child, task.job(task.initial()).call)
    task = program(tmp_path, "int main(void) { for (volatile int x = 0;; x = 1); }")
    with pytest.raises(
        ProgramError, match=r"no end within the time limit \(0\.2 s, 16 MiB\): give it arguments or input"
    ):
        called(child, Call("llvm_whole:hurried", (task.whole,)))


def test_a_program_that_does_not_repeat_its_output_is_timed_but_not_compared(tmp_path: Path, child: Child):
    text = '#include <stdio.h>\n#include <unistd.h>\nint main(void) { printf("%d\\n", getpid()); return 0; }'
    task = program(tmp_path, text)
    state = replay(task, task.pipeline("o3"))
    assert called(child, task.job(state).call).ok
    notes = called(child, task.validation(state, 1, 0)).notes
    assert notes[0] == "the program was run: the original program's output differs from run to run"


def test_a_wrong_pass_is_caught_by_the_output(tmp_path: Path, child: Child):
    whole = program(tmp_path).whole
    measured = called(child, Call("llvm_whole:measured", (whole, "4711", "4712")))
    assert measured.outcome is Outcome.WRONG_RESULT and "the output differs from byte" in measured.detail
    checked = called(child, Call("llvm_whole:validated", (whole, "4711", "4712")))
    assert not checked.ok and "the output differs from byte" in checked.detail


def test_a_pass_after_which_the_program_never_ends_is_a_time_out(tmp_path: Path, child: Child):
    text = "int main(void) { volatile int x = 0; while (x < 4711) x++; return 0; }"
    whole = program(tmp_path, text).whole
    measured = called(child, Call("llvm_whole:measured", (whole, "4711", "2147483647")))
    assert measured.outcome is Outcome.TIMEOUT and measured.detail == "no end within the time limit"


def test_other_objectives_run_a_program_only_where_its_uri_says_how(tmp_path: Path):
    def runs(task: LlvmTask) -> bool:
        return task.validation(task.initial(), 1, 0).arguments[-2] is not None

    assert runs(program(tmp_path)) and not runs(program(tmp_path, objective="size"))
    assert runs(program(tmp_path, objective="size", query="?args="))
    assert runs(LLVM.task("llvm://programs/sieve.c"))


def test_gains_of_passes_are_timed_in_turn(tmp_path: Path, child: Child):
    task = program(tmp_path, query="?args=1000000")
    state = replay(task, task.pipeline("o3"))
    rounds = called(child, task.stage_call(task.initial(), state))
    assert len(rounds) >= 5 and all(first > 0 and second > 0 for first, second in rounds)
    with pytest.raises(IrgymError, match="no baseline 'gcc': choose o3"):
        task.baseline_call("gcc", state)


def test_files_of_one_program_are_linked(tmp_path: Path, child: Child):
    (tmp_path / "util.c").write_text(
        '#include "util.h"\nstatic int seen;\nint twice(int x) { return seen += 2 * x; }'
    )
    (tmp_path / "more.c").write_text("static int seen = 40;\nint more(void) { return seen; }")
    (tmp_path / "util.h").write_text("int twice(int);\nint more(void);\n")
    main = '#include "util.h"\nint main(void) { return twice(1) + more(); }'
    task = program(tmp_path, main, "?with=util.c,more.c")
    assert program(tmp_path, main, "?with=*.c").modules.content != ""
    expected = called(child, Call("irgym.envs.llvm.whole.timing:original_of", (task.whole,))).expected
    assert expected.first.status == 42
    (tmp_path / "more.c").write_text("int more(void) { return 1; }")
    assert LLVM.task(task.uri, objective="time").modules.content != task.modules.content
    (tmp_path / "more.c").write_text("int twice(int x) { return x; }")
    with pytest.raises(ProgramError, match=r"more\.c cannot be linked with the others .*twice"):
        LLVM.task(task.uri)


def test_folders_of_files_are_programs_of_a_list(tmp_path: Path):
    for name, status in (("first", 3), ("second", 4)):
        folder = tmp_path / name / "src"
        folder.mkdir(parents=True)
        (folder / "main.c").write_text("int value(void);\nint main(void) { return value(); }")
        (folder / "value.c").write_text(f"int value(void) {{ return {status}; }}")
    listing = tmp_path / "list.txt"
    listing.write_text("llvm:first/src/main.c?with=*.c\nllvm:second/src/main.c?with=*.c&args=1 2\n")
    found = dataset_named(LLVM, str(listing)).all
    assert {uri.partition("?")[2] for uri in found} == {"with=*.c", "args=1 2&with=*.c"}
    assert all("define i32 @value" in task.text(task.initial()) for task in map(LLVM.task, found))


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("?with=none.c", r"there is no file .*none\.c to link with"),
        ("?stdin=none.txt", r"none\.txt"),
        ("?args='a", "args has an open quotation mark; close it"),
        ("?n=4", r"'n=4' is no option of a file; its options: args, stdin, with"),
        ("?args=1&args=2", "args is given twice"),
    ],
)
def test_wrong_options_are_refused(tmp_path: Path, query: str, said: str):
    with pytest.raises(ProgramError, match=said):
        program(tmp_path, query=query)
