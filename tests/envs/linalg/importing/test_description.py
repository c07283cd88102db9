"""Descriptions of operations read from MLIR: loops, accesses, producers."""

import pytest

from irgym.base.errors import ProgramError
from irgym.envs.linalg.importing.description import describe
from irgym.envs.linalg.programs.operators import Operator
from irgym.envs.linalg.scheduling.operations import OperationKind
from irgym.envs.linalg.scheduling.transformations import as_matmul, contraction_order

STRIDED = """
func.func @main(%image: tensor<1x2x9x9xf32>, %filters: tensor<4x2x3x3xf32>) -> tensor<1x4x4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x4x4x4xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  %made = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>}
    ins(%image, %filters : tensor<1x2x9x9xf32>, tensor<4x2x3x3xf32>)
    outs(%filled : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  %root = linalg.generic {
    indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
    iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%made : tensor<1x4x4x4xf32>) outs(%empty : tensor<1x4x4x4xf32>) {
    ^body(%one: f32, %other: f32):
      %exp = math.exp %one : f32
      %sum = arith.addf %exp, %one : f32
      linalg.yield %sum : f32
  } -> tensor<1x4x4x4xf32>
  return %root : tensor<1x4x4x4xf32>
}
"""


def test_loops_accesses_and_producers():
    text, program = describe(STRIDED)
    fill, conv, exp = program.operations
    assert (fill.kind, conv.kind, exp.kind) == (
        OperationKind.FILL,
        OperationKind.CONVOLUTION,
        OperationKind.ELEMENTWISE,
    )
    assert conv.bounds == (1, 4, 4, 4, 2, 3, 3) and conv.strides == (2,)
    assert conv.parallel == (True,) * 4 + (False,) * 3
    image, filters = conv.loads
    assert image.forms[2] == (0, 0, 2, 0, 0, 1, 0) and not image.is_projection
    assert filters.is_projection and conv.store.is_projection
    assert conv.store.producer == 0 and fill.users == (1,)
    assert exp.loads[0].producer == 1 and conv.users == (2,) and exp.users == (-1,)
    assert conv.arithmetic == (1, 0, 1, 0, 0) and exp.arithmetic == (1, 0, 0, 0, 1)
    assert program.flops == 2 * 64 * 18 + 2 * 64
    assert program.arguments == (((1, 2, 9, 9), "f32"), ((4, 2, 3, 3), "f32"))
    assert text.count("irgym_op = ") == 3
    again, same = describe(text)
    assert again == text and same == program


def test_a_tile_of_a_strided_convolution_needs_more_of_the_image():
    conv = describe(STRIDED)[1].operations[1]
    assert conv.tiled((0, 0, 2, 2, 0, 0, 0)).loads[0].extents((1, 4, 2, 2, 2, 3, 3)) == (1, 2, 5, 5)


def test_img2col_is_a_product_of_the_same_size():
    conv = describe(STRIDED)[1].operations[1]
    product = as_matmul(conv)
    assert product.bounds == (1, 4, 16, 18) and product.points == conv.points
    assert all(access.is_projection for access in product.accesses)
    assert contraction_order(product) is None
    assert contraction_order(conv) is None
    assert contraction_order(conv, turned=True) == (0, 3, 2, 1, 4, 5, 6)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("func.func @main(", "MLIR cannot read"),
        (
            "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { return %a : tensor<2xf32> }",
            "nothing to schedule",
        ),
    ],
)
def test_invalid_programs_are_refused_in_one_line(text, said):
    with pytest.raises(ProgramError, match=said) as caught:
        describe(text)
    assert "\n" not in str(caught.value)


def test_operators_are_what_they_say():
    _, program = describe(Operator("matmul", (12, 10, 7)).text())
    matmul = program.operations[-1]
    assert (matmul.name, matmul.bounds, matmul.parallel) == ("matmul", (12, 10, 7), (True, True, False))
    assert program.flops == 2 * 12 * 10 * 7


def test_operations_on_truth_values_are_not_vectorised():
    text = """
    func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xi1>) -> tensor<8x8xf32> {
      %e = tensor.empty() : tensor<8x8xf32>
      %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>,
          affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
          ins(%a, %b : tensor<8x8xf32>, tensor<8x8xi1>) outs(%e : tensor<8x8xf32>) {
        ^bb0(%x: f32, %m: i1, %o: f32):
          %r = arith.select %m, %x, %o : f32
          linalg.yield %r : f32
      } -> tensor<8x8xf32>
      return %0 : tensor<8x8xf32>
    }"""
    assert not describe(text)[1].operations[0].vectorisable
    assert (
        describe(
            text.replace("xi1", "xf32")
            .replace("%m: i1", "%m: f32")
            .replace("select %m, %x, %o", "addf %m, %x")
        )[1]
        .operations[0]
        .vectorisable
    )
