"""What writes code: one operation a name, each once."""

from collections.abc import Mapping

from odesim.codegen.unrolled.operations import Code, Operand, Operation, is_number


class CodeBuilder:
    """Code of single operations, named by a letter and a number; numbers are folded, and nothing is multiplied by one."""

    def __init__(self, letter: str) -> None:
        self.code: Code = {}
        self._letter, self._known = letter, dict[Operation, str]()

    def name(self, function: str, *operands: Operand, fresh: bool = False) -> str:
        """The name of an operation. fresh: a new one, though it may have one."""
        operation = Operation(function, operands)
        found = None if fresh else self._known.get(operation)
        if found is None:
            found = f"{self._letter}{len(self.code)}"
            self.code[found] = operation
            self._known.setdefault(operation, found)
        return found

    def write(self, operand: Operand, known: Mapping[str, str], fresh: bool = False) -> str:
        """The name, or the number, of an expression in which known names stand for others; each operation in it gets its own."""
        match operand:
            case str():
                return known.get(operand, operand)
            case Operation("-", (str(x),)) if is_number(x):
                return repr(-float(x))
        return self.name(operand.function, *(self.write(o, known) for o in operand.operands), fresh=fresh)

    def times(self, a: str, b: str) -> str:
        """a*b."""
        if is_number(a) and is_number(b):
            return repr(float(a) * float(b))
        for x, y in ((a, b), (b, a)):
            if is_number(x) and abs(float(x)) == 1.0:
                return y if float(x) > 0 else self.name("-", y)
        return self.name("*", a, b)

    def plus(self, a: str, b: str) -> str:
        """a + b."""
        if is_number(a) and is_number(b):
            return repr(float(a) + float(b))
        return self.name("-", a, b[1:]) if b.startswith("-") else self.name("+", a, b)
