"""What tests of comparisons look at."""

import odesim


def errors(comparison: odesim.Comparison) -> dict[str, float]:
    """{observable: relative L2}."""
    return {row["observable"]: row["relative_l2"] for row in comparison.table()}
