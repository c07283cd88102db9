"""Contexts of MLIR that candidates share, one after another."""

from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("torch_mlir")

from irgym.envs.linalg.compiling.bindings import ir
from irgym.envs.linalg.compiling.contexts import USES, CompileError, mlir, parse, run_passes

TEXT = "func.func @main(%x: i32) -> i32 { return %x : i32 }"


def entered(reuse):
    """Return the context that a call enters."""
    with mlir(reuse):
        return ir.Context.current


def test_a_context_is_reused_until_it_is_full():
    with ThreadPoolExecutor(1) as other:  # a thread that has entered none
        found = [other.submit(entered, True).result() for _ in range(2 * USES)]
    first, second = found[:USES], found[USES:]
    assert all(context == first[0] for context in first)
    assert all(context == second[0] for context in second)
    assert first[0] != second[0]


def test_threads_share_no_context():
    with ThreadPoolExecutor(1) as other:
        assert other.submit(entered, True).result() != entered(True)


def test_a_new_context_is_new():
    assert entered(False) != entered(False) != entered(True)


def test_within_a_context_another_may_be_entered():
    with mlir(reuse=True):
        outer = ir.Context.current
        with mlir():
            assert ir.Context.current != outer
            run_passes(parse(TEXT), "canonicalize")
        run_passes(parse(TEXT), "canonicalize")
        assert ir.Context.current == outer


@pytest.mark.parametrize("reuse", [False, True])
def test_a_refused_module_does_not_harm_the_next(reuse):
    for _ in range(2):
        with pytest.raises(CompileError, match="custom op 'nonsense' is unknown"), mlir(reuse):
            parse("nonsense")
        with pytest.raises(CompileError, match="no-such-pass"), mlir(reuse):
            run_passes(parse(TEXT), "no-such-pass")
        with mlir(reuse):
            module = parse(TEXT)
            run_passes(module, "canonicalize")
            assert "return" in str(module)


def test_a_module_that_passes_left_invalid_is_refused():
    with pytest.raises(CompileError, match="expect at least a terminator"), mlir(reuse=True):
        module = parse(TEXT)
        function = module.body.operations[0]
        function.regions[0].blocks[0].operations[0].erase()
        run_passes(module, "cse")
