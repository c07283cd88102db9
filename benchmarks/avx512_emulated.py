"""AVX-512 code on a machine without it: random schedules in Bochs, which emulates a processor that has it.

Makes code for x86-64-v4 of random schedules and sketches of `loops` and `linalg`, and code for older
processors of the same programs unoptimised; links all of it to one program, boots Linux with it in Bochs, and
reads from the serial line whether the results agree. It says nothing of speed. Where Bochs lacks an
instruction, a case stops, and is counted apart.

Needs Debian's packages bochs bochs-term bochsbios vgabios isolinux syslinux-common xorriso cpio gcc, and the
file of a Linux kernel, as linux-image-amd64 has one.

    python benchmarks/avx512_emulated.py --loops 1000 --linalg 200
"""

import gzip
import os
import pty
import random
import shutil
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
import tyro

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fuzz.linalg.schedules import PROGRAMS, drawn_state
from fuzz.loops.schedules import random_program, random_schedule

from irgym.core.cost import Call
from irgym.core.schedule import Schedule, replay
from irgym.envs.linalg.environment import LIMITS, LINALG
from irgym.envs.linalg.programs.sources import answer
from irgym.envs.linalg.task import LinalgTask
from irgym.envs.loops.compiling.backends import AVX2, AVX512
from irgym.envs.loops.compiling.lower import CodeTooLarge
from irgym.envs.loops.environment import LOOPS
from irgym.envs.loops.nest import initial_nest
from irgym.envs.loops.task import LoopsTask
from irgym.measure.isolation.child import Child
from irgym.measure.target import target_named

HERE = Path(__file__).parent / "emulated"

PROGRAMS_NEEDED = ("bochs", "xorriso", "cpio", "gcc")
ISOLINUX = Path("/usr/lib/ISOLINUX/isolinux.bin")
LOADER = Path("/usr/lib/syslinux/modules/bios/ldlinux.c32")
PACKAGES = "bochs bochs-term bochsbios vgabios isolinux syslinux-common xorriso cpio gcc linux-image-amd64"

# Without the two features Linux asks for the standard form of the registers' area: that of XSAVES is of
# another size in Bochs 2.7 than Linux expects, which then does without AVX.
BOOT = """DEFAULT cases
LABEL cases
 KERNEL /vmlinuz
 INITRD /initrd.gz
 APPEND console=ttyS0 quiet mitigations=off tsc=reliable lpj=1000000 no_timer_check clearcpuid=321,323
"""

MACHINE = """plugin_ctrl: unmapped=1, biosdev=1, speaker=0, extfpuirq=1, parallel=0, serial=1
display_library: term
cpu: model=corei7_skylake_x, ips=50000000
memory: guest=1024, host=1024
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
boot: cdrom
ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14
ata0-master: type=cdrom, path={folder}/boot.iso, status=inserted
com1: enabled=1, mode=file, dev={folder}/serial.txt
clock: sync=none
log: {folder}/bochs.log
panic: action=fatal
"""


@dataclass(frozen=True)
class Options:
    """Options."""

    loops: int = 1000
    """Schedules of loops."""
    linalg: int = 200
    """Schedules of linalg."""
    seed: int = 0
    """Seed of programs and schedules."""
    kernel: Path | None = None
    """A Linux kernel; by default the last one in /boot."""
    limit_s: float = 1800.0
    """Seconds that the emulator may take."""


@dataclass(frozen=True)
class Case:
    """A schedule, and the original program.

    Attributes:
        text: What failures are called.
        sizes: Elements of the arguments, then of the results.
        results: How many of these are results.
        ours: Object file of the schedule's code.
        reference: Object file of the reference.
    """

    text: str
    sizes: tuple[int, ...]
    results: int
    ours: bytes
    reference: bytes


def loops_cases(count: int, seed: int) -> Iterator[Case]:
    """Yield schedules of loops by the machine-code generator, every second one a sketch."""
    rng, sketches = random.Random(seed), np.random.default_rng(seed)
    target = target_named("x86-64-v4", runs=False)
    number = 0
    while number < count:
        contraction = LOOPS.task(random_program(rng)).contraction
        task = LoopsTask(contraction, AVX512, target)
        if number % 2:
            schedule = Schedule(tuple(task.sketch(sketches)))
            state = replay(task, schedule)
        else:
            schedule, state = random_schedule(task, rng)
        try:
            ours = AVX512.object_file(contraction, state.nest, "ours")
        except CodeTooLarge:
            continue
        reference = AVX2.object_file(contraction, initial_nest(contraction), "reference")
        sizes = tuple(map(prod, contraction.shapes))
        yield Case(f"{task.uri} {schedule.text(task.space)}", sizes, 1, ours, reference)
        number += 1


def linalg_cases(count: int, seed: int) -> Iterator[Case]:
    """Yield schedules of linalg, every second round of the programs sketches."""
    rng = np.random.default_rng(seed)
    target, old = target_named("x86-64-v4", runs=False), target_named("x86-64", runs=False)
    references: dict[str, bytes] = {}
    with Child(LIMITS) as child:

        def compiled(task: LinalgTask, script: str, code_for: object, name: str) -> bytes:
            arguments = (task.text, script, code_for, None, name)
            call = Call("irgym.envs.linalg.compiling.native:object_file", arguments)
            return answer(child, call, task.uri)

        for number in range(count):
            uri = PROGRAMS[number % len(PROGRAMS)]
            home = LINALG.task(uri)
            task = LinalgTask(uri, home.text, home.program, target=target, threads=None)
            state, schedule = drawn_state(task, number // len(PROGRAMS) % 2 == 1, rng)
            if uri not in references:
                references[uri] = compiled(task, "", old, "reference")
            arrays = (*task.program.arguments, *task.program.results)
            yield Case(
                f"{uri} {schedule.text(task.space)}",
                tuple(prod(shape) for shape, _ in arrays),
                len(task.program.results),
                compiled(task, task.script(state), target, "ours"),
                references[uri],
            )


def link(cases: list[Case], folder: Path) -> Path:
    """Link all cases to one static program, and return it."""
    lines: list[str] = []
    objects: list[Path] = []
    for number, case in enumerate(cases):
        taken = ", ".join(["float *"] * len(case.sizes))
        given = ", ".join(f"arrays[{place}]" for place in range(len(case.sizes)))
        for name, content in (("ours", case.ours), ("reference", case.reference)):
            file = folder / f"{name}{number}.o"
            file.write_bytes(content)
            subprocess.run(["objcopy", f"--keep-global-symbol={name}", str(file)], check=True)
            subprocess.run(["objcopy", f"--redefine-sym={name}={name}{number}", str(file)], check=True)
            objects.append(file)
            lines.append(f"extern void {name}{number}({taken});")
            lines.append(f"static void call_{name}{number}(float **arrays) {{ {name}{number}({given}); }}")
        lines.append(f"static const long sizes{number}[] = {{{', '.join(map(str, case.sizes))}}};")
    rows = [
        f"    {{{number}, {len(case.sizes)}, {case.results}, sizes{number}, call_ours{number}, "
        f"call_reference{number}}},"
        for number, case in enumerate(cases)
    ]
    lines += ["static const Case CASES[] = {", *rows, "};"]
    (folder / "cases.h").write_text("\n".join(lines) + "\n")
    # A list: so many names are too long for a command line.
    (folder / "objects").write_text("\n".join(map(str, objects)))
    words = ["gcc", "-O1", "-static", f"-I{folder}", str(HERE / "cases.c"), f"@{folder}/objects", "-lm"]
    subprocess.run([*words, "-o", str(folder / "cases")], check=True)
    return folder / "cases"


def write_disc(program: Path, kernel: Path, folder: Path) -> None:
    """Write boot.iso, which runs a program and powers off."""
    root, disc = folder / "root", folder / "disc"
    (disc / "isolinux").mkdir(parents=True)
    root.mkdir()
    subprocess.run(["gcc", "-O1", "-static", str(HERE / "init.c"), "-o", str(root / "init")], check=True)
    shutil.copy(program, root / "cases")
    archived = subprocess.run(
        ["cpio", "--quiet", "-o", "-H", "newc"],
        input=b"init\ncases\n",
        cwd=root,
        capture_output=True,
        check=True,
    )
    (disc / "initrd.gz").write_bytes(gzip.compress(archived.stdout, 1))
    shutil.copy(kernel, disc / "vmlinuz")
    shutil.copy(ISOLINUX, disc / "isolinux")
    shutil.copy(LOADER, disc / "isolinux")
    (disc / "isolinux" / "isolinux.cfg").write_text(BOOT)
    image = ["-b", "isolinux/isolinux.bin", "-c", "isolinux/boot.cat", "-no-emul-boot"]
    image += ["-boot-load-size", "4", "-boot-info-table", "-quiet", "-o", str(folder / "boot.iso"), str(disc)]
    subprocess.run(["xorriso", "-as", "mkisofs", *image], check=True, capture_output=True)


def emulate(folder: Path, limit_s: float) -> list[str]:
    """Boot boot.iso, and return what it says on the serial line.

    Raises:
        SystemExit: It takes too long, or ends before its time.
    """
    (folder / "bochsrc").write_text(MACHINE.format(folder=folder))
    (folder / "commands").write_text("c\n")  # of Bochs's debugger: go on
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (50, 120))
    words = ["bochs", "-q", "-f", str(folder / "bochsrc"), "-rc", str(folder / "commands")]
    environment = {**os.environ, "TERM": "xterm"}
    process = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    threading.Thread(target=_drain, args=(ours,), daemon=True).start()
    serial, started, said = folder / "serial.txt", time.monotonic(), ""
    try:
        while "\nEND " not in said and process.poll() is None and time.monotonic() - started < limit_s:
            time.sleep(1.0)
            said = serial.read_text(errors="replace").replace("\r", "") if serial.exists() else ""
    finally:
        process.kill()
        process.wait()
    if "\nEND " not in said:
        log = folder / "bochs.log"
        raise SystemExit(f"the emulated machine did not end:\n{said}\n{log.read_text()[-2000:]}")
    return said.splitlines()


def _drain(terminal: int) -> None:
    """Read what the emulator draws, so that it goes on."""
    try:
        while os.read(terminal, 65536):
            pass
    except OSError:
        return  # it has ended


def main(options: Options) -> None:
    """Make, run, count."""
    kernels = sorted(Path("/boot").glob("vmlinuz-*"))
    kernel = options.kernel or (kernels[-1] if kernels else None)
    missing = [name for name in PROGRAMS_NEEDED if shutil.which(name) is None]
    if kernel is None or missing or not ISOLINUX.exists() or not LOADER.exists():
        raise SystemExit(f"something is missing: apt-get install {PACKAGES}, or name a kernel by --kernel")
    started = time.monotonic()
    cases = [*loops_cases(options.loops, options.seed), *linalg_cases(options.linalg, options.seed)]
    made_s = time.monotonic() - started
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_disc(link(cases, folder), kernel, folder)
        lines = emulate(folder, options.limit_s)
    verdicts = {"RIGHT": 0, "WRONG": 0, "STOPPED": 0}
    for line in lines:
        verdict, _, rest = line.partition(" ")
        if verdict in verdicts:
            verdicts[verdict] += 1
            if verdict != "RIGHT":
                print(f"{verdict.lower()}: {cases[int(rest.split()[0])].text}; {rest}")
        elif verdict == "END":
            print(rest)
    told = ", ".join(f"{count} {verdict.lower()}" for verdict, count in verdicts.items())
    print(
        f"AVX-512 code in Bochs, {options.loops} schedules of loops and {options.linalg} of linalg: {told}; "
        f"{made_s:.0f} s to compile, {time.monotonic() - started - made_s:.0f} s to emulate"
    )
    sys.exit(0 if verdicts["RIGHT"] + verdicts["STOPPED"] == len(cases) and not verdicts["WRONG"] else 1)


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
