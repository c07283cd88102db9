"""Operations on images."""

# The type declarations of jax are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false

import jax
import jax.numpy as jnp
import jax.scipy as jsp

from irgym.envs.hlo.programs.models.model import Model, Options, Tree, floats
from irgym.envs.hlo.programs.models.numerics.functions import program


def picture(options: Options) -> Model:
    """An operation on square images, with an angle for rotations."""
    pixels, operation = options["pixels"], options["operation"]

    def processed(image: jax.Array, angle: jax.Array) -> jax.Array:
        if operation == "blur":
            return image + 0.5 * (image - _blurred(image))
        if operation == "bilateral":
            return _bilateral(image)
        if operation == "canny":
            return _outlined(image)
        if operation == "equalise":
            return _equalised(image)
        if operation == "corners":
            return _corners(image)
        if operation == "rotate":
            return _rotated(image, angle)
        if operation == "morphology":
            opened = _greatest(_least(image))
            return image - opened + _least(_greatest(opened))
        if operation == "threshold":
            return _thresholded(image)
        if operation == "resize":
            return jax.image.resize(image, (pixels // 2, 2 * pixels), "cubic")
        return jnp.hypot(*_edges(image))

    def run(images: jax.Array, angle: jax.Array) -> Tree:
        return jax.vmap(processed, (0, None))(images, angle)

    return program(run, images=floats(options["batch"], pixels, pixels), angle=floats())


def _convolved(image: jax.Array, kernel: jax.Array) -> jax.Array:
    return jsp.signal.convolve2d(image, kernel, mode="same")


def _edges(image: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the derivatives along both axes by Sobel's filters."""
    across = jnp.array([[1.0, 0.0, -1.0], [2.0, 0.0, -2.0], [1.0, 0.0, -1.0]])
    return _convolved(image, across), _convolved(image, across.T)


def _least(image: jax.Array) -> jax.Array:
    """Return the minimum of the 3 x 3 pixels around each."""
    return jax.lax.reduce_window(image, jnp.inf, jax.lax.min, (3, 3), (1, 1), "SAME")


def _greatest(image: jax.Array) -> jax.Array:
    """Return the maximum of the 3 x 3 pixels around each."""
    return jax.lax.reduce_window(image, -jnp.inf, jax.lax.max, (3, 3), (1, 1), "SAME")


def _blurred(image: jax.Array, sigma: float = 1.0) -> jax.Array:
    """Blur by a Gaussian of 7 pixels."""
    bell = jnp.exp(-0.5 * (jnp.arange(-3, 4) / sigma) ** 2)
    bell = bell / bell.sum()
    return _convolved(_convolved(image, bell[:, None]), bell[None, :])


def _bilateral(image: jax.Array) -> jax.Array:
    """Blur, except across edges."""
    total, weights = jnp.zeros_like(image), jnp.zeros_like(image)
    for i in (-1, 0, 1):
        for j in (-1, 0, 1):
            near = jnp.roll(image, (i, j), (0, 1))
            weight = jnp.exp(-0.5 * (i * i + j * j) - (near - image) ** 2 / 0.1)
            total, weights = total + weight * near, weights + weight
    return total / weights


def _outlined(image: jax.Array) -> jax.Array:
    """Thin edges: maxima across the direction of the edge, with two thresholds (Canny, 1986)."""
    dx, dy = _edges(_blurred(image))
    size, angle = jnp.hypot(dx, dy), jnp.round(jnp.arctan2(dy, dx) / (jnp.pi / 4)) % 4
    ahead = [(0, 1), (1, 1), (1, 0), (1, -1)]
    before = jnp.select([angle == k for k in range(4)], [jnp.roll(size, at, (0, 1)) for at in ahead], 0.0)
    back = [(-i, -j) for i, j in ahead]
    after = jnp.select([angle == k for k in range(4)], [jnp.roll(size, at, (0, 1)) for at in back], 0.0)
    thin = jnp.where((size >= before) & (size >= after), size, 0.0)
    strong = (thin > 0.5 * thin.max()).astype(jnp.float32)
    weak = thin > 0.2 * thin.max()

    def grow(_: int, strong: jax.Array) -> jax.Array:
        return jnp.where(weak, _greatest(strong), strong)

    return jax.lax.fori_loop(0, 4, grow, strong) * thin


def _equalised(image: jax.Array) -> jax.Array:
    """Spread the grey levels evenly, by their histogram."""
    low, high = image.min(), image.max()
    levels = jnp.clip((image - low) / (high - low + 1e-6) * 31, 0, 31).astype(jnp.int32)
    counts = jnp.bincount(levels.ravel(), length=32)
    cumulative = jnp.cumsum(counts)
    table = (cumulative - cumulative[0]) / (image.size - cumulative[0] + 1)
    return table[levels] + 0.01 * image


def _corners(image: jax.Array) -> jax.Array:
    """Return the score of each pixel that is a corner, 0 elsewhere (Harris and Stephens, 1988)."""
    dx, dy = _edges(image)
    xx, yy, xy = _blurred(dx * dx), _blurred(dy * dy), _blurred(dx * dy)
    score = xx * yy - xy**2 - 0.05 * (xx + yy) ** 2
    return jnp.where(score == _greatest(score), score, 0.0)


def _rotated(image: jax.Array, angle: jax.Array) -> jax.Array:
    pixels = image.shape[0]
    middle = (pixels - 1) / 2
    rows, columns = jnp.meshgrid(jnp.arange(pixels) - middle, jnp.arange(pixels) - middle, indexing="ij")
    c, s = jnp.cos(angle), jnp.sin(angle)
    places = [c * rows - s * columns + middle, s * rows + c * columns + middle]
    return jsp.ndimage.map_coordinates(image, places, order=1, mode="constant")


def _thresholded(image: jax.Array) -> jax.Array:
    """Flatten the darker of two classes of pixels, by the threshold that separates them best (Otsu, 1979)."""
    levels = jnp.linspace(image.min(), image.max(), 16)
    below = (image[None] <= levels[:, None, None]).astype(jnp.float32)
    share = below.mean((1, 2))
    left = (below * image).sum((1, 2)) / (below.sum((1, 2)) + 1e-6)
    right = ((1 - below) * image).sum((1, 2)) / ((1 - below).sum((1, 2)) + 1e-6)
    best = levels[jnp.argmax(share * (1 - share) * (left - right) ** 2)]
    return jnp.where(image > best, image, best)
