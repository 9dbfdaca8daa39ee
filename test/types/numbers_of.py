"""A verdict compared with numbers: transformers runs the model with the context; then, for one token alone, each layer's
parameters that the plan names are changed until the layer gives what it gave with the context.

All is computed in float64 from random weights. The changes are solved for from Jacobians that autograd computes, so that
nothing here knows any architecture, or how ctxc computes a patch.

- *inside*: the parameters before the nonlinearity bring the modules that they belong to to what these give with the
  context; then the module behind reads what it reads with the context. Claimed of controllable blocks alone.
- *logits*: the parameters behind bring each layer's result to what it is with the context."""
import math

import torch

TOKENS = 13
# Types of models that make the least number of float64 a number of the default type.
ALL_DOUBLE = ("xglm",)


class Stop(Exception):
    """Ends a run of the model where what is wanted of it is known."""


def random_model(config):
    """A model of `config` whose weights are of one scale, so that every part of it matters. They are numbers of
    float32."""
    from ctxc.export import causal_model
    torch.set_default_dtype(torch.float32)
    torch.manual_seed(0)
    model = causal_model(config, attn_implementation="eager", experts_implementation="eager").eval().double()
    generator = torch.Generator().manual_seed(3)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(False)
        if not parameter.is_floating_point():
            continue
        noise = torch.randn(parameter.shape, generator=generator).double()
        if parameter.dim() < 2:
            parameter.add_(0.2 * noise)
        elif "A_log" not in name and "conv" not in name:
            parameter.copy_(noise / math.sqrt(parameter.shape[-1]))
    if config.model_type in ALL_DOUBLE:
        torch.set_default_dtype(torch.float64)
    return model.float().double()


def tensor_of(value):
    return value if isinstance(value, torch.Tensor) else tensor_of(value[0])


def last_of(value, tokens):
    """The last token's part of what a module reads or gives: its axis of tokens is the second, the first where
    sequences are one after the other, or the only one of that length, as where several streams lie in front."""
    value = tensor_of(value)
    if value.dim() >= 2 and value.shape[0] == 1 and value.shape[1] == tokens:
        return value[:, -1].reshape(-1)
    if value.shape[0] == tokens:
        return value[-1].reshape(-1)
    axes = [axis for axis, size in enumerate(value.shape) if size == tokens]
    if tokens == 1 or len(axes) == 1:
        return value.select(axes[0], -1).reshape(-1) if axes else value.reshape(-1)
    raise ValueError(f"a module's value has the shape {tuple(value.shape)} for {tokens} tokens")


def token_ids():
    generator = torch.Generator().manual_seed(5)
    return torch.randint(3, 100, (1, TOKENS), generator=generator)


class Judge:
    def __init__(self, model, takes_positions):
        self.model, self.takes_positions = model, takes_positions
        self.ids = token_ids()
        self.parameters = dict(model.named_parameters())

    def run(self, length, watched=(), stop=None):
        """The logits of the last token, from the last `length` tokens; and of each of `watched` modules what it reads
        and gives at the last token. Ends behind module `stop`."""
        seen, hooks = {}, []

        def watch(name):
            def hook(module, given, keywords, result):
                first = given[0] if given else keywords.get("hidden_states", next(iter(keywords.values()), None))
                try:
                    read = last_of(first, length)
                except (ValueError, TypeError, IndexError):
                    read = None
                seen[name] = (read, last_of(result, length))
                if name == stop:
                    raise Stop
            return hook
        for name in {*watched, *([stop] if stop else [])}:
            hooks.append(self.model.get_submodule(name).register_forward_hook(watch(name), with_kwargs=True))
        arguments = {"input_ids": self.ids[:, -length:], "use_cache": False}
        if self.takes_positions:
            from ctxc.export import first_position
            first = first_position(self.model)
            arguments["position_ids"] = torch.arange(first + TOKENS - length, first + TOKENS).unsqueeze(0)
        try:
            logits = last_of(self.model(**arguments).logits, length)
        except Stop:
            logits = None
        finally:
            for hook in hooks:
                hook.remove()
        return logits, seen

    def solve(self, names, module, target, rounds=8):
        """Changes the parameters `names` so that `module` gives `target` for the one token; the largest difference
        that is left, by the target's size."""
        chosen = [self.parameters[name] for name in names]
        scale = float(target.abs().max()) or 1.0
        for step in range(rounds + 1):
            for parameter in chosen:
                parameter.requires_grad_(step < rounds)
            with torch.set_grad_enabled(step < rounds):
                given = self.run(1, stop=module)[1][module][1]
                entries = given.unbind()
            gap = (target - given).detach()
            left = float(gap.abs().max()) / scale
            if step == rounds or left < 1e-12:
                break
            rows = []
            for entry in entries:
                gradients = torch.autograd.grad(entry, chosen, retain_graph=True, allow_unused=True)
                rows.append(torch.cat([torch.zeros_like(p).reshape(-1) if g is None else g.reshape(-1)
                                       for g, p in zip(gradients, chosen)]))
            jacobian = torch.stack(rows)
            gram = jacobian @ jacobian.T
            change = jacobian.T @ (torch.linalg.pinv(gram, rtol=1e-13, hermitian=True) @ gap)
            for parameter in chosen:
                parameter.requires_grad_(False)
                size = parameter.numel()
                parameter.add_(change[:size].reshape(parameter.shape))
                change = change[size:]
        for parameter in chosen:
            parameter.requires_grad_(False)
        return left

    def difference(self, module, target):
        """How far what `module` gives for the one token is from `target`, by the target's size."""
        given = self.run(1, stop=module)[1][module][1]
        return float((target - given).abs().max()) / (float(target.abs().max()) or 1.0)

    def solve_by_some(self, names, module, seen):
        """solve with the last of the parameters alone where that suffices, as it does behind a norm whose scale is the
        last: together they are not affine, and steps of Newton's would go on for long. Where the rest of the layer is no
        affine function of what the parameters' own module gives, that module is given what it gives with the context."""
        own = owner(names[-1])
        attempts = [([names[-1]], module), (names, module)]
        if own in seen and all(owner(name) == own for name in names):
            attempts.append((names, own))
        found = []
        for chosen, solved in attempts:
            before = [self.parameters[name].clone() for name in names]
            self.solve(chosen, solved, seen[solved][1])
            left = self.difference(module, seen[module][1])
            if left < 1e-9:
                return left
            found.append((left, [self.parameters[name].clone() for name in names]))
            for name, value in zip(names, before):
                self.parameters[name].copy_(value)
        # A model that computes its norms in float32 comes no closer than that.
        left, values = min(found, key=lambda each: each[0])
        for name, value in zip(names, values):
            self.parameters[name].copy_(value)
        return left


def owner(parameter):
    return parameter.rpartition(".")[0]


def judge(model, takes_positions, layers):
    """`layers` has for each layer its module's path, its verdict, and the plan's parameters by their whole names, those
    before the nonlinearity ("input") and behind ("output"). What was measured, as a dictionary."""
    with torch.no_grad():
        judge = Judge(model, takes_positions)
        watched = {layer["path"] for layer in layers}
        watched |= {owner(name) for layer in layers for side in ("input", "output") for name in layer[side]}
        full, seen = judge.run(TOKENS, watched)
        unpatched, _ = judge.run(1)
        worst = {"inside": 0.0, "layer": 0.0, "insides": 0}
        for layer in layers:
            behind = owner(layer["output"][0])
            # What parameters before the nonlinearity can be judged by their modules' results?
            before = [name for name in layer["input"] if owner(name) in seen]
            # Experts are one module, of which nobody sees the inside.
            is_apart = behind in seen and seen[behind][0] is not None and behind not in map(owner, before) and \
                all(judge.parameters[name].dim() <= 2 for name in layer["input"])
            if layer["verdict"] == "controllable" and is_apart and before:
                for module in dict.fromkeys(owner(name) for name in before):
                    own = [name for name in before if owner(name) == module]
                    judge.solve(own, module, seen[module][1], rounds=2)
                read = judge.run(1, stop=behind)[1][behind][0]
                if read is not None and read.shape == seen[behind][0].shape:
                    expected = seen[behind][0]
                    worst["inside"] = max(worst["inside"], float((read - expected).abs().max() / expected.abs().max()))
                    worst["insides"] += 1
            left = judge.solve_by_some(layer["output"], layer["path"], seen)
            worst["layer"] = max(worst["layer"], left)
        patched, _ = judge.run(1)
        return {**worst, "patched": float((patched - full).abs().max()), "control": float((unpatched - full).abs().max())}
