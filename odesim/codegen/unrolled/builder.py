"""Builds straight-line code: each operation gets a name, equal operations the same one."""

from collections.abc import Mapping

from odesim.ir.scalars import Code, Operand, Operation, is_number


class CodeBuilder:
    """Straight-line code under construction, named by a letter and a number; constants are folded, products with one are left out."""

    def __init__(self, letter: str) -> None:
        self.code: Code = {}
        self._letter, self._known = letter, dict[Operation, str]()

    def name(self, function: str, *operands: Operand, fresh: bool = False) -> str:
        """The name of an operation. fresh: a new name even if an equal operation has one."""
        operation = Operation(function, operands)
        found = None if fresh else self._known.get(operation)
        if found is None:
            found = f"{self._letter}{len(self.code)}"
            self.code[found] = operation
            self._known.setdefault(operation, found)
        return found

    def write(self, operand: Operand, known: Mapping[str, str], fresh: bool = False) -> str:
        """The name or number of an expression in which names stand for earlier operands; each of its operations gets a name."""
        match operand:
            case str():
                return known.get(operand, operand)
            case Operation("-", (str(x),)) if is_number(x):
                return repr(-float(x))
        return self.name(operand.function, *(self.write(o, known) for o in operand.operands), fresh=fresh)

    def times(self, a: str, b: str) -> str:
        """The product a*b."""
        if is_number(a) and is_number(b):
            return repr(float(a) * float(b))
        for x, y in ((a, b), (b, a)):
            if is_number(x) and abs(float(x)) == 1.0:
                return y if float(x) > 0 else self.name("-", y)
        return self.name("*", a, b)

    def plus(self, a: str, b: str) -> str:
        """The sum a + b."""
        if is_number(a) and is_number(b):
            return repr(float(a) + float(b))
        return self.name("-", a, b[1:]) if b.startswith("-") else self.name("+", a, b)
