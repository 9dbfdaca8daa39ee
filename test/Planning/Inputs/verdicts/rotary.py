"""Rotations with an amplitude: the bound that rejects a block is the amplitude's, too."""
import math

from blocks import Block
from truths import Bound


def behind_a_norm(kind, width, heads, amplitude, frequencies, times=None):
    b = Block(width)
    v = b.add(b.x, b.context())
    n = b.normalize(kind, b.matrix("down", width, v), 1e-6)
    f = b.setting("f", [0.5 ** i for i in range(frequencies)])
    turned = b.rotary(n, f, amplitude=amplitude, heads=heads)
    if times is not None:
        turned = b.times(turned, times)
    return b.text(b.add(v, turned))


def cases():
    rms = lambda width: math.sqrt(width)
    for amplitude in (16, 0.25, -2, 1, 1e-3):
        text = behind_a_norm("rms", 4, 1, amplitude, 2)
        yield f"rms by {amplitude}", text, [Bound(2 * abs(amplitude) * rms(4))]
    for amplitude in (16, 0.25, -0.5, 1):  # the last entries are not rotated
        text = behind_a_norm("rms", 8, 2, amplitude, 1)
        yield f"rms of some pairs by {amplitude}", text, [Bound(2 * max(abs(amplitude), 1) * rms(8))]
    yield "l2 by 3", behind_a_norm("l2", 4, 1, 3, 2), [Bound(6)]
    yield "layer by 3", behind_a_norm("layer", 4, 2, 3, 1), [Bound(6 * rms(4))]
    yield "rms by 16, times 0.5", behind_a_norm("rms", 4, 1, 16, 2, times=0.5), [Bound(16 * rms(4))]
