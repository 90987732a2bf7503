"""Small kernels before and after a simulation on the GPU: genomes to brains, visits to numbers."""

import numpy as np
from numba import float64, int32

from swarmbo.engine.gpu.life import INPUTS as ROWS
from swarmbo.engine.gpu.life import SOURCE_BITS
from swarmbo.engine.gpu.warp import LANES, J, U, cuda, kernel, sync
from swarmbo.engine.lanes import GAIN, HUGE_WEIGHT

D = np.float64
MAX_NEURONS = 66  # outputs and hidden ones
INPUTS = 10  # of a network


@kernel
def pack(genomes, brain):
    """Sort the connections of genomes by target, and scale them as `lanes.make_brains` does.

    `genomes` = (hidden, count, bias, source, target, weight), `brain` as in
    `gpu_life`: the connections of neurons 0 and 1 side by side, then those of 2 and 3, and so
    on; where one of two has fewer, weights of 0 fill up. A thread per genome.
    """
    hidden, count, bias_in, source, target, weight = genomes
    room, neurons_of, starts, bias, sources, weights = brain
    g = U(cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x)
    if g >= U(hidden.size):
        return
    places = cuda.local.array(MAX_NEURONS, int32)
    scales = cuda.local.array(MAX_NEURONS, float64)
    neurons = J(hidden[g]) + J(2)
    neurons_of[g] = neurons
    first_bias = U(g * U(room))
    first_start = U(g * U(room // 2 + 1))
    for n in range(U(neurons)):
        places[n] = J(0)
        scales[n] = max(abs(bias_in[g, n]), HUGE_WEIGHT)
    for k in range(U(count[g])):
        n = U(U(target[g, k]) - U(INPUTS))
        places[n] += J(1)
        scales[n] = max(scales[n], abs(weight[g, k]))
    end = J(g * U(weight.shape[1]))
    starts[first_start] = U(end)
    for n in range(U(neurons)):
        scales[n] = HUGE_WEIGHT / scales[n]
        bias[first_bias + n] = bias_in[g, n] * scales[n]
        if n % U(2) == U(1) or n + U(1) == U(neurons):
            twin = n - n % U(2)
            longest = max(places[twin], places[n])
            places[twin] = end
            places[n] = end
            for k in range(U(end), U(end + longest)):
                sources[k] = U(0)
                weights[U(2) * k] = D(0)
                weights[U(2) * k + U(1)] = D(0)
            end += longest
            starts[first_start + n // U(2) + U(1)] = U(end)
    for k in range(U(count[g])):
        n = U(U(target[g, k]) - U(INPUTS))
        place = U(places[n])
        places[n] += J(1)
        row = U(source[g, k])
        scaled = GAIN * (weight[g, k] * scales[n])
        if row == U(ROWS):  # the input that is always 1
            bias[first_bias + n] += scaled
            scaled = D(0)
            row = U(0)
        # There are no outputs among the sources.
        row = row if row < U(INPUTS) else row - U(INPUTS + 2 - ROWS)
        twin = n & U(1)
        sources[place] |= row << (U(SOURCE_BITS) * twin)
        weights[U(2) * place + twin] = scaled


@kernel
def clear(visits):
    """Set all visits to 0, a row per block."""
    row = U(cuda.blockIdx.x)
    for i in range(U(cuda.threadIdx.x), U(visits.shape[1]), U(LANES)):
        visits[row, U(i)] = J(0)


@kernel
def score(visits, distance, robot_ticks, uniformity, visited, mean_distance):
    """HBD numbers of one trial per block; sets its visits to 0 for the next launch.

    See `Swarm.scores`. `distance` holds the sums per robot.
    """
    counts = cuda.shared.array(LANES, int32)
    spreads = cuda.shared.array(LANES, float64)
    row = U(cuda.blockIdx.x)
    lane = U(cuda.threadIdx.x)
    squares = U(visits.shape[1])
    count = J(0)
    for i in range(lane, squares, U(LANES)):
        if visits[row, U(i)] > J(0):
            count += J(1)
    counts[lane] = count
    sync()
    count = J(0)
    for i in range(LANES):
        count += counts[i]
    even = D(1) / D(max(count, J(1)))
    spread = D(0)
    for i in range(lane, squares, U(LANES)):
        here = visits[row, U(i)]
        if here > J(0):
            spread += abs(D(here) / robot_ticks - even)
            visits[row, U(i)] = J(0)
    spreads[lane] = spread
    sync()
    if lane == U(0):
        spread = D(0)
        for i in range(LANES):
            spread += spreads[i]
        total = D(0)
        for robot in range(U(distance.shape[1])):
            total += distance[row, robot]
        uniformity[row] = (D(1) - even) - spread / D(2)
        visited[row] = count
        mean_distance[row] = total / robot_ticks
