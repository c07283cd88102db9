"""Programs as C functions: object files and shared libraries, with a header."""

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from irgym.core.schedule import Schedule, replay
from irgym.envs.linalg.compiling.calling import Compiled
from irgym.envs.linalg.environment import LINALG

MATMUL = "linalg://matmul/20x24x16"
VECTORS = "tile_4_16_1 vectorise_0"

needs_a_linker = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a linker")


def exported(uri: str, schedule: str, path: Path) -> list[Path]:
    task = LINALG.task(uri)
    return task.export(replay(task, Schedule.parse(schedule, task.space)), path)


def pointers(*arrays: np.ndarray) -> list[ctypes.c_void_p]:
    return [array.ctypes.data_as(ctypes.c_void_p) for array in arrays]


@needs_a_linker
def test_a_shared_library_is_called_by_ctypes(tmp_path: Path):
    path = tmp_path / "product.so"
    assert exported(MATMUL, VECTORS, path) == [path, path.with_suffix(".h")]
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((20, 16), np.float32), rng.standard_normal((16, 24), np.float32)
    c = np.empty((20, 24), np.float32)
    ctypes.CDLL(str(path)).irgym_product(*pointers(a, b, c))
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-5)


@needs_a_linker
def test_two_programs_are_linked_into_one(tmp_path: Path):
    exported(MATMUL, VECTORS, tmp_path / "product.o")
    exported("linalg://softmax/4x8", "", tmp_path / "main.o")
    source = tmp_path / "use.c"
    source.write_text("""
        #include "main.h"
        #include "product.h"
        #include <stdio.h>
        static float a[20][16], b[16][24], c[20][24], x[4][8], y[4][8];
        int main(void) {
          for (int i = 0; i < 20; i++) for (int k = 0; k < 16; k++) a[i][k] = i;
          for (int k = 0; k < 16; k++) for (int j = 0; j < 24; j++) b[k][j] = j;
          irgym_product(&a[0][0], &b[0][0], &c[0][0]);
          irgym_main(&x[0][0], &y[0][0]);
          printf("%g %g %g\\n", c[2][3], c[19][23], y[3][7]);
        }""")
    objects = [str(tmp_path / name) for name in ("product.o", "main.o")]
    program = tmp_path / "use"
    command = ["cc", "-Wall", "-Werror", str(source), *objects, "-lm", "-o", str(program)]
    subprocess.run(command, check=True)
    done = subprocess.run([str(program)], check=True, capture_output=True, text=True)
    assert done.stdout == "96 6992 0.125\n"


@needs_a_linker
def test_a_library_on_threads(tmp_path: Path):
    task = LINALG.task(MATMUL, backend="openmp:2")
    schedule = Schedule.parse("tile-parallel_4 tile_2_16_1 vectorise_0", task.space)
    path, _ = task.export(replay(task, schedule), tmp_path / "parallel.so")
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((20, 16), np.float32), rng.standard_normal((16, 24), np.float32)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    # In a separate process: this one may have another OpenMP runtime.
    code = f"""if True:
        import ctypes, numpy as np
        a, b = np.load("a.npy"), np.load("b.npy")
        c = np.empty((20, 24), np.float32)
        call = ctypes.CDLL({str(path)!r}).irgym_parallel
        call(*(array.ctypes.data_as(ctypes.c_void_p) for array in (a, b, c)))
        np.save("c.npy", c)"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
    np.testing.assert_allclose(np.load(tmp_path / "c.npy"), a @ b, rtol=1e-4, atol=1e-5)


@needs_a_linker
def test_arguments_of_any_layout_and_type(tmp_path: Path):
    file = tmp_path / "mixed.mlir"
    file.write_text("""func.func @main(%x: tensor<3x4xf64>, %s: f64, %c: tensor<3x4xi1>) -> tensor<3x4xf64> {
  %e = tensor.empty() : tensor<3x4xf64>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %c : tensor<3x4xf64>, tensor<3x4xi1>) outs(%e : tensor<3x4xf64>) {
    ^bb0(%in: f64, %chosen: i1, %out: f64):
      %p = arith.mulf %in, %s : f64
      %0 = arith.select %chosen, %p, %in : f64
      linalg.yield %0 : f64
  } -> tensor<3x4xf64>
  return %r : tensor<3x4xf64>
}""")
    file.with_suffix(".npz").write_text("an archive of the user's, not of a module")
    task = LINALG.task(f"linalg:{file}")
    x = np.arange(12.0).reshape(4, 3).T
    scale, chosen = np.float64(2.5), (np.arange(24).reshape(3, 8) % 3 == 0)[:, ::2]
    [found] = Compiled(task, task.initial())([x, np.asarray(scale), chosen])
    np.testing.assert_array_equal(found, np.where(chosen, 2.5 * x, x))


def test_the_header_says_what_is_taken(tmp_path: Path):
    path = tmp_path / "2 sums.o"
    exported("linalg://add/3x5", "", path)
    header = path.with_suffix(".h").read_text()
    assert "arg1: 3 x 5 float" in header and "result0: 3 x 5 float" in header
    assert (
        "void irgym_2_sums(\n    const float *arg0,\n    const float *arg1,\n    float *result0);" in header
    )
