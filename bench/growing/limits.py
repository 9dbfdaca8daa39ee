"""What the machine allows at best: everything that is needed is read once, at the bandwidth of memory that was measured
after each token; or the arithmetic takes as long as in a product of large matrices."""


def milliseconds(found, cache=0):
    """Of a token: its weights and what it sees of the cache are read once."""
    return (found["bytes"] + cache) / found["read_gbps"] / 1e6


def of_context(found):
    return milliseconds(found, found["cache"])


def of_positions(found):
    """Of the patches of all positions: weights are read once, and both runs computed. None where the arithmetic was
    not measured."""
    if not found["gflops"]:
        return None
    return max(milliseconds(found), 2 * found["operations"] / found["gflops"] / 1e6)


def rest(found):
    """Bytes of the process that are neither weights nor cache."""
    return found["peak"] - found["weights"] - found["cache"]
