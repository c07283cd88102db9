"""Programs of every kind and type on every back end, and as C source."""

import ctypes
import random
import re
import shutil
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from avx512_machine import Machine
from fuzz.loops.programs import any_program
from hypothesis import given, settings
from hypothesis import strategies as st

from irgym.base.errors import BackendError
from irgym.core.target import X86_64, X86_64_V3, X86_64_V4
from irgym.envs.loops.checking.inputs import Draw, Prepared, problem_of, tolerant
from irgym.envs.loops.compiling import avx512, c_source
from irgym.envs.loops.compiling.backends import BACKENDS, Backend
from irgym.envs.loops.compiling.export import export
from irgym.envs.loops.compiling.lower import CodeTooLarge, lower
from irgym.envs.loops.compiling.precision import DOUBLE
from irgym.envs.loops.environment import LOOPS
from irgym.envs.loops.nest import Nest, initial_nest
from irgym.envs.loops.programs.contraction import Contraction, Tensor, parse_uri
from irgym.envs.loops.sketches import draw
from irgym.measure.checking.agreement import compare as agreement_of
from irgym.measure.checking.guarded import Buffers

SEEDS = st.integers(0, 2**32 - 1)
Function = Callable[..., object]


def check(contraction: Contraction, run: Function, guard: Callable[[Tensor], Tensor], seed: int) -> None:
    """Run on whole, random and special numbers, with memory behind each tensor that must not be touched."""
    for kind in Draw:
        found = problem_of(contraction, seed, kind)
        buffers = Buffers(found.inputs, [expected.values for expected in found.expected])
        tensors = [guard(array) for array in buffers.all]
        run(*(tensor.ctypes.data for tensor in tensors))
        buffers.results[0][...] = tensors[2]
        agreement = Prepared(contraction, found, buffers).judge(zeros=True)
        assert agreement.ok, f"{contraction.uri}: {kind.value}: {agreement.detail}"


def test_products_whose_squares_vanish_may_be_rounded():
    contraction = parse_uri("loops://mm/1x1x2?dtype=f64")
    a, b = np.array([[5e-310, -5e-310]]), np.array([[1e70], [1e70]])
    rounded = 2.0**-54 * 5e-240  # what one fused multiply-add leaves of the difference
    for found, right in ((0.0, True), (-rounded, True), (1e-252, False)):
        agreement = agreement_of(tolerant(contraction, a, b), np.array([[found]]))
        assert agreement.ok == right, (found, agreement.detail)


@pytest.mark.parametrize("generator", BACKENDS, ids=lambda generator: generator.name)
@settings(max_examples=40, deadline=None)
@given(seed=SEEDS)
def test_random_schedules_and_sketches_are_right(
    random_nest: Callable[[Contraction, int], Nest],
    at_page_end: Callable[[Tensor], Tensor],
    generator: Backend,
    seed: int,
):
    if not generator.available().available:
        pytest.skip(f"{generator.name} does not run here")
    contraction = any_program(random.Random(seed), generator.types)
    drawn = draw(contraction, generator.target, np.random.default_rng(seed))
    nest = drawn if seed % 3 == 0 else random_nest(contraction, seed)
    try:
        executable = generator.compile(contraction, nest)
    except CodeTooLarge:
        return
    with closing(executable):
        check(contraction, lambda *tensors: executable.run(*tensors, 2), at_page_end, seed)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed")
@pytest.mark.parametrize(
    ("target", "flags"), [(X86_64_V4, ()), (X86_64_V3, ("-march=native",)), (X86_64, ())]
)
def test_c_source_is_right(random_nest, at_page_end, target, flags: tuple[str, ...], tmp_path: Path):
    sources, programs = [], [any_program(random.Random(seed)) for seed in range(5)]
    for place, contraction in enumerate(programs):
        nest = random_nest(contraction, place)
        kernel = lower(contraction, nest, target)
        source = c_source.emit(kernel, contraction, nest, f"kernel{place}")
        (tmp_path / f"kernel{place}.c").write_text(source)
        sources.append(tmp_path / f"kernel{place}.c")
    library = tmp_path / "kernels.so"
    command = ["cc", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-psabi", *flags, "-shared", "-fPIC"]
    subprocess.run([*command, *sources, "-o", library], check=True)
    for place, contraction in enumerate(programs):
        function = getattr(ctypes.CDLL(str(library)), f"kernel{place}")
        check(contraction, called(function, contraction), at_page_end, place)


def called(function: Function, contraction: Contraction) -> Function:
    """Return a function of A, B and C; with one input, the exported function has no B."""

    def run(a: int, b: int, c: int) -> None:
        addresses = (a, b, c) if contraction.inputs > 1 else (a, c)
        function(*map(ctypes.c_void_p, addresses))

    return run


@pytest.mark.skipif(shutil.which("cc") is None, reason="no linker is installed")
@pytest.mark.parametrize("generator", BACKENDS, ids=lambda generator: generator.name)
@pytest.mark.parametrize(
    "uri",
    [
        "loops://einsum/ij->ji?i=9&j=5",
        "loops://einsum/ij->j?i=9&j=35&dtype=f64",
        "loops://einsum/n[h+r-1:9],r->nh?n=3&h=9&r=3&dtype=f64",
        "loops://einsum/[h-1:9]j->hj?h=9&j=5",
        "loops://einsum/ij->?i=9&j=35&dtype=i8",
        "loops://einsum/ij->i?i=9&j=35&dtype=bf16",
    ],
)
def test_exports_run(generator: Backend, uri: str, at_page_end, tmp_path: Path):
    if not generator.available().available:
        pytest.skip(f"{generator.name} does not run here")
    contraction = parse_uri(uri)
    if contraction.elements.name not in generator.types:
        with pytest.raises(BackendError, match="choose the back end llvm"):
            LOOPS.task(uri, generator.name)
        return
    library, header = export(contraction, initial_nest(contraction), generator, tmp_path / "kernel.so")
    check(contraction, called(ctypes.CDLL(str(library)).irgym_kernel, contraction), at_page_end, 0)
    subprocess.run(["cc", "-Wall", "-Werror", "-fsyntax-only", "-x", "c", header], check=True)


@pytest.mark.skipif(shutil.which("objdump") is None, reason="needs GNU objdump as the oracle")
def test_double_precision_decodes_to_what_was_meant(tmp_path: Path):
    """Every instruction of float64 kernels for AVX-512, which may not run here, is one of these few."""
    vectors = "vmovupd vmovsd vbroadcastsd vfmadd231pd vfmadd231sd vaddpd vaddsd vpxord vshuff32x4 vpermilps"
    others = "add sub mov dec jne push pop nop nopw nopl data16 xchg ret vzeroupper xor rep kmovw lea cs"
    known = {*vectors.split(), *others.split(), "prefetcht1"}
    found: set[str] = set()
    for seed in range(24):
        contraction = any_program(random.Random(seed))
        if contraction.elements.name == "f64":
            code = avx512.emit(lower(contraction, initial_nest(contraction), X86_64_V4))
            (tmp_path / "code").write_bytes(code)
            command = ["objdump", "-D", "-b", "binary", "-m", "i386:x86-64", "--no-show-raw-insn"]
            listing = subprocess.run(
                [*command, tmp_path / "code"], capture_output=True, text=True, check=True
            )
            found |= set(
                re.findall(r"^ *[0-9a-f]+:\t(?:\{evex\} )?(\S+)", listing.stdout, flags=re.MULTILINE)
            )
    assert {"vfmadd231pd", "vmovupd"} <= found <= known
    assert DOUBLE.load.bytes == 8


@pytest.mark.skipif(shutil.which("objdump") is None, reason="needs GNU objdump")
@pytest.mark.parametrize("seed", range(12))
def test_avx512_code_of_any_program_is_right_in_a_machine_of_numpy(random_nest, seed: int, tmp_path: Path):
    rng = random.Random(seed)
    drawn = (any_program(rng, ("f32", "f64", "f64", "f64")) for _ in range(100))
    contraction = next(program for program in drawn if 50 < program.flops < 5000)
    kernel = lower(contraction, random_nest(contraction, seed), X86_64_V4)
    a, b = contraction.random_inputs(seed)
    c = np.full(contraction.shapes[2], np.nan, contraction.elements.sum_type)
    workspace = np.full(kernel.workspace, np.nan, c.dtype)
    starts, size = list[int](), 0
    for array in (a, b, c, workspace):
        starts.append(size + 256)
        size += -(-array.nbytes // 64) * 64 + 512
    memory = np.full(size, 0xFF, np.uint8)
    for start, array in zip(starts, (a, b, c, workspace), strict=True):
        memory[start : start + array.nbytes] = array.reshape(-1).view(np.uint8)
    before = memory.copy()
    Machine(memory, (*starts[:3], 2, starts[3])).run(avx512.emit(kernel), tmp_path)
    found = memory[starts[2] : starts[2] + c.nbytes].view(c.dtype).reshape(c.shape)
    exact = contraction.elements.name == "f64"
    np.testing.assert_allclose(found, contraction.reference(a, b), atol=1e-12 if exact else 1e-4)
    changed = np.flatnonzero(memory != before)
    ends = starts[2] + c.nbytes, starts[3] + workspace.nbytes
    assert all(starts[2] <= at < ends[0] or starts[3] <= at < ends[1] for at in changed)
