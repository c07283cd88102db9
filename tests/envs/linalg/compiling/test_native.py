"""Programs as C functions: object files and shared libraries, with a header."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from irgym.core.schedule import Schedule, replay
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


def test_the_header_says_what_is_taken(tmp_path: Path):
    path = tmp_path / "2 sums.o"
    exported("linalg://add/3x5", "", path)
    header = path.with_suffix(".h").read_text()
    assert "arg1: 3 x 5 float" in header and "result0: 3 x 5 float" in header
    assert (
        "void irgym_2_sums(\n    const float *arg0,\n    const float *arg1,\n    float *result0);" in header
    )
