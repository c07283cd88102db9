"""The interpreter against LLVM's machine code, on random functions."""

from cse_interpreter import compare


def test_defined_results_equal_those_of_machine_code() -> None:
    outcomes, wrong = compare(count=40, seed=7)
    assert not wrong, wrong[0]
    assert outcomes["equal"] > 100 and outcomes["undefined"] > 100
