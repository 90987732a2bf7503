"""One step of a controller's network."""

import math

from swarmbo.controller.network import INPUTS, Controller


def network_step(controller: Controller, inputs: list[float], neurons: list[float]) -> list[float]:
    """New values of the neurons that are no inputs: left wheel, right wheel, hidden ones.

    `neurons` holds their values of the tick before, which connections between
    them read; the inputs act at once.
    """
    values = [*inputs, *neurons]
    sums = [0.0] * controller.neurons
    for source, target, weight in controller.connections:
        sums[target] += weight * values[source]
    return [
        math.tanh(5 * total + bias)
        for total, bias in zip(sums[INPUTS:], controller.bias, strict=True)
    ]
