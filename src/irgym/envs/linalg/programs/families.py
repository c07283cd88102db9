"""The families of programs that URIs name: their sizes and options."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Option:
    """An option of a family: a whole number, `name=value` after the question mark.

    Attributes:
        name: Its name in URIs.
        default: Its value where none is given.
        high: Greatest value.
        low: Least value.
        multiple: What it must be a multiple of.
    """

    name: str
    default: int
    high: int
    low: int = 1
    multiple: int = 1


@dataclass(frozen=True)
class Family:
    """A family of programs.

    Attributes:
        name: Its name in URIs.
        summary: One line.
        sizes: Names of the sizes after the slash; empty for a network.
        options: What may be chosen besides.
        ranks: Least and greatest number of sizes where it varies, else None.
        multiples: Pairs of options of which the first must be a multiple of the second.
    """

    name: str
    summary: str
    sizes: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    ranks: tuple[int, int] | None = None
    multiples: tuple[tuple[str, str], ...] = ()

    @property
    def form(self) -> str:
        """The form of its URIs, in words: `linalg://matmul/MxNxK`."""
        sizes = f"/{'x'.join(self.sizes)}{'...' if self.ranks else ''}" if self.sizes else ""
        options = "&".join(f"{option.name}={option.default}" for option in self.options)
        return f"linalg://{self.name}{sizes}{f'?{options}' if options else ''}"


_STRIDE = Option("stride", 1, high=64)
_BATCH = Option("batch", 1, high=1 << 10)
# Five halvings leave at least one pixel.
_IMAGES = (_BATCH, Option("classes", 1000, high=1 << 16), Option("size", 32, 1 << 10, low=32, multiple=32))

OPERATORS = (
    Family("matmul", "C[m,n] = sum over k of A[m,k] * B[k,n]", ("M", "N", "K")),
    Family("batch_matmul", "one matmul for each index of the batch", ("B", "M", "N", "K")),
    Family(
        "conv2d",
        "2-D convolution, NCHW by FCHW, on an image of HxW that is already padded",
        ("N", "C", "H", "W", "F", "KH", "KW"),
        (_STRIDE,),
    ),
    Family("maxpool", "greatest of each KxK window, NCHW", ("N", "C", "H", "W", "K"), (_STRIDE,)),
    Family("add", "sum of two tensors, element by element", ("A", "B"), ranks=(1, 6)),
    Family("relu", "the greater of each element and zero", ("A", "B"), ranks=(1, 6)),
    Family("softmax", "softmax of each row", ("R", "C")),
    Family("layernorm", "layer normalisation of each row, with gain and bias", ("R", "C")),
    Family("lattice", "random sum of products of small tensors, as in lattice QCD", ("SEED",)),
    Family(
        "sequence",
        "random chain of operators, each on the result of the one before",
        ("SEED",),
        (Option("length", 3, high=6, low=2),),
    ),
)
"""Operators: their text is written here."""

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
        multiples=(("width", "heads"),),
    ),
)
"""Networks: torch builds them, torch-mlir brings them to linalg."""

FAMILIES = {family.name: family for family in (*OPERATORS, *NETWORKS)}
"""Every family by its name."""
