"""torch-mlir's bindings of MLIR, which come without types. Imported in a child only."""

from importlib import import_module
from typing import Any

ir: Any = import_module("torch_mlir.ir")
arith: Any = import_module("torch_mlir.dialects.arith")
func: Any = import_module("torch_mlir.dialects.func")
linalg: Any = import_module("torch_mlir.dialects.linalg")
llvm: Any = import_module("torch_mlir.dialects.llvm")
memref: Any = import_module("torch_mlir.dialects.memref")
scf: Any = import_module("torch_mlir.dialects.scf")
tensor: Any = import_module("torch_mlir.dialects.tensor")
ub: Any = import_module("torch_mlir.dialects.ub")
vector: Any = import_module("torch_mlir.dialects.vector")
interpreter: Any = import_module("torch_mlir.dialects.transform.interpreter")
PassManager: Any = import_module("torch_mlir.passmanager").PassManager
ExecutionEngine: Any = import_module("torch_mlir.execution_engine").ExecutionEngine
get_ranked_memref_descriptor: Any = import_module("torch_mlir.runtime").get_ranked_memref_descriptor
