import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hlo_modules import ADD_ZERO, ALL, BATCHED_GATHER, CALLS

from irgym.base.errors import BackendError, ProgramError
from irgym.envs.hlo.actions import KIND, PASSES, SPACE
from irgym.envs.hlo.compiling import engine as engine_module
from irgym.envs.hlo.compiling.engine import load_engine
from irgym.envs.hlo.compiling.native import build
from irgym.envs.hlo.observing.opcodes import OPCODES, SINGLE_DEVICE

pytestmark = pytest.mark.usefixtures("engine")


def counts_of(module):
    counts = np.frombuffer(module.content().counts, dtype=np.int32)
    return {OPCODES[place]: int(counts[place]) for place in np.flatnonzero(counts)}


def test_the_engine_has_every_pass_and_opcode():
    engine = load_engine()
    assert engine.opcodes == OPCODES
    assert {name for action in PASSES for name in action.passes} == set(engine.passes)
    assert set(SINGLE_DEVICE) < set(OPCODES)
    assert len(engine.passes) <= 64, "the engine says with 64 bits which passes may change a module"
    assert len(KIND) == len(PASSES) == len(SPACE.kinds) - 1
    assert all(action.summary for action in PASSES)


def test_passes_do_what_their_names_say():
    engine = load_engine()
    module = engine.from_text(ADD_ZERO)
    assert counts_of(module) == {"add": 2, "broadcast": 1, "constant": 1, "multiply": 1, "parameter": 1}
    assert module.run(engine.number("dce"))
    assert not module.run(engine.number("dce"))
    assert module.run(engine.number("algsimp"))
    assert counts_of(module) == {"add": 1, "parameter": 1}
    module.verify()


@pytest.mark.parametrize("name", ALL)
def test_no_pass_looks_at_where_instructions_come_from(name):
    """Modules have no source locations while passes run, and are exported with them."""
    engine, rng = load_engine(), np.random.default_rng(0)
    text = re.sub(
        r"(= [^=\n]*\))$", r'\1, metadata={op_name="here" source_line=3}', ALL[name], flags=re.MULTILINE
    )
    proto = engine.from_text(text).proto()
    for _ in range(5):
        whole, bare = engine.from_proto(proto), engine.from_proto(proto, origins=False)
        assert b"here" in whole.proto() and b"here" not in bare.proto()
        for kind in rng.permutation(len(PASSES)).tolist():
            numbers = [engine.number(name) for name in PASSES[kind].passes]
            assert [whole.run(number) for number in numbers] == [bare.run(number) for number in numbers]
        assert whole.fingerprint() == bare.fingerprint()


@pytest.mark.parametrize("name", ALL)
def test_text_proto_and_clone_are_the_same_module(name):
    engine = load_engine()
    module = engine.from_text(ALL[name])
    for other in (engine.from_text(module.text()), engine.from_proto(module.proto()), module.clone()):
        assert other.fingerprint() == module.fingerprint()
        assert other.digest() == module.digest()
        assert counts_of(other) == counts_of(module)


CONTROLLED = """HloModule controlled

ENTRY main {
  x = f32[8] parameter(0)
  first = f32[8] negate(x)
  second = f32[8] exponential(x), control-predecessors={first}
  ROOT both = f32[8] add(second, first)
}
"""

CALLING = """HloModule calling

called {
  x = f32[8] parameter(0)
  ROOT y = f32[8] negate(x)
}

ENTRY main {
  x = f32[8] parameter(0)
  CALL
}
"""

FUSED = CALLING.replace("CALL\n", "ROOT y = f32[8] fusion(x), kind=kLoop, calls=called\n")

ASYNC = CALLING.replace(
    "CALL\n",
    "begun = ((f32[8]), f32[8]) call-start(x), to_apply=called\n  ROOT y = f32[8] call-done(begun)\n",
)

SCHEDULED = CONTROLLED.replace("controlled", "scheduled, is_scheduled=true").replace(
    ", control-predecessors={first}", ""
)

CUSTOM = """HloModule custom

greater {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=GT
}

ENTRY main {
  x = f32[8] parameter(0)
  sorted = f32[8] sort(x), dimensions={0}, to_apply=greater
  ROOT y = (f32[3], s32[3]) custom-call(sorted), custom_call_target="TopK", called_computations={greater}
}
"""


ATTRIBUTED = """HloModule attributed, input_output_alias={ {}: (0, {}) }, frontend_attributes={whole="1"}

ENTRY main {
  x = f32[8] parameter(0), sharding={replicated}, parameter_replication={true}
  y = f32[8] negate(x), frontend_attributes={part="1"}, backend_config="config"
  ROOT z = f32[8] add(y, y), metadata={op_name="here"}
}
"""


@pytest.mark.parametrize("text", [CONTROLLED, FUSED, ASYNC, SCHEDULED, CUSTOM, ATTRIBUTED])
def test_a_copy_keeps_rare_features(text):
    engine = load_engine()
    module = engine.from_text(text)
    copy = module.clone()
    copy.verify()
    # XLA renames fused and asynchronous computations.
    copied = (copy.orders() + copy.text()).replace(".clone", "")
    assert copied == module.orders() + module.text()


def test_a_copy_of_a_module_that_lost_most_instructions_is_the_same():
    dead = "\n".join(f"  dead{place} = f32[] constant({place})" for place in range(400))
    text = f"HloModule sparse\n\nENTRY main {{\n{dead}\n  ROOT x = f32[] parameter(0)\n}}\n"
    engine = load_engine()
    module = engine.from_text(text)
    assert module.run(engine.number("dce")) and module.size == 1
    copy = module.clone()
    assert (copy.orders(), copy.text()) == (module.orders(), module.text())


def test_the_digest_ignores_the_order_of_instructions():
    engine = load_engine()
    lines = ADD_ZERO.splitlines()
    swapped = [*lines[:5], lines[7], lines[5], lines[6], *lines[8:]]
    module, other = engine.from_text(ADD_ZERO), engine.from_text("\n".join(swapped))
    assert module.digest() == other.digest()
    assert engine.from_text(ADD_ZERO.replace("multiply", "subtract")).digest() != module.digest()
    assert engine.from_text(ADD_ZERO.replace("constant(0)", "constant(1)")).digest() != module.digest()


def test_analysis_counts_operations():
    flops, transcendentals, moved = load_engine().from_text(CALLS).analysis()
    assert (flops, transcendentals) == (8 + 8 + 8, 8)
    assert moved > 0


def test_the_graph_has_an_edge_for_each_operand_and_call():
    module = load_engine().from_text(CALLS)
    nodes, edges = module.graph()
    assert len(nodes) == module.size == 13
    assert nodes[:, 1].max() == 1
    calls = edges[edges[:, 2] == 1]
    assert [OPCODES[nodes[to, 0]] for to in calls[:, 1]] == ["call", "call"]
    assert (edges[:, :2] < len(nodes)).all()
    reshapes = [place for place, node in enumerate(nodes) if OPCODES[node[0]] == "reshape"]
    assert all(nodes[place, 2] == 8 for place in reshapes)


@pytest.mark.parametrize("text", ["", "HloModule x", ADD_ZERO.replace("add(", "frobnicate("), "{}", "\0\1"])
def test_malformed_text_is_refused_in_one_line(text):
    with pytest.raises(ProgramError, match=r"^XLA cannot read it as HLO text: [^\n]+$"):
        load_engine().from_text(text)


@pytest.mark.parametrize("data", [b"", b"nonsense", b"\x0a\x03abc"])
def test_a_malformed_proto_is_refused_in_one_line(data):
    with pytest.raises(ProgramError, match=r"^XLA cannot read it as an HloModuleProto: [^\n]+$"):
        load_engine().from_proto(data)


def test_the_gather_simplifier_runs_after_the_normaliser():
    engine = load_engine()
    module = engine.from_text(BATCHED_GATHER)
    for name in PASSES[KIND["gather-simplifier"]].passes:
        module.run(engine.number(name))
    module.verify()


def test_a_missing_compiler_is_reported_in_one_sentence(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(BackendError, match=r"no C\+\+ compiler 'no-such-compiler'.*install g\+\+"):
        build.recipe()


def test_another_tensorflow_is_reported_in_one_sentence(monkeypatch):
    monkeypatch.setattr(build, "TENSORFLOW", "1.0")
    with pytest.raises(BackendError, match=r"needs tensorflow-cpu 1\.0 .*pip install 'irgym\[hlo\]'"):
        build.recipe()


def test_a_missing_tensorflow_is_reported_in_one_sentence(monkeypatch):
    def missing(name):
        raise build.PackageNotFoundError(name)

    monkeypatch.setattr(build, "distribution", missing)
    with pytest.raises(BackendError, match=r"is not installed.*pip install 'irgym\[hlo\]'"):
        build.recipe()


def test_a_compiler_that_fails_is_reported_in_one_sentence(monkeypatch, tmp_path):
    compiler = tmp_path / "g++"
    compiler.write_text(
        "#!/bin/sh\n[ $1 = --version ] && echo fake 1.0 && exit 0\n"
        "echo 'x.cc:1: error: no memory' >&2\nexit 1\n"
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setenv("IRGYM_CACHE_DIR", str(tmp_path / "cache"))
    with pytest.raises(BackendError, match=r"cannot build the engine of hlo \(x\.cc:1: error: no memory\)"):
        build.build()
    assert not list((tmp_path / "cache").rglob("*.so"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_build_that_is_interrupted_leaves_no_compiler_and_no_engine(monkeypatch, tmp_path, number):
    compiler, pids = tmp_path / "g++", tmp_path / "pids"
    compiler.write_text(
        "#!/bin/sh\n[ $1 = --version ] && echo fake 1.0 && exit 0\n"
        f"sleep 60 & echo half > $TMPDIR/half; echo $$ $! > {pids}.tmp; mv {pids}.tmp {pids}; wait\n"
    )
    compiler.chmod(0o755)
    cache = tmp_path / "cache"
    environment = {**os.environ, "CXX": str(compiler), "IRGYM_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", "from irgym.envs.hlo.compiling.native import build; build.build()"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as builder:
        _wait_until(pids.exists)
        builder.send_signal(number)
    _wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids.read_text().split()))
    assert not list(cache.rglob("*.so"))
    assert number != signal.SIGINT or not list(cache.rglob("half"))
    compiler.write_text(
        "#!/bin/sh\n[ $1 = --version ] && echo fake 1.0 && exit 0\n"
        'echo "error: beside it are [$(ls $TMPDIR)]" >&2; exit 1\n'
    )
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setenv("IRGYM_CACHE_DIR", str(cache))
    with pytest.raises(BackendError, match=r"beside it are \[\]"):
        build.build()
    assert [file.name for file in (cache / "hlo" / "engine").iterdir()] == [".lock"]


def _wait_until(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_damaged_library_is_reported_in_one_sentence(tmp_path):
    damaged = tmp_path / "engine.so"
    damaged.write_bytes(b"not a library")
    with pytest.raises(BackendError, match="does not load"):
        engine_module.Engine(damaged)
