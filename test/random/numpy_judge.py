"""Judges what ctxc says of random blocks by numpy alone: patches are formed as a success claims, and looked for where a
rejection says that there are none. What is drawn, and each search's attempts, are computed side by side."""
import numpy as np

TOKENS = 5
HERE = np.array([TOKENS - 1])
EXACT = 1e-6
LARGEST = 1e6  # numbers beyond hide what is rounded
STALLED = 8  # steps without much gain that end a search
LARGE = 100  # numbers of which few steps are made, with few dampings
FEW = 4  # entries of a vector that ctxc says may all underflow at once
MOST = 200_000  # numbers that are looked for one by one, times those that they make
DAMPINGS = 6.0 ** np.array([-12.0, -3, -1, 0, 1, 3, 6, 10])


class Draws:
    """Random weights and activations of a block, and both runs of its last token; each drawn several times.
    `sizes`: of what reads the context and of the other weights, for each draw."""

    def __init__(self, block, layer, rng, claim, sizes, first=0):
        self.block, self.layer, count = block, layer, len(sizes)
        sizes, self.parameters = np.asarray(sizes), {}
        for name, op in block.parameters().items():
            drawn = rng.standard_normal((count, *op.shape)) / np.sqrt(op.shape[-1] if len(op.shape) > 1 else 1)
            if "constant" in op.flags:  # any numbers, and none, and ones
                drawn = np.array([(each, 0 * each, 0 * each + 1)[(first + i) % 3] for i, each in enumerate(drawn)])
            self.parameters[name] = drawn * sizes[:, int(not name.startswith("conv"))].reshape(-1, *[1] * len(op.shape))
        width = block.x.shape[0]
        x = rng.standard_normal((count, 1, TOKENS, width))
        depends = claim["inputsDepend"] and 0 not in claim.get("equalInputs", [])
        self.own = rng.standard_normal((count, 1, 1, width)) if depends else x[:, :, -1:]
        values = block.evaluate(self.parameters, x, np.arange(TOKENS), layer)
        self.full = {op.name: values[op.name][:, :, -1:] for op in block.ops if op.kind != "setting"}
        self.values = self.reduced(self.parameters)
        self.wanted, self.plain = joined(block.outputs, self.full)[:, 0], joined(block.outputs, self.values)[:, 0]
        self.largest = 1 + np.abs(self.wanted).max(1)
        most = np.maximum(np.abs(self.wanted).max(1), np.abs(self.plain).max(1))
        self.usable = np.flatnonzero(most < LARGEST)  # false for nan

    def reduced(self, parameters):
        return self.block.evaluate(parameters, self.own, HERE, self.layer)

    def gap(self, parameters):
        error = np.abs(joined(self.block.outputs, self.reduced(parameters))[:, 0] - self.wanted).max(1) / self.largest
        return np.where(np.isfinite(error), error, np.inf)

    def changed(self):
        return np.abs(self.plain - self.wanted).max(1) > 1e-6 * self.largest


def joined(ops, values):
    """The ops' values side by side."""
    outputs = [values[o.name].reshape(*values[o.name].shape[:2], -1) for o in ops]
    if len(outputs) == 1:
        return outputs[0]
    shape = np.broadcast_shapes(*[o.shape[:2] for o in outputs])
    return np.concatenate([np.broadcast_to(o, (*shape, o.shape[2])) for o in outputs], 2)


class Search:
    """Looks for values of the ops `names` with which a reduced run of `values` has the full run's `goals`, or in these what is
    `wanted`."""

    def __init__(self, draws, names, values, goals=None, wanted=None):
        self.draws, self.block = draws, draws.block
        self.goals = goals or self.block.outputs
        self.wanted = joined(self.goals, wanted or draws.full)[:, 0]
        ops = {op.name: op for op in self.block.ops}
        self.places, at = [], 0
        for name in names:
            size = int(np.prod(ops[name].shape))
            self.places.append((name, ops[name].shape, slice(at, at + size)))
            at += size
        self.start = np.concatenate([values[name].reshape(len(draws.wanted), -1) for name in names], 1)
        self.behind = self.block.behind(names)
        made = {*names, *(op.name for op in self.behind)}
        read = {o.name for op in self.behind for o in op.operands} | {o.name for o in self.goals}
        self.read = {name: values[name] for name in read - made}

    def split(self, points):
        """Points of (draws, points, numbers) as values of the ops."""
        return {name: points[:, :, place].reshape(*points.shape[:2], 1, *shape) for name, shape, place in self.places}

    def residual(self, points, rows):
        values = self.split(points)
        for name, value in self.read.items():
            values[name] = value if len(value) == 1 else value[rows]
        for op in self.behind:
            values[op.name] = self.block.run(op, values, HERE)
        return joined(self.goals, values) - self.wanted[rows][:, None]

    def followed(self, rows, count=20):
        """Where a path of points leads whose results go straight from what is there to the goals."""
        points, begin = self.start[rows], self.residual(self.start[rows, None], rows)[:, 0]
        gaps = np.zeros((len(self.wanted), begin.shape[1]))
        gaps[rows] = begin
        for left in np.arange(count)[::-1] / count:
            points, _ = minimized(lambda x, r: self.residual(x, r) - left * gaps[r][:, None], points, rows, 30, DAMPINGS)  # noqa: B023
        return points

    def least(self, rows, attempts, rng, steps=60, one=False):
        """The best points for the draws `rows`, and the gaps that they leave. With `one` it ends where all attempts of one
        draw have ended and left a gap."""
        large = self.start.shape[1] > LARGE
        if large:
            steps, attempts = 12, 1
        start = np.repeat(self.start[rows], attempts, 0)
        if attempts > 1:
            # Farther and farther from where it is, and from zero: of exp(-30) nothing is near.
            far = np.concatenate([[0], 3.0 ** (np.arange(attempts - 1) // 2)])
            start *= np.tile(np.arange(attempts) % 2 == 0, len(rows))[:, None]
            start += rng.standard_normal(start.shape) * np.tile(far, len(rows))[:, None]
            if attempts > 4:
                start[:: attempts // 4] = np.repeat(self.followed(rows), 4, 0)
        dampings = DAMPINGS[[0, 3]] if large else DAMPINGS
        points, errors = minimized(self.residual, start, np.repeat(rows, attempts), steps, dampings, attempts if one else 0)
        errors = errors.reshape(len(rows), attempts)
        best = errors.argmin(1)
        points = points.reshape(len(rows), attempts, -1)[np.arange(len(rows)), best]
        return points, errors.min(1) / (1 + np.abs(self.wanted[rows]).max(1))


def minimized(residual, start, rows, steps, factors, together=0):
    """Levenberg and Marquardt, with derivatives by differences, for several draws (`rows`) at once: of dampings that are
    tried together the best is taken. Ends where `together` attempts, which are of one draw, have failed. The points, and
    their largest errors."""
    n, x, damping = start.shape[1], start.copy(), np.full(len(rows), 1e-3)
    r = residual(x[:, None], rows)[:, 0]
    cost = np.einsum("ij,ij->i", r, r)
    active, eye, unit = np.flatnonzero(np.isfinite(cost)), np.eye(r.shape[1]), np.eye(n)
    history, units = [], np.zeros_like(x)
    for step in range(steps):
        history.append(cost.copy())
        going = np.abs(r[active]).max(1) > EXACT / 100
        if step > STALLED:
            going &= cost[active] < 0.9 * history[-1 - STALLED][active]
        active = active[going]
        if not active.size:
            break
        if together:
            left = np.abs(r).max(1) > EXACT * 100
            left[active] = False
            if left.reshape(-1, together).all(1).any():
                break
        at, own, rest = x[active], rows[active], r[active]
        # A root near zero has a derivative in the near alone: half of the attempts look there.
        h = np.where(active % 4 < 2, 1e-6, 1e-9)[:, None] * (1 + np.abs(at))
        moves = unit * h[:, None]
        around = residual(np.concatenate([at[:, None] + moves, at[:, None] - moves], 1), own)
        jacobian = (around[:, :n] - around[:, n:]) / (2 * h[:, :, None])
        # Numbers of very different sizes: every other attempt counts each by what it changes.
        norms = np.sqrt(np.einsum("ijk,ijk->ij", jacobian, jacobian))
        # What it changed most, or changes now: of a root of a large number, less and less.
        units[active] = np.where(active[:, None] % 4 == 3, norms, np.maximum(units[active], norms))
        sizes = np.where(active[:, None] % 2, 1 / (units[active] + 1e-12), 1)
        jacobian *= sizes[:, :, None]
        finite = np.isfinite(jacobian).all((1, 2))
        if not finite.all():
            active, at, own, rest, jacobian, sizes = (each[finite] for each in (active, at, own, rest, jacobian, sizes))
            if not active.size:
                break
        gram = np.swapaxes(jacobian, 1, 2) @ jacobian
        scale = 1e-9 + np.abs(jacobian).max((1, 2)) ** 2
        tried = np.maximum(damping[active][:, None] * factors, 1e-12)
        lhs = gram[:, None] + (tried * scale[:, None])[:, :, None, None] * eye
        moved = at[:, None] + np.linalg.solve(lhs, np.broadcast_to(-rest[:, None, :, None], (*tried.shape, len(eye), 1)))[..., 0] @ jacobian.swapaxes(1, 2) * sizes[:, None]
        rests = residual(moved, own)
        costs = np.einsum("ijk,ijk->ij", rests, rests)
        costs[~np.isfinite(costs)] = np.inf
        best = costs.argmin(1)
        each = np.arange(len(active))
        better = costs[each, best] < cost[active]
        active, each, best = active[better], each[better], best[better]
        x[active], r[active], cost[active] = moved[each, best], rests[each, best], costs[each, best]
        damping[active] = np.clip(tried[each, best], 1e-12, 1e6)
    error = np.abs(r).max(1)
    return x, np.where(np.isfinite(error), error, np.inf)


def assigned(draws, op, target, parameters):
    """The parameters with that of `op` changed so that it gives `target`, as the paper's lemmas do."""
    values = draws.reduced(parameters)
    made = next(each for each in draws.block.ops if each.name == op)
    data, parameter = (made.operands[1], made.operands[0]) if made.kind == "linear" else made.operands
    u, y, old = values[data.name][:, 0, 0], values[op][:, 0, 0], parameters[parameter.parameter]
    if made.kind == "linear":
        squares = np.einsum("ij,ij->i", u, u)
        u = u / np.where(squares == 0, 1, squares)[:, None]
        rows, columns = (u, target - y) if made.transposed else (target - y, u)
        new = old + rows[:, :, None] * columns[:, None, :]
    elif made.kind == "bias":
        new = old + target - y
    else:
        new = np.where(u == 0, old, target / np.where(u == 0, 1, u) - made.offset)
    return {**parameters, parameter.parameter: new}


def inverted(function, target, shape):
    """Where a rising or a falling function of one number has the values `target`: by halving between all numbers of float64."""
    if target.shape[3:] != shape:
        return None

    def number(place):
        return np.copysign(np.abs(place).view(float), place)

    most = np.full(target.shape, np.finfo(float).max).view(np.int64)
    low, high = -most, most
    falls = function(np.ones(target.shape)) < function(-np.ones(target.shape))
    for _ in range(64):
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        is_below = (function(number(middle)) < target) != falls
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return number(high)


def solved(function, target, shape):
    """Where an affine function of few numbers has the values `target`."""
    count, n = len(target), int(np.prod(shape))
    if n > LARGE:
        return None
    constant = function(np.zeros((count, 1, 1, *shape)))
    units = np.eye(n).reshape(n, 1, 1, 1, *shape)
    matrix = np.stack([(function(np.broadcast_to(unit, (count, 1, 1, *shape))) - constant).reshape(count, -1) for unit in units], -1)
    if not np.isfinite(matrix).all():
        return None
    return (np.linalg.pinv(matrix) @ (target - constant).reshape(count, -1, 1)).reshape(count, 1, 1, *shape)


def shared_of(outputs):
    """The end that the chains of all outputs have in common."""
    chains = [sites["chain"] for sites in outputs]
    shared = [name for name in chains[0] if all(name in chain for chain in chains)]
    return shared if all(chain[-len(shared):] == shared for chain in chains) else []


def pulled_back(draws, chain, values):
    """What the first op of `chain` should give so that the last one gives what it does in the full run, by the inverse of each
    op; none where one is neither a function of one number each, nor affine, nor goes back to what the full run has before it."""
    ops = {op.name: op for op in draws.block.ops}
    if not chain or any(name not in ops for name in chain):
        return None
    target = draws.full[chain[-1]]
    for inner, outer in reversed(list(zip(chain, chain[1:]))):
        behind = draws.block.behind([inner])
        between = behind[: behind.index(ops[outer]) + 1]

        def made_of(z):
            own = {**values, inner: z}  # noqa: B023
            for op in between:  # noqa: B023
                own[op.name] = draws.block.run(op, own, HERE)
            return own[outer]  # noqa: B023

        for inverse in (inverted, solved, lambda *_: draws.full[inner]):  # noqa: B023
            found = inverse(made_of, target, ops[inner].shape)
            if found is not None and np.allclose(made_of(found), target, rtol=EXACT, atol=EXACT, equal_nan=True):
                break
        else:
            return None
        target = found
    return target


def pulled(draws, outputs, values):
    """Ops and what they should give: the first ones of all chains, where what stands in the others has the full run's values;
    or the first one that all chains go through."""
    ops, chains = {op.name: op for op in draws.block.ops}, [sites.get("chain", []) for sites in outputs]
    if any(chain[-1:] != [sites["goal"]] for chain, sites in zip(chains, outputs)):
        return []
    made, every = [], {name for chain in chains for name in chain if name in ops}
    for chain in chains:
        others = {name: draws.full[name] for name in every - set(chain)}
        made.append((ops.get(chain[0]), pulled_back(draws, chain, {**values, **others})))
    if any(target is None for _, target in made):
        shared = shared_of(outputs)
        made = [(ops.get(shared[0]), pulled_back(draws, shared, values))] if shared else []
    return [] if any(target is None for _, target in made) else made


def patched(draws, claim, attempts=3):
    """The parameters with the patch of a success: first its cut, then its outputs."""
    order = {op.name: i for i, op in enumerate(draws.block.ops)}
    parameters = draws.parameters
    for cut in sorted(claim["cut"], key=lambda c: order[c["op"]]):
        parameters = assigned(draws, cut["op"], draws.full[cut["op"]][:, 0, 0], parameters)
    groups = [sites["patches"][0]["op"] for sites in claim["outputs"]]
    if not groups:
        return parameters
    ops = {op.name: op for op in draws.block.ops}
    # Several ops that ctxc writes in the place of one have its name and a number; the last gives its value.
    goals = [ops.get(sites["goal"].partition("_")[0]) for sites in claim["outputs"]]
    values = draws.reduced(parameters) if claim["cut"] else draws.values
    search = Search(draws, groups, values, goals if all(goals) else None)
    found, errors = search.least(np.arange(len(draws.wanted)), 1, None)
    left = np.flatnonzero(errors > EXACT)
    if left.size and (aims := pulled(draws, claim["outputs"], values)):
        near = Search(draws, groups, values, [op for op, _ in aims], {op.name: target for op, target in aims})
        if groups == [op.name for op, _ in aims]:
            starts = [np.where(np.isfinite(target), target, values[op.name]) for op, target in aims]
            near.start = np.concatenate([start.reshape(len(draws.wanted), -1) for start in starts], 1)
        points, _ = near.least(left, 1, None)
        close = np.abs(search.residual(points[:, None], left)[:, 0]).max(1) < EXACT * (1 + np.abs(search.wanted[left]).max(1))
        found[left[close]], left = points[close], left[~close]
    if found.shape[1] <= LARGE and left.size:
        found[left], _ = search.least(left, attempts, np.random.default_rng(1))
    return given(draws, search.split(found[:, None]), parameters)


def given(draws, targets, parameters):
    """The parameters with those of ops that shall have `targets`, or with these in their place."""
    for op in draws.block.ops:
        if op.name in targets and op.kind == "param":
            parameters = {**parameters, op.parameter: targets[op.name][:, 0, 0]}
        elif op.name in targets:
            parameters = assigned(draws, op.name, targets[op.name][:, 0, 0], parameters)
    return parameters


def places_of(draws, names):
    """What stands for parameters in a search: the result of an op that alone reads a matrix or a bias, since some change of
    these gives it any value; else the parameter."""
    places = []
    for name in names:
        param = draws.block.parameters()[name]
        readers = [op for op in draws.block.ops if param in op.operands]
        one = len(readers) == 1 and readers[0].kind in ("linear", "bias")
        if one and readers[0].kind == "linear":
            one = (np.abs(draws.values[readers[0].operands[1].name]).max((1, 2, 3)) > 1e-6).all()
        places.append(readers[0].name if one else param.name)
    return places


def within(ops):
    """What `ops` are functions of. A search for a function's values may end where it is flat; one for what it is of does not."""
    return [op.operands[0] if op.kind == "function" else op for op in ops]


def fitted(draws, names, rows, rng, attempts=4, steps=60, one=False, goals=None):
    """For each draw of `rows`, the least gap that changes of the parameters `names` were found to leave; none where these
    are too many. With `one` it is enough that one draw has a gap; with `goals`, these are looked for in the outputs' place."""
    # What the context is read with stays as it is, also where it is read again.
    names = [name for name in names if name in draws.parameters and name not in draws.block.contextual()]
    if not names:
        return draws.gap(draws.parameters)[rows]
    whole = [draws.block.parameters()[name].name for name in names]
    gaps, left = np.full(len(rows), np.inf), np.arange(len(rows))
    for places in (places_of(draws, names), whole):
        search = Search(draws, places, draws.values, goals)
        if search.start.shape[1] * draws.wanted.shape[1] > MOST:
            return None
        points, errors = search.least(rows[left], attempts, rng, steps, one)
        every = search.start.copy()
        every[rows[left]] = points
        found = errors < EXACT
        if found.any():
            errors[found] = draws.gap(given(draws, search.split(every[:, None]), draws.parameters))[rows[left[found]]]
        gaps[left] = errors
        left = left[found & (errors > EXACT)]  # results that no parameters give
        if not left.size:
            break
    return gaps


def fails_of(claim):
    """Where the conditions of a success fail."""
    instances = [*claim["cut"], *(each for group in claim["outputs"] for each in group["patches"] + group["divisors"])]
    return {each.get("fails") for each in instances}


def is_false_success(block, claim, layer, seed, attempts=4, steps=60):
    """Whether a patch that should be exact is not, and no other change of the same parameters is."""
    # Where ctxc writes a form of several ops as one, the claim has names of its own.
    known = {each["op"] for each in claim["cut"]} | {each["op"] for group in claim["outputs"] for each in group["patches"]}
    is_same = known <= {op.name for op in block.ops}
    # Of these draws one need hold where that is a condition, and else all.
    conditional = "open-set" in fails_of(claim)
    wrong = count = 0
    for first, number in ((0, 4), (4, 20), (24, 76)) if conditional else ((0, 2 if block.x.shape[0] > LARGE else 6),):
        draws = Draws(block, layer, np.random.default_rng([seed, first]), claim, [(1.0, 1.0)] * number, first)
        gaps = draws.gap(patched(draws, claim, attempts)) if is_same else np.full(number, np.inf)
        off = draws.usable[draws.changed()[draws.usable] & ~(gaps[draws.usable] < EXACT)]
        count += len(draws.usable)
        if not off.size or (conditional and len(off) < len(draws.usable)):
            return False
        if off.size:
            gaps = fitted(draws, claim["parameters"], off, np.random.default_rng(seed), attempts, steps)
            if gaps is not None and (left := gaps > EXACT).any():
                inner = fitted(draws, claim["parameters"], off[left], np.random.default_rng(seed), attempts, steps, goals=within(block.outputs))
                gaps[left] = np.minimum(gaps[left], inner)
            # A search may end a little before a root, as derivatives by differences are not exact.
            wrong += 0 if gaps is None else np.count_nonzero(gaps > 10 * EXACT)
        if conditional and wrong < count:
            return False
    return wrong == count > 0 if conditional else wrong > 0


def is_false_null_set(block, claim, layer, seed, count=24):
    """Whether numbers of float32 that a success divides by, but for a null set, are zero for several weights. These are
    small and large, since functions saturate."""
    needs = [each for group in claim["outputs"] for each in group["patches"] + group["divisors"]] + claim["cut"]
    needs = [each for each in needs if each.get("fails") == "null-set" and each.get("needs") in ("nonzero-elements", "nonzero-vector")]
    if not needs:
        return False
    sizes = [(1.0, float(size)) for size in (1, 4, 16, 64)] * (count // 4)
    draws = Draws(block, layer, np.random.default_rng(seed), claim, sizes)
    parameters = {name: drawn.astype(np.float32) for name, drawn in draws.parameters.items()}
    values = block.evaluate(parameters, draws.own.astype(np.float32), HERE, layer, np.float32)
    for each in needs:
        zeros = values[each["of"]].reshape(count, -1) == 0 if each["of"] in values else np.zeros((count, 1), bool)
        # That many entries vanish at once, ctxc leaves out.
        failed = zeros.any(1) if each["needs"] == "nonzero-elements" else zeros.all(1) & (zeros.shape[1] <= FEW)
        if failed.sum() > 1:
            return True
    return False


def is_false_rejection(block, claim, layer, seed):
    """Whether some patch is exact for all weights that were drawn, with a small context and a large one."""
    count = 0
    # One number has the right side for half of all weights, and where others make it large, for nearly all.
    sizes = ((1.0, 1.0), (16.0, 1.0), (64.0, 1.0), (1.0, 1 / 16), (16.0, 1 / 16), (1.0, 16.0))
    for first, number in ((0, 2), (2, 3), (5, 15), (20, 20), (40, 200), (240, 800)):
        own = [sizes[(first + i) % len(sizes)] for i in range(number)]
        draws = Draws(block, layer, np.random.default_rng([seed, first]), claim, own, first)
        count += len(draws.usable)
        rows = draws.usable[draws.changed()[draws.usable]]
        gaps = fitted(draws, claim["patchable"], rows, np.random.default_rng(seed), one=True) if rows.size else np.zeros(0)
        if gaps is None or (gaps > EXACT).any():
            return False
    return count > 0


@np.errstate(all="ignore")
def judge(block, claim, layer, seed):
    """What is false about a claim; empty where nothing is found to be."""
    verdict = claim["verdict"]
    if verdict in ("controllable", "output-only") and "parameters" in claim:
        # Few patches are not found at once; for these it is worth to look longer.
        if is_false_success(block, claim, layer, seed) and is_false_success(block, claim, layer, seed, 24, 300):
            return "a patch that should be exact is not"
        if "constant" not in "".join(op.flags for op in block.parameters().values()) and is_false_null_set(block, claim, layer, seed):
            return "a divisor that should be zero on a null set is zero for several weights"
    if verdict == "rejected" and is_false_rejection(block, claim, layer, seed):
        return "patches are exact for all weights that were drawn"
    return ""
