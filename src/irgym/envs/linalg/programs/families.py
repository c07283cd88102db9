"""Families of programs that URIs name, with their sizes and options."""

from irgym.core.uri import Family, Option

_STRIDE = Option("stride", 1, high=64)
_BATCH = Option("batch", 1, high=1 << 10)
# Five halvings leave at least one pixel.
_IMAGES = (_BATCH, Option("classes", 1000, high=1 << 16), Option("size", 32, 1 << 10, low=32, multiple=32))

OPERATORS = (
    Family("matmul", "C[m,n] = sum over k of A[m,k] * B[k,n]", sizes=("M", "N", "K")),
    Family("batch_matmul", "one matmul for each index of the batch", sizes=("B", "M", "N", "K")),
    Family(
        "conv2d",
        "2-D convolution, NCHW by FCHW, on an image of HxW that is already padded",
        (_STRIDE,),
        sizes=("N", "C", "H", "W", "F", "KH", "KW"),
    ),
    Family(
        "depthwise_conv2d",
        "convolution of each channel by one filter, NCHW by CHW, on an image that is already padded",
        (_STRIDE,),
        sizes=("N", "C", "H", "W", "KH", "KW"),
    ),
    Family("maxpool", "greatest of each KxK window, NCHW", (_STRIDE,), sizes=("N", "C", "H", "W", "K")),
    Family("add", "sum of two tensors, element by element", sizes=("A", "B"), ranks=(1, 6)),
    Family("relu", "the greater of each element and zero", sizes=("A", "B"), ranks=(1, 6)),
    Family("softmax", "softmax of each row", sizes=("R", "C")),
    Family("layernorm", "layer normalisation of each row, with gain and bias", sizes=("R", "C")),
    Family("lattice", "random sum of products of small tensors, as in lattice QCD", sizes=("SEED",), least=0),
    Family(
        "sequence",
        "random chain of operators, each on the result of the one before",
        (Option("length", 3, high=6, low=2),),
        sizes=("SEED",),
        least=0,
    ),
)
"""Operators; their MLIR is written by irgym."""

NETWORKS = (
    Family("resnet18", "ResNet-18 (He et al., arXiv 1512.03385)", options=_IMAGES),
    Family("mobilenetv2", "MobileNetV2 (Sandler et al., arXiv 1801.04381)", options=_IMAGES),
    Family("vgg11", "VGG-11 (Simonyan and Zisserman, arXiv 1409.1556)", options=_IMAGES),
    Family(
        "transformer",
        "encoder block of a transformer, norms first (Vaswani et al., arXiv 1706.03762)",
        options=(
            _BATCH,
            Option("heads", 4, high=256),
            Option("length", 32, high=1 << 13),
            Option("width", 64, high=1 << 13),
        ),
        multiples=(("width", "heads", 1),),
    ),
)
"""Networks, built by torch and lowered to linalg by torch-mlir."""

FAMILIES = {family.name: family for family in (*OPERATORS, *NETWORKS)}
"""Every family by its name."""
