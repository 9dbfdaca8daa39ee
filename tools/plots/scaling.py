"""The update variants against each other, as the paper's three-part figure: fidelity, norms, further
metrics."""

from plots import comparison


def figures(data):
    comparison.with_distances(data)
    yield comparison.summary(data)
    yield comparison.norms(data)
    yield comparison.further(data)


def tables(data):
    yield comparison.table(data)
