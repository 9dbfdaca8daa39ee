"""What may be said of a layer of which it is known what is true."""

GOOD = ("controllable", "output-only", "conditional")  # a patch exists almost everywhere
MAYBE = (*GOOD, "undecided")  # and that need not be seen
PARTLY = ("conditional", "undecided", "rejected")  # on an open set, and not on another
NONE = ("rejected", "undecided")  # for almost all weights and contexts no patch is exact


class Bound:
    """Rejected, since what patches reach is bounded by this distance."""

    def __init__(self, distance):
        self.distance = distance

    def __contains__(self, found):
        return found[0] == "rejected" and abs(found[1] - self.distance) < 1e-5 * self.distance

    def __repr__(self):
        return f"a bound of {self.distance}"
