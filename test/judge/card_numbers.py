"""The numbers of a card, computed again from the logits of whatever runs the three models."""
import numpy as np


def log_softmax(logits):
    logits = np.asarray(logits, np.float64)
    logits = logits - logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def numbers(logits_of, lines):
    """`logits_of(name, line)`, of the tokens before each of the line's answer, by the models full, without and adapted."""
    kl = {"without": [], "adapted": []}
    same = {"without": [], "adapted": []}
    loss = {"full": [], "without": [], "adapted": []}
    right = {"full": [], "without": [], "adapted": []}
    before = {"without": [], "adapted": []}
    for line in lines:
        answer = np.array(line["answer"])
        runs = {name: log_softmax(logits_of(name, line)) for name in loss}
        full = runs["full"]
        for name, found in runs.items():
            loss[name] += (-found[np.arange(len(answer)), answer]).tolist()
            right[name] += (found.argmax(-1) == answer).tolist()
        for name in kl:
            kl[name] += (np.exp(full) * (full - runs[name])).sum(-1).tolist()
            agrees = (full.argmax(-1) == runs[name].argmax(-1)).tolist()
            same[name] += agrees
            before[name].append((agrees + [False]).index(False))
    mean = lambda values: sum(values) / len(values)
    result = {"share_recovered": 1 - sum(kl["adapted"]) / sum(kl["without"])}
    for name in kl:
        result[f"all.kl_{name}"] = mean(kl[name])
        result[f"all.same_token_{name}"] = mean(same[name])
        result[f"tokens_before_first_other.{name}"] = mean(before[name])
    for name, values in loss.items():
        result[f"own_token.{name}"] = mean(right[name])
        result[f"perplexity.{name}"] = float(np.exp(mean(values)))
    return result


def card_value(card, name):
    for key in name.split("."):
        card = card[key]
    return card


def differences(card, expected):
    """Of each number, from the card's."""
    return {name: abs(card_value(card, name) - value) / max(1, abs(value)) for name, value in expected.items()}
