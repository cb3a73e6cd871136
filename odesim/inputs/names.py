"""The names that a typed expression may use: what each one of a System stands for."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sympy as sp
from sympy import Expr, IndexedBase, Symbol

from odesim.symbolic.indices import index, time
from odesim.symbolic.parts import key_indices
from odesim.symbolic.reductions import at, free_indices
from odesim.symbolic.system import System


@dataclass(frozen=True)
class Thing:
    """The meaning of a name: a number or an array as an expression at these indices, or an index.

    extents: of its axes; () for a number. indexes: of an index parameter, the extent of the axis whose places it names.
    obstacle: why it cannot be used. changes: whether it is a state, or what a state's array is called.
    """

    name: str
    expression: Any = None
    own: tuple[Symbol, ...] = ()
    extents: tuple[Any, ...] = ()
    index: Symbol | None = None
    indexes: Any = None
    obstacle: str = ""
    changes: bool = False

    def at(self, indices: tuple[Any, ...]) -> Expr:
        """The expression at these indices."""
        if isinstance(self.expression, IndexedBase):
            return self.expression[indices]  # type: ignore[no-any-return]
        return at(self.expression, dict(zip(self.own, indices, strict=True))) if indices else self.expression

    @property
    def example(self) -> str:
        """How an element is written."""
        return f"{self.name}[{', '.join(map(str, self.own)) or ', '.join('0' for _ in self.extents)}]"

    def own_indices(self) -> tuple[Symbol, ...]:
        """Different indices that run over its axes."""
        return self.own or index(" ".join(f"i{n}" for n in range(len(self.extents))))


@dataclass(frozen=True)
class Names:
    """The things by name: time, states, parameters, sizes, observables, indices. boundary: {index: what is beyond its ends}."""

    things: dict[str, Thing]
    axes: dict[Symbol, Any]
    boundary: dict[str, str]

    @classmethod
    def of(cls, system: System) -> "Names":
        """The names of a System."""
        axes = dict(system.axes)
        sizes = {s for n in (*axes.values(), *(d for p in system.params for d in p.shape)) for s in sp.sympify(n).free_symbols}
        found = [Thing(time.name, time), *(Thing(s.name, s) for s in sorted(sizes, key=str))]
        for key in system.equations:
            own = key_indices(key)
            name, extents = (str(key.base.label) if own else str(key)), tuple(axes[i] for i in own)
            found.append(Thing(name, key, own, extents, changes=True))
        for p in system.params:
            over = [next((i for i, n in axes.items() if sp.expand(n - extent) == 0), None) for extent in p.shape]
            own = tuple(i for i in over if i is not None)
            own = own if len(set(own)) == len(p.shape) else ()
            found.append(Thing(p.name, p.symbol, own, tuple(p.shape), indexes=p.indexes))
        for name, e in system.observables.items():
            if isinstance(e, sp.Basic):
                own = system.observable_indices(name)
                found.append(Thing(name, e, own, tuple(axes[i] for i in own)))
            else:
                found.append(Thing(name, obstacle=f"the observable {name} is a Python function: an event needs an expression"))
        found += [Thing(i.name, index=i) for i in axes]
        return cls({thing.name: thing for thing in found}, axes, {i.name: kind for i, kind in system.boundary.items()})

    def __contains__(self, name: str) -> bool:
        return name in self.things

    def __getitem__(self, name: str) -> Thing:
        return self.things[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name, thing in self.things.items() if not thing.obstacle)

    def indices_over(self, extent: Any) -> list[str]:
        """Names of the indices that run over axes of this extent."""
        return [i.name for i, n in self.axes.items() if sp.expand(n - extent) == 0]

    def index_of(self, name: str) -> Symbol | None:
        """The index with this name; None where it is none."""
        return self.things[name].index if name in self.things else None

    def free_in(self, e: Expr) -> dict[Symbol, Any]:
        """{index: extent} of the indices of e that no sum inside it binds."""
        free = free_indices(e, set(self.axes))
        return {i: extent for i, extent in self.axes.items() if i in free}
