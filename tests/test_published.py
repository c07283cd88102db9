"""Programs that nobody here wrote, from nothing to a result that is checked, exported, and run without irgym.

Each by the README's commands alone: `irgym tune`, and `--export`. They come with packages that tests install.
"""

import importlib.util
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from irgym.cli.main import main
from irgym.envs.graph.programs.models.images import declare_operators_that_cannot_be_loaded

from .test_exports import without_irgym

MODULES = """
import numpy as np
import torch


def vision():
    from torchvision.models import get_model

    torch.manual_seed(0)
    module, x = get_model("squeezenet1_1", weights=None).eval(), torch.randn(1, 3, 96, 96)
    return kept(module, x)


def block():
    from transformers import BertConfig
    from transformers.models.bert.modeling_bert import BertLayer

    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 64}
    layer = BertLayer(BertConfig(**sizes, attn_implementation="eager")).eval()
    return kept(layer, torch.randn(1, 8, 32))


def kept(module, x):
    weights = {f"w{n}": w for n, w in enumerate(module.state_dict().values())}
    with torch.inference_mode():
        np.savez("case.npz", x=x, y=module(x), **weights)
    return module, x


def training():
    import haiku as hk
    import jax
    import jax.numpy as jnp

    net = hk.without_apply_rng(hk.transform(lambda x: hk.nets.MLP([16, 10])(x * 1.0)))
    x, labels = jnp.linspace(-1, 1, 64).reshape(8, 8), jnp.arange(8)

    def loss(weights, x, labels):
        chosen = jnp.take_along_axis(jax.nn.log_softmax(net.apply(weights, x)), labels[:, None], 1)
        return -chosen.mean()

    @jax.jit
    def step(weights, x, labels):
        return jax.tree.map(lambda w, s: w - 0.1 * s, weights, jax.grad(loss)(weights, x, labels))

    arguments = net.init(jax.random.PRNGKey(0), x), x, labels
    inputs = {f"x{n}": v for n, v in enumerate(jax.tree.leaves(arguments))}
    outputs = {f"y{n}": v for n, v in enumerate(jax.tree.leaves(step(*arguments)))}
    np.savez("case.npz", **inputs, **outputs)
    return step, arguments
"""

SESSION = """
import numpy as np
import onnxruntime as ort

case = np.load("case.npz")
session = ort.InferenceSession("fast.onnx", providers=["CPUExecutionProvider"])
[found] = session.run(None, {session.get_inputs()[0].name: case["x"]})
np.testing.assert_allclose(found, case["y"], rtol=1e-3, atol=1e-4)
"""

LIBRARY = """
import ctypes
import re

import numpy as np

case = np.load("case.npz")
weights = [case[f"w{n}"] for n in range(len(case.files) - 2)]
result = np.empty_like(case["y"])
[name] = re.findall(r"void (irgym_\\w+)\\(", open("block.h").read())
arrays = [np.ascontiguousarray(array) for array in (*weights, case["x"])]
getattr(ctypes.CDLL("./block.so"), name)(*(ctypes.c_void_p(array.ctypes.data) for array in (*arrays, result)))
np.testing.assert_allclose(result, case["y"], rtol=1e-3, atol=1e-4)
"""

STEP = """
import numpy as np
from jax import export

case = np.load("case.npz")
step = export.deserialize(bytearray(open("step.jax", "rb").read()))
found = step.call(*(case[f"x{n}"] for n in range(len(step.in_avals))))
for n, one in enumerate(found):
    np.testing.assert_allclose(one, case[f"y{n}"], rtol=1e-5, atol=1e-6)
"""

VERSIONS = """
#include <stdio.h>

int strverscmp(const char *, const char *);

int main(void) {
    const int less = strverscmp("a9", "a10"), equal = strverscmp("1.2", "1.2"), more = strverscmp("b", "a");
    printf("%d %d %d\\n", less, equal, more);
    return !(less < 0 && equal == 0 && more > 0);
}
"""


def tuned(folder: Path, monkeypatch: pytest.MonkeyPatch, *words: object) -> dict[str, object]:
    """Run `irgym tune` in a folder, and return what it writes as JSON."""
    monkeypatch.chdir(folder)
    (folder / "programs.py").write_text(MODULES)
    main(["tune", *map(str, words), "--json", "result.json"])
    return json.loads((folder / "result.json").read_text())


def package(name: str) -> Path:
    """Return the folder of a package that is installed here."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        pytest.skip(f"needs {name}: it is not installed")
    return Path(spec.origin).parent


def test_a_network_of_torchvision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    package("torchvision")
    declare_operators_that_cannot_be_loaded()
    found = tuned(tmp_path, monkeypatch, "programs.py:vision", "--seconds", 1, "--export", "fast.onnx")
    assert found["validated"]
    said = " ".join(capfd.readouterr().out.replace("│", " ").split())
    assert "graph, the first that takes a torch module" in said and "linalg takes it too" in said
    without_irgym(SESSION, tmp_path)


def test_a_block_of_transformers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    package("transformers")
    words = ("--environment", "linalg", "--seconds", 1, "--export", "block.so")
    found = tuned(tmp_path, monkeypatch, "programs.py:block", *words)
    assert found["validated"]
    without_irgym(LIBRARY, tmp_path)


@pytest.mark.usefixtures("engine")
def test_a_training_step_of_haiku(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    package("haiku")
    found = tuned(tmp_path, monkeypatch, "programs.py:training", "--seconds", 1, "--export", "step.jax")
    assert found["validated"] and found["cost"] <= found["reference_cost"]  # pyright: ignore[reportOperatorIssue]
    without_irgym(STEP, tmp_path)


def test_a_model_of_onnx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    model = package("onnx") / "backend" / "test" / "data" / "light" / "light_shufflenet.onnx"
    found = tuned(tmp_path, monkeypatch, model, "--seconds", 1, "--export", "fast.onnx")
    # onnx ships it without its weights, all of which are one number, and so are its results.
    assert not found["validated"] and "one and the same number" in str(found["not_checkable"])
    ort = pytest.importorskip("onnxruntime")
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    x = np.random.default_rng(0).standard_normal((1, 3, 224, 224), np.float32)
    np.savez(tmp_path / "case.npz", x=x, y=session.run(None, {session.get_inputs()[0].name: x})[0])
    without_irgym(SESSION, tmp_path)


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_function_of_a_library_of_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    library = package("ziglang") / "lib" / "libc" / "musl" / "src"
    monkeypatch.setenv("CPATH", str(library / "internal"))
    program = f"cse:{library / 'string' / 'strverscmp.c'}#strverscmp"
    found = tuned(tmp_path, monkeypatch, program, "--export", "strverscmp.s")
    assert found["validated"]
    assert found["left_out"] or found["speedup"] > 1.0  # pyright: ignore[reportOperatorIssue]
    (tmp_path / "versions.c").write_text(VERSIONS)
    for line in ("cc -fno-builtin versions.c strverscmp.s -o versions", "./versions"):
        subprocess.run(["sh", "-c", line], cwd=tmp_path, check=True)
