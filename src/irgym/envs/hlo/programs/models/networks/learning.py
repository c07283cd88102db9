"""Learning beyond plain supervised training: policy optimisation, meta-learning, physics."""

# The type declarations of jax are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

import math

import jax
import jax.numpy as jnp

from irgym.envs.hlo.programs.models.model import KEY, Model, Options, Tree, floats, integers
from irgym.envs.hlo.programs.models.networks.layers import dense, dense_shapes
from irgym.envs.hlo.programs.models.networks.perceptrons import perceptron, perceptron_shapes


def _advantages(values: jax.Array, rewards: jax.Array, ended: jax.Array, unroll: int) -> jax.Array:
    """Return generalised advantage estimates (steps, actors) (Schulman et al., arXiv 1506.02438)."""
    going = 0.99 * (1.0 - ended)
    errors = rewards + going * values[1:] - values[:-1]

    def step(after: jax.Array, pair: Tree) -> tuple[jax.Array, jax.Array]:
        error, going = pair
        now = error + 0.95 * going * after
        return now, now

    return jax.lax.scan(step, jnp.zeros_like(errors[0]), (errors, going), reverse=True, unroll=unroll)[1]


def ppo(options: Options) -> Model:
    """Proximal policy optimisation: one update, or one act (Schulman et al., arXiv 1707.06347)."""
    layers, width, steps, actors = (options[n] for n in ("layers", "width", "steps", "actors"))
    features, actions, continuous = (options[n] for n in ("features", "actions", "continuous"))
    parameters = {
        "policy": perceptron_shapes([features, *[width] * layers, actions]),
        "value": perceptron_shapes([features, *[width] * layers, 1]),
    } | ({"spread": floats(actions)} if continuous else {})

    def log_chance(weights: Tree, seen: jax.Array, chosen: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the log-probability of actions and the entropy of the policy."""
        outputs = perceptron(seen, weights["policy"], "tanh")
        if continuous:
            spread = weights["spread"]
            scaled = (chosen - outputs) / jnp.exp(spread)
            chance = (-0.5 * scaled**2 - spread - 0.5 * math.log(2 * math.pi)).sum(-1)
            return chance, (spread + 0.5 + 0.5 * math.log(2 * math.pi)).sum()
        logs = jax.nn.log_softmax(outputs)
        chance = jnp.take_along_axis(logs, chosen[..., None], axis=-1)[..., 0]
        return chance, -(jnp.exp(logs) * logs).sum(-1)

    def loss(weights: Tree, state: Tree, played: Tree, key: jax.Array) -> tuple[jax.Array, Tree]:
        seen = played["observations"]
        values = perceptron(seen, weights["value"], "tanh")[..., 0]
        advantages = jax.lax.stop_gradient(
            _advantages(played["values"], played["rewards"], played["ended"], options["unroll"])
        )
        returns = advantages + played["values"][:-1]
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        chance, entropy = log_chance(weights, seen[:-1], played["actions"])
        ratio = jnp.exp(chance - played["chances"])
        gains = jnp.minimum(ratio * advantages, jnp.clip(ratio, 0.8, 1.2) * advantages)
        kept = played["values"][:-1]
        close = kept + jnp.clip(values[:-1] - kept, -0.2, 0.2)
        errors = jnp.maximum((values[:-1] - returns) ** 2, (close - returns) ** 2)
        return -gains.mean() + 0.5 * errors.mean() - 0.01 * jnp.mean(entropy), state

    def forward(weights: Tree, state: Tree, inputs: Tree) -> Tree:
        outputs = perceptron(inputs["observations"], weights["policy"], "tanh")
        if continuous:
            noise = jax.random.normal(inputs["noise"], outputs.shape, outputs.dtype)
            chosen = outputs + jnp.exp(weights["spread"]) * noise
        else:
            chosen = jax.random.categorical(inputs["noise"], outputs)
        chance, _ = log_chance(weights, inputs["observations"], chosen)
        return chosen, chance, perceptron(inputs["observations"], weights["value"], "tanh")[..., 0]

    each = floats(steps, actors)
    played = {
        "observations": floats(steps + 1, actors, features),
        "actions": floats(steps, actors, actions) if continuous else integers(steps, actors),
        "rewards": each,
        "ended": each,
        "chances": each,
        "values": floats(steps + 1, actors),
    }
    return Model(parameters, played, loss, {"observations": floats(actors, features), "noise": KEY}, forward)


def maml(options: Options) -> Model:
    """Meta-learning of regressions: gradients through gradient steps (Finn et al., arXiv 1703.03400)."""
    layers, width, steps = options["layers"], options["width"], options["steps"]
    tasks, points = options["batch"], options["points"]
    parameters = perceptron_shapes([1, *[width] * layers, 1])

    def error(weights: Tree, x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.mean((perceptron(x, weights) - y) ** 2)

    def adapted(weights: Tree, x: jax.Array, y: jax.Array) -> Tree:
        for _ in range(steps):
            gradients = jax.grad(error)(weights, x, y)
            weights = jax.tree.map(lambda weight, g: weight - 0.01 * g, weights, gradients)
        return weights

    def loss(weights: Tree, state: Tree, data: Tree, key: jax.Array) -> tuple[jax.Array, Tree]:
        def task_loss(x: jax.Array, y: jax.Array, later_x: jax.Array, later_y: jax.Array) -> jax.Array:
            return error(adapted(weights, x, y), later_x, later_y)

        return jax.vmap(task_loss)(data["x"], data["y"], data["later_x"], data["later_y"]).mean(), state

    def forward(weights: Tree, state: Tree, data: Tree) -> jax.Array:
        def predicted(x: jax.Array, y: jax.Array, later_x: jax.Array) -> jax.Array:
            return perceptron(later_x, adapted(weights, x, y))

        return jax.vmap(predicted)(data["x"], data["y"], data["later_x"])

    each = floats(tasks, points, 1)
    inputs = {"x": each, "y": each, "later_x": each}
    return Model(parameters, inputs | {"later_y": each}, loss, inputs, forward)


def pinn(options: Options) -> Model:
    """Physics-informed network for Burgers' equation (Raissi et al., arXiv 1711.10561)."""
    layers, width, batch = options["layers"], options["width"], options["batch"]
    parameters = perceptron_shapes([2, *[width] * layers, 1])
    slope = jax.jacfwd if options["derivative"] == "forward" else jax.grad

    def field(weights: Tree, x: jax.Array, t: jax.Array) -> jax.Array:
        return perceptron(jnp.stack([x, t]), weights, "tanh")[0]

    def residual(weights: Tree, x: jax.Array, t: jax.Array) -> jax.Array:
        in_x = slope(field, 1)
        curve = slope(in_x, 1)(weights, x, t)
        value = field(weights, x, t)
        return slope(field, 2)(weights, x, t) + value * in_x(weights, x, t) - 0.01 / math.pi * curve

    def loss(weights: Tree, state: Tree, points: Tree, key: jax.Array) -> tuple[jax.Array, Tree]:
        inside = jax.vmap(residual, (None, 0, 0))(weights, points["x"], points["t"])
        start = jax.vmap(field, (None, 0, None))(weights, points["x"], jnp.zeros(()))
        wanted = -jnp.sin(math.pi * points["x"])
        edges = [jax.vmap(field, (None, None, 0))(weights, jnp.full((), e), points["t"]) for e in (-1.0, 1.0)]
        edge = sum(jnp.mean(values**2) for values in edges)
        return jnp.mean(inside**2) + jnp.mean((start - wanted) ** 2) + edge, state

    def forward(weights: Tree, state: Tree, points: Tree) -> Tree:
        value = jax.vmap(field, (None, 0, 0))(weights, points["x"], points["t"])
        return value, jax.vmap(residual, (None, 0, 0))(weights, points["x"], points["t"])

    points = {"x": floats(batch), "t": floats(batch)}
    return Model(parameters, points, loss, points, forward)


def ode(options: Options) -> Model:
    """Neural differential equation by the classical Runge-Kutta method (Chen, arXiv 1806.07366)."""
    layers, width, steps = options["layers"], options["width"], options["steps"]
    features, batch = options["features"], options["batch"]
    parameters = {
        "field": perceptron_shapes([features + 1, *[width] * layers, features]),
        "head": dense_shapes(features, 1),
    }

    def solve(weights: Tree, start: jax.Array) -> jax.Array:
        h = 1.0 / steps

        def slope(x: jax.Array, time: jax.Array) -> jax.Array:
            column = jnp.full((batch, 1), time).astype(x.dtype)
            return perceptron(jnp.concatenate([x, column], axis=-1), weights["field"], "tanh")

        def step(x: jax.Array, index: jax.Array) -> tuple[jax.Array, None]:
            time = index * h
            first = slope(x, time)
            second = slope(x + 0.5 * h * first, time + 0.5 * h)
            third = slope(x + 0.5 * h * second, time + 0.5 * h)
            fourth = slope(x + h * third, time + h)
            return x + h / 6.0 * (first + 2.0 * second + 2.0 * third + fourth), None

        return jax.lax.scan(step, start, jnp.arange(steps), unroll=options["unroll"])[0]

    def loss(weights: Tree, state: Tree, data: Tree, key: jax.Array) -> tuple[jax.Array, Tree]:
        predicted = dense(solve(weights, data["start"]), weights["head"])[:, 0]
        return jnp.mean((predicted - data["value"]) ** 2), state

    def forward(weights: Tree, state: Tree, start: jax.Array) -> jax.Array:
        return dense(solve(weights, start), weights["head"])[:, 0]

    start = floats(batch, features)
    return Model(parameters, {"start": start, "value": floats(batch)}, loss, start, forward)
