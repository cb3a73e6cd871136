"""Random expressions of the language as data, written in symbols with any letters and order of axes, or computed by plain Python loops."""

import cmath
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
from sympy import Ge, KroneckerDelta, Lt, Naturals0, Piecewise, Sum, exp, log, tanh

from odesim.symbolic import IndexedBase, MaxOver, Param, System, index, named, over, sizes, softmax
from tests.support.systems import SOURCE, param

SIZES = {"N": 3, "M": 2}
SYMBOLS = dict(zip("NM", sizes("N M"), strict=True))
ARRAYS = {"x": "N", "u": "M", "A": "NN", "B": "NM", "w": "N", "W": "NN", "E": "MN", "G": "NNM"}
ROWS = {"psi": ("N", "N"), "phi": ("M", "N")}
"""Parameters that name rows: {name: (their axis, the axis whose rows they name)}."""
LETTERS = {"periodic": "i i_1 i_2 k a", "zero": "j j_1 l l_1 b", "edge": "m m_1 m_2 n c"}
"""{boundary: names of indices}, with some that generated code might make of others."""
BOUNDARY = {index(name)[0]: kind for kind, names in LETTERS.items() for name in names.split()}
KINDS = ["element", "product", "sum", "function", "over", "over", "largest", "delta", "choice", "softmax", "again", "again"]
FUNCTIONS = {
    "tanh": (tanh, cmath.tanh),
    "log": (lambda x: log(4 + x**2), lambda x: cmath.log(4 + x * x)),
    "gauss": (lambda x: exp(-(x**2)), lambda x: cmath.exp(-x * x)),
}


@dataclass(frozen=True)
class Index:
    """An index of its own: the axis, and what stands beyond the ends of it."""

    number: int
    axis: str
    beyond: str


Node = tuple[Any, ...]
Place = tuple[Any, ...]


class Draw:
    """Random expressions. A Node is (kind, ...), a Place ("at", index), ("beside", index, c), ("number", n) or ("row", psi, index)."""

    def __init__(self, seed: int, depth: int):
        self.rng, self.depth = np.random.default_rng(seed), depth
        self._numbers = count()
        self.arrays = self.pick(("xuABwWEG", "xAwW", "xAA"))
        self.layers: dict[str, tuple[tuple[Index, ...], Node]] = {}
        self.past: list[Node] = []
        for n in range(int(self.rng.integers(3))):
            self._layer(f"h{n}", depth - 1)

    def index(self, axis: str) -> Index:
        return Index(next(self._numbers), axis, self.pick(sorted(LETTERS)))

    def pick(self, choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def place(self, scope: list[Index], axis: str, rows: bool = True) -> Place:
        fit, way = [i for i in scope if i.axis == axis], self.rng.random()
        sources = [(name, i) for name, (own, to) in ROWS.items() for i in scope if rows and to == axis and own == i.axis]
        if way < 0.15 and sources:
            return ("row", *self.pick(sources))
        if not fit or way < 0.2:
            return ("number", int(self.rng.integers(SIZES[axis])))
        return ("beside", self.pick(fit), int(self.pick((-2, -1, 1, 2)))) if way < 0.45 else ("at", self.pick(fit))

    def element(self, scope: list[Index]) -> Node:
        name = self.pick([*self.arrays, *self.layers])
        axes = ARRAYS[name] if name in ARRAYS else [i.axis for i in self.layers[name][0]]
        return ("element", name, tuple(self.place(scope, axis, name in ARRAYS) for axis in axes))

    def node(self, scope: list[Index], depth: int) -> Node:
        made = self._node(scope, depth)
        if depth and free(made):
            self.past.append(made)
        return made

    def turned(self, node: Node) -> Node:
        """A Node with its free indices in other places."""
        own = sorted(free(node), key=lambda i: i.number)
        return replaced(node, {i: self.pick([k for k in own if k.axis == i.axis]) for i in own})

    def again(self, scope: list[Index]) -> Node | None:
        """An earlier Node at other indices."""
        fits = [node for node in self.past[-8:] if {i.axis for i in free(node)} <= {i.axis for i in scope}]
        if not fits:
            return None
        node, swap = self.pick(fits), {}
        for i in sorted(free(node), key=lambda i: i.number):
            swap[i] = self.pick([k for k in scope if k.axis == i.axis])
        return replaced(node, swap)

    def _node(self, scope: list[Index], depth: int) -> Node:
        kind = self.pick(KINDS) if depth else "element"
        if kind in ("product", "sum"):
            return (kind, *(self.node(scope, depth - 1) for _ in range(2)))
        if kind == "function":
            return (kind, self.pick(sorted(FUNCTIONS)), self.node(scope, depth - 1))
        if kind in ("over", "largest", "softmax"):
            k = self.index(self.pick("NNM"))
            inside = [i for i in scope if i.axis == k.axis]
            limit: Any = None
            if inside and kind != "softmax" and self.rng.random() < 0.8:
                side = self.pick(("to", "from")) if kind == "over" else "to"
                shift = 0 if kind == "largest" else int(self.pick((0, 0, 1, 2)))
                limit = (side, self.pick(inside), -shift if side == "to" else shift)
            apart = limit is not None and self.rng.random() < 0.7  # a partial sum: its summand lacks the limit
            return (kind, k, limit, self.node([*(i for i in scope if not apart or i != limit[1]), k], depth - 1))
        if kind == "delta" and len(scope) > 1:
            a = self.pick(scope)
            return ("product", ("delta", a, self.place([i for i in scope if i != a], a.axis)), self.node(scope, depth - 1))
        if kind == "choice" and len(scope) > 1:
            return ("choice", self.pick(scope), self.pick(scope), self.node(scope, depth - 1), self.node(scope, depth - 1))
        if kind == "again" and (node := self.again(scope)) is not None:
            return node
        return self.element(scope)

    def _layer(self, name: str, depth: int) -> None:
        if self.layers and self.rng.random() < 0.3:  # one that is equal but for its indices and the order of its axes
            first, node = self.pick(list(self.layers.values()))
            swap = {i: Index(next(self._numbers), i.axis, i.beyond) for i in first}
            self.layers[name] = tuple(swap[first[n]] for n in self.rng.permutation(len(first))), replaced(node, swap)
            return
        along = tuple(self.index(axis) for axis in self.pick(("N", "NN", "NM")))
        self.layers[name] = along, self.node(list(along), depth)

    def numbers(self) -> dict[str, Any]:
        """Values of all arrays."""
        values: dict[str, Any] = {name: 0.7 * self.rng.normal(size=[SIZES[axis] for axis in axes]) for name, axes in ARRAYS.items()}
        return values | {name: self.rng.integers(SIZES[to], size=SIZES[own]) for name, (own, to) in ROWS.items()}

    def turns(self, turned: bool) -> dict[str, tuple[int, ...]]:
        """{array: an order of its axes}: random ones, or those as they are."""
        ranks = {name: len(axes) for name, axes in ARRAYS.items()} | {name: len(along) for name, (along, _) in self.layers.items()}
        return {name: tuple(map(int, self.rng.permutation(rank))) if turned else tuple(range(rank)) for name, rank in ranks.items()}


def free(node: Any) -> frozenset[Index]:
    """The indices of a Node that it does not sum over."""
    if isinstance(node, Index):
        return frozenset((node,))
    if not isinstance(node, tuple):
        return frozenset()
    inside = frozenset[Index]().union(*map(free, node))
    return inside - {node[1]} if node[0] in ("over", "largest", "softmax") else inside


def replaced(node: Any, swap: Mapping[Index, Index]) -> Any:
    """A Node with free indices in the places of others."""
    if isinstance(node, Index):
        return swap.get(node, node)
    return tuple(replaced(part, swap) for part in node) if isinstance(node, tuple) else node


@dataclass
class Writer:
    """Expressions in symbols. letters: {index: symbol}, of summed ones drawn anew; turns: {array: the order of its axes}."""

    rng: np.random.Generator
    layers: Mapping[str, tuple[tuple[Index, ...], Node]]
    turns: Mapping[str, tuple[int, ...]]
    _made: dict[str, Any] = field(default_factory=dict)

    def letter(self, k: Index, taken: set[str]) -> Any:
        choices = [name for name in LETTERS[k.beyond].split() if name not in taken]
        return index(choices[int(self.rng.integers(len(choices)))])[0]

    def base(self, name: str) -> Any:
        if name not in self._made:
            if name in self.layers:
                along, node = self.layers[name]
                letters: dict[Index, Any] = {}
                for i in along:
                    letters[i] = self.letter(i, {s.name for s in letters.values()})
                axes = self.turned(name, [(letters[i], SYMBOLS[i.axis]) for i in along])
                self._made[name] = named(name, self(node, letters), *axes)
            else:
                shape = ARRAYS[name] if name in ARRAYS else ROWS[name][0]
                self._made[name] = IndexedBase(name, shape=self.turned(name, [SYMBOLS[axis] for axis in shape]))
        return self._made[name]

    def turned(self, name: str, parts: Any) -> tuple[Any, ...]:
        return tuple(parts[n] for n in self.turns.get(name, range(len(parts))))

    def place(self, p: Place, letters: Mapping[Index, Any]) -> Any:
        if p[0] == "number":
            return p[1]
        if p[0] == "row":
            return self.base(p[1])[letters[p[2]]]
        return letters[p[1]] + (p[2] if p[0] == "beside" else 0)

    def __call__(self, node: Node, letters: Mapping[Index, Any]) -> Any:
        kind, *parts = node
        if kind == "element":
            name, places = parts
            return self.base(name)[self.turned(name, [self.place(p, letters) for p in places])]
        if kind in ("product", "sum"):
            a, b = (self(part, letters) for part in parts)
            return a * b if kind == "product" else a + b
        if kind == "function":
            return FUNCTIONS[parts[0]][0](self(parts[1], letters))
        if kind == "delta":
            a, p = parts
            other = self.place(p if p[0] != "beside" else ("at", p[1]), letters)
            return KroneckerDelta(letters[a], other)
        if kind == "choice":
            a, b, yes, no = parts
            return Piecewise((self(yes, letters), Lt(letters[a], letters[b])), (self(no, letters), True)) if a != b else self(no, letters)
        k, limit, body = parts
        j = self.letter(k, {letters[i].name for i in free(node)})
        inside, n = self(body, {**letters, k: j}), SYMBOLS[k.axis]
        if kind == "softmax":
            return over(Sum, softmax(inside, (j, n)) * inside, (j, n))
        if limit is None:
            return over(Sum if kind == "over" else MaxOver, inside, (j, n))
        side, i, shift = limit
        if side == "to":
            return over(Sum if kind == "over" else MaxOver, inside, (j, letters[i] + shift + 1))
        if inside.has(Piecewise):  # sympy's Sum would take it out, past the index of a sum inside
            return over(Sum, Piecewise((inside, Ge(j, letters[i] + shift)), (0, True)), (j, n))
        return Sum(inside, (j, letters[i] + shift, n - 1))


def beside(i: Index, place: int) -> int | None:
    """The place on the axis of an index, or None where an array is 0."""
    n = SIZES[i.axis]
    if i.beyond == "periodic":
        return place % n
    if i.beyond == "edge":
        return min(max(place, 0), n - 1)
    return place if 0 <= place < n else None


@dataclass
class Loops:
    """Values of expressions, by recursion over numbers. values: {array: numbers}, complex ones where derivatives are wanted."""

    values: Mapping[str, Any]
    layers: Mapping[str, tuple[tuple[Index, ...], Node]]

    def place(self, p: Place, env: Mapping[Index, int]) -> int | None:
        if p[0] == "number":
            return int(p[1])
        if p[0] == "row":
            return int(self.values[p[1]][env[p[2]]])
        return env[p[1]] if p[0] == "at" else beside(p[1], env[p[1]] + p[2])

    def element(self, name: str, places: tuple[int, ...]) -> Any:
        if name not in self.layers:
            return self.values[name][places]
        along, node = self.layers[name]
        return self(node, dict(zip(along, places, strict=True)))

    def steps(self, k: Index, limit: Any, env: Mapping[Index, int]) -> range:
        if limit is None:
            return range(SIZES[k.axis])
        side, i, shift = limit
        return range(env[i] + shift + 1) if side == "to" else range(env[i] + shift, SIZES[k.axis])

    def __call__(self, node: Node, env: Mapping[Index, int]) -> Any:
        kind, *parts = node
        if kind == "element":
            places = tuple(self.place(p, env) for p in parts[1])
            return 0.0 if None in places else self.element(parts[0], places)  # type: ignore[arg-type]
        if kind == "product":
            return self(parts[0], env) * self(parts[1], env)
        if kind == "sum":
            return self(parts[0], env) + self(parts[1], env)
        if kind == "function":
            return FUNCTIONS[parts[0]][1](self(parts[1], env))
        if kind == "delta":
            a, p = parts
            return float(env[a] == self.place(p if p[0] != "beside" else ("at", p[1]), env))
        if kind == "choice":
            a, b, yes, no = parts
            return self(yes if env[a] < env[b] else no, env)
        k, limit, body = parts
        terms = [self(body, {**env, k: n}) for n in self.steps(k, limit, env)]
        if kind == "over":
            return sum(terms)
        if kind == "largest":
            return max(terms, key=lambda z: complex(z).real)
        top = max(complex(z).real for z in terms)
        weights = [cmath.exp(z - top) for z in terms]
        return sum(w * z for w, z in zip(weights, terms, strict=True)) / sum(weights)


def written_system(writer: Writer, equations: Mapping[Any, Any], axes: Mapping[Any, Any]) -> System:
    """The System of equations {element: right-hand side}; all arrays without one are parameters."""
    states = {str(key.base.label) for key in equations}
    rows = (Param(writer.base(name), 0, Naturals0, "rows", indexes=SYMBOLS[to], cover=False) for name, (_, to) in ROWS.items())
    return System(
        name="test.written",
        source=SOURCE,
        axes=dict(axes),
        equations=dict(equations),
        params=(*(param(writer.base(name)) for name in ARRAYS if name not in states), *rows),
        initial=dict.fromkeys(equations, 0.1),
        sizes={SYMBOLS[axis]: n for axis, n in SIZES.items()},
        boundary=BOUNDARY,
    )


def turned_numbers(values: Mapping[str, Any], turns: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """Values of arrays whose axes are in another order."""
    return {name: np.ascontiguousarray(a.transpose(turns.get(name, range(a.ndim)))) for name, a in values.items()}
