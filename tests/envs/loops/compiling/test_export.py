import ctypes
import errno
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from irgym.base.errors import BackendError, IrgymError, ScheduleError, StorageError
from irgym.envs.loops.compiling import lower
from irgym.envs.loops.compiling.backends import BACKENDS, Backend
from irgym.envs.loops.compiling.export import export
from irgym.envs.loops.nest import Loop, Nest, initial_nest, parse_nest
from irgym.envs.loops.programs.contraction import Contraction, matmul, parse_uri
from irgym.measure import linking

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed")
needs_linker = pytest.mark.skipif(
    not any(map(shutil.which, linking.LINKERS)), reason="neither a C compiler nor ld is installed"
)
each = pytest.mark.parametrize("generator", BACKENDS, ids=[candidate.name for candidate in BACKENDS])

# Tails along every dimension, and a reduction that is split, so that C is cleared and read back.
PROGRAM = matmul(9, 37, 11)
NEST = Nest((Loop("k", 4), Loop("m", 4), Loop("n", 32), Loop("m", 1), Loop("k", 1), Loop("n", 1)))
PACKED = parse_nest("pack(b) k/4 m/4 pack(a) n/32 m k n")

MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include "kernel.h"

int main(void)
{
    static float a[9 * 11], b[11 * 37], c[9 * 37];
    if (fread(a, sizeof a, 1, stdin) != 1 || fread(b, sizeof b, 1, stdin) != 1)
        return 1;
    irgym_kernel(a, b, c);
    return fwrite(c, sizeof c, 1, stdout) != 1;
}
"""


def require(generator: Backend) -> None:
    status = generator.available()
    if not status.available:
        pytest.skip(f"{status.name}: {status.detail}")


def load_and_check(library: Path, contraction: Contraction, name: str = "irgym_kernel") -> None:
    a, b = contraction.random_inputs(seed=0)
    c = np.full(contraction.shapes[2], np.nan, dtype=np.float32)
    function = getattr(ctypes.CDLL(str(library)), name)
    function.restype = None
    function(*(ctypes.c_void_p(tensor.ctypes.data) for tensor in (a, b, c)))
    np.testing.assert_allclose(c, contraction.reference(a, b), atol=1e-5)


@each
@needs_linker
@pytest.mark.parametrize("uri", ["loops://mm/9x37x11", "loops://einsum/mk,nk->mn?m=3&n=5&k=21"])
def test_shared_library(generator: Backend, uri: str, tmp_path: Path) -> None:
    require(generator)
    contraction = parse_uri(uri)
    files = export(contraction, initial_nest(contraction), generator, tmp_path / "kernel.so", "product")
    assert files == [tmp_path / "kernel.so", tmp_path / "kernel.h"]
    load_and_check(files[0], contraction, "product")


@each
@needs_linker
def test_threads_have_their_own_copies_of_packed_inputs(generator: Backend, tmp_path: Path) -> None:
    require(generator)
    contraction = matmul(61, 83, 70)
    nest = parse_nest("k/32 pack(b) m/16 pack(a) n/16 m/4 k m n:v")
    library, _ = export(contraction, nest, generator, tmp_path / "kernel.so")
    with ThreadPoolExecutor(4) as threads:
        runs = [threads.submit(load_and_check, library, contraction) for _ in range(64)]
    for run in runs:
        run.result()


@each
@needs_compiler
@pytest.mark.parametrize("nest", [NEST, PACKED], ids=["direct", "packed"])
def test_an_object_links_into_a_program(generator: Backend, nest: Nest, tmp_path: Path) -> None:
    require(generator)
    files = export(PROGRAM, nest, generator, tmp_path / "kernel.o")
    assert files == [tmp_path / "kernel.o", tmp_path / "kernel.h"]
    (tmp_path / "main.c").write_text(MAIN)
    command = ["cc", "-Wall", "-Wextra", "-Werror", "main.c", "kernel.o", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    a, b = PROGRAM.random_inputs(seed=1)
    done = subprocess.run(
        [tmp_path / "main"], input=a.tobytes() + b.tobytes(), capture_output=True, check=True
    )
    c = np.frombuffer(done.stdout, np.float32).reshape(PROGRAM.shapes[2])
    np.testing.assert_allclose(c, PROGRAM.reference(a, b), atol=1e-5)


@each
@needs_compiler
@pytest.mark.parametrize("nest", [NEST, PACKED], ids=["direct", "packed"])
def test_c_source(generator: Backend, nest: Nest, tmp_path: Path) -> None:
    require(generator)
    (source,) = export(PROGRAM, nest, generator, tmp_path / "kernel.c")
    library = tmp_path / "library.so"
    flags = ["-O2", "-march=native", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, source, "-o", library], check=True)
    load_and_check(library, PROGRAM)


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler is installed")
def test_the_header_serves_cpp(tmp_path: Path) -> None:
    export(PROGRAM, NEST, available(), tmp_path / "kernel.o")
    (tmp_path / "main.cpp").write_text(MAIN)
    subprocess.run(["c++", "-Wall", "-Wextra", "-Werror", "main.cpp", "kernel.o"], cwd=tmp_path, check=True)


def available() -> Backend:
    return next(candidate for candidate in BACKENDS if candidate.available().available)


def test_an_unknown_suffix_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(IrgymError, match=r"'kernel\.cu'.*\.c .*\.o .*\.so "):
        export(PROGRAM, NEST, available(), tmp_path / "kernel.cu")


@pytest.mark.parametrize("name", ["", "2fast", "a b", "a;b", "naïve"])
def test_invalid_c_names_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(IrgymError, match="cannot name a C function"):
        export(PROGRAM, NEST, available(), tmp_path / "kernel.c", name)


@pytest.mark.parametrize("folder", ["missing", "file", "x" * 300])
@pytest.mark.parametrize("suffix", [".c", ".o"])
def test_invalid_folders_are_refused(folder: str, suffix: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StorageError, match=r"cannot write .*choose an existing folder"):
        export(PROGRAM, NEST, available(), tmp_path / folder / f"kernel{suffix}")


def test_a_full_disk_leaves_the_former_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "kernel.o"
    path.write_text("former")
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StorageError, match="No space left on device"):
        export(PROGRAM, NEST, available(), path)
    assert [file.name for file in tmp_path.iterdir()] == ["kernel.o"]
    assert path.read_text() == "former"


def test_files_are_as_readable_as_others(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("")
    (file,) = export(PROGRAM, NEST, available(), tmp_path / "kernel.c")
    assert file.stat().st_mode == (tmp_path / "other").stat().st_mode


def test_without_a_linker_the_error_suggests_other_forms(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(linking.shutil, "which", lambda name: None)
    with pytest.raises(BackendError, match=r"needs a linker .*export a \.o or \.c file"):
        export(PROGRAM, NEST, available(), tmp_path / "kernel.so")
    assert not list(tmp_path.iterdir())


@needs_compiler
def test_a_linker_that_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    generator = available()
    monkeypatch.setattr(type(generator), "object_file", lambda *_: b"not an object")
    with pytest.raises(BackendError, match=r"cannot link a shared library .*export a \.o or \.c file"):
        export(PROGRAM, NEST, generator, tmp_path / "kernel.so")


def test_code_beyond_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(lower, "MAX_FMAS", 1)
    with pytest.raises(ScheduleError, match="unroll or split less"):
        export(PROGRAM, NEST, available(), tmp_path / "kernel.o")
