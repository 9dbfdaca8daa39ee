"""Random numbers for parameters that have none, as lib/Session/SelfCheck.cpp makes them: by a parameter's name and their places."""
from __future__ import annotations

import math
from typing import Sequence

import numpy as np

SEED = 1
MOST = 1 << 26  # of all parameters together
MASK = (1 << 64) - 1


def mixed(x: np.ndarray) -> np.ndarray:
    """SplitMix64's mixing of integers of 64 bits."""
    for by, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = np.multiply(x ^ (x >> np.uint64(by)), np.uint64(factor))
    made: np.ndarray = np.bitwise_xor(x, x >> np.uint64(31))
    return made


def random_numbers(name: str, shape: Sequence[int]) -> np.ndarray:
    state = 0xCBF29CE484222325 ^ SEED
    for byte in name.encode():
        state = ((state ^ byte) * 0x100000001B3) & MASK
    places = np.arange(1, math.prod(shape) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(state)
    uniform = (mixed(places) >> np.uint64(11)).astype(np.float64) * 2.0 ** -52 - 1
    sizes = [size for size in shape if size != 1]
    width = math.sqrt(3.0 / sizes[-1]) if len(sizes) > 1 else 0.5
    return (uniform * width).astype(np.float32).reshape(tuple(shape))
