"""LLVM: parsing, preparing and compiling modules.

It runs in a child, since a failed assertion in LLVM ends the process.
"""

from functools import cache
from importlib import import_module
from typing import Any, cast

from irgym.base.errors import BackendError, ProgramError
from irgym.envs.cse.compiling.toolchain import INSTALL
from irgym.llvmir.programs.machines import MACHINES

OPTIMISATION_LEVEL = 2
"""LLVM's optimisation level for code generation, as compilers use it."""


@cache
def binding() -> Any:
    """Return llvmlite's binding, set up for all targets and without LLVM's machine CSE.

    Raises:
        BackendError: llvmlite is not installed.
    """
    try:
        llvm = import_module("llvmlite.binding")
    except ImportError as error:
        raise BackendError(f"llvmlite is not installed: run {INSTALL}") from error
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.initialize_native_asmparser()  # for assembly in C
    # LLVM's common subexpression elimination on machine code would undo the choice.
    llvm.set_option("irgym", "-disable-machine-cse")
    return llvm


@cache
def _target_machine(target: str) -> Any:
    machine = MACHINES[target]
    target_machine = (
        binding()
        .Target.from_triple(machine.triple)
        .create_target_machine(
            cpu=machine.cpu, features="", opt=OPTIMISATION_LEVEL, reloc="pic", codemodel="small"
        )
    )
    target_machine.set_asm_verbosity(True)
    return target_machine


def read(content: str | bytes, name: str) -> Any:
    """Parse IR, as text or bitcode, into a module.

    Args:
        content: The IR.
        name: Name for messages.

    Raises:
        ProgramError: LLVM refuses it; the message has the first line of LLVM's.
    """
    llvm = binding()
    try:
        module = llvm.parse_assembly(content) if isinstance(content, str) else llvm.parse_bitcode(content)
        module.verify()
    except RuntimeError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        said = next(
            (line for line in lines if "error:" in line), lines[0] if lines else "it does not say why"
        )
        raise ProgramError(
            f"LLVM {llvm.llvm_version_info[0]} cannot read {name} ({said}): make it with a clang "
            "of that version"
        ) from error
    return module


def prepare(module: Any, target: str) -> str:
    """Bring a module into the form in which expressions are shared, and return its text.

    Variables are promoted to registers, loops are rotated, and everything has a name. No expression is
    shared.

    Args:
        module: The module, which is changed in place.
        target: Name of the target.
    """
    llvm = binding()
    machine = _target_machine(target)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(1))
    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.add_loop_simplify_pass()
    passes.add_lcssa_pass()
    passes.add_loop_rotate_pass()
    passes.add_simplify_cfg_pass()
    passes.add_aggressive_dce_pass()
    passes.add_instruction_namer_pass()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)
    # Unnamed symbols have numbers, which must be consecutive and would not be in a reduced module.
    for number, symbol in enumerate((*module.global_variables, *module.functions)):
        if not symbol.name:
            symbol.name = f"unnamed.{number}"
    return str(module)


def assembly(text: str, target: str) -> str:
    """Return the assembly of IR, with LLVM's comments.

    Raises:
        ProgramError: LLVM refuses the IR.
    """
    module = read(text, "what irgym wrote")
    return cast(str, _target_machine(target).emit_assembly(module))
