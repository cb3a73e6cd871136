"""Right-hand sides of masked sampling, by going through sequences, masks and redraws one at a time."""

from itertools import combinations, product
from typing import Any

import numpy as np

Arrays = dict[str, Any]
Sequence = tuple[int, ...]


def redraws(p: dict[Sequence, float], k: int, *, together: bool) -> dict[tuple[Sequence, Sequence], float]:
    """The probability of each step: k masked tokens drawn together, or each from its own law given those that are not masked."""
    n, found = len(next(iter(p))), dict.fromkeys(product(p, p), 0.0)
    masks = list(combinations(range(n), k))
    for x, mask in product(p, masks):
        near = [y for y in p if all(y[i] == x[i] for i in range(n) if i not in mask)]
        total = sum(p[y] for y in near)
        for y in near:
            tokens = [sum(p[z] for z in near if z[i] == y[i]) / total for i in mask]
            found[x, y] += (p[y] / total if together else float(np.prod(tokens))) / len(masks)
    return found


def table(p: np.ndarray, q: int) -> dict[Sequence, float]:
    """{sequence: probability} of a list in lexicographic order."""
    n = 0
    while q**n < len(p):
        n += 1
    return dict(zip(product(range(q), repeat=n), map(float, p), strict=True))


def gibbs(*, together: bool) -> Any:
    """d pi / dt of all sequences."""

    def flow(t: float, y: Arrays, q: Arrays) -> Arrays:
        step = redraws(table(q["p"], int(q["q"])), int(q["k"]), together=together)
        states = list(table(q["p"], int(q["q"])))
        return {"pi": np.array([sum(y["pi"][j] * step[z, x] for j, z in enumerate(states)) for x in states]) - y["pi"]}

    return flow


def gibbs_lumped(t: float, y: Arrays, q: Arrays) -> Arrays:
    """By the chain of all sequences, started evenly among those with m ones."""
    n = len(y["pi"]) - 1
    p = {x: float(np.exp(q["log_w"][sum(x)])) for x in product(range(2), repeat=n)}
    many, rate = [sum(sum(x) == m for x in p) for m in range(n + 1)], np.zeros(n + 1)
    for (x, z), step in redraws(p, int(q["k"]), together=True).items():
        rate[sum(z)] += step * y["pi"][sum(x)] / many[sum(x)]
    return {"pi": rate - y["pi"]}


def gibbs_training(t: float, y: Arrays, q: Arrays) -> Arrays:
    """The mean of F(x) less its mean under theta given what is not masked, over x and masks."""
    true, F = table(q["p"], 2), dict(zip(product(range(2), repeat=int(np.log2(len(q["p"])))), q["F"].T, strict=True))
    weight = {x: float(np.exp(y["theta"] @ F[x])) for x in true}
    step = redraws(weight, int(q["k"]), together=True)
    return {"theta": sum(true[x] * (F[x] - sum(step[x, z] * F[z] for z in true)) for x in true)}


def mask_predict(t: float, y: Arrays, q: Arrays) -> Arrays:
    """The law after step t: each of k[t] masked tokens drawn by itself; after the last step nothing changes."""
    if t >= len(q["k"]):
        return {"pi": y["pi"]}
    law = table(q["p"], int(q["q"]))
    step, states = redraws(law, int(q["k"][int(t)]), together=False), list(law)
    return {"pi": np.array([sum(y["pi"][j] * step[z, x] for j, z in enumerate(states)) for x in states])}


def unmask(t: float, y: Arrays, q: Arrays) -> Arrays:
    """The law after step t: tokens of earlier steps stay, each other one is drawn from its law given those."""
    if t >= len(q["K"]):
        return {"pi": y["pi"]}
    law, shown = table(q["p"], int(q["q"])), [j for j, when in enumerate(q["step"]) if when < t]
    found = dict.fromkeys(law, 0.0)
    for (before, mass), after in product(zip(law, y["pi"], strict=True), law):
        if all(before[j] == after[j] for j in shown):
            near = {z: chance for z, chance in law.items() if all(z[j] == after[j] for j in shown)}
            for j in set(range(len(after))) - set(shown):
                mass *= sum(chance for z, chance in near.items() if z[j] == after[j]) / sum(near.values())
            found[after] += mass
    return {"pi": np.array(list(found.values()))}
