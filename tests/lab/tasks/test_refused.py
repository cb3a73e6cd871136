"""Settings of tasks that do not go together: one sentence with what does not fit, before anything is trained."""

import re
from typing import Any

import numpy as np
import pytest

from odesim.base.errors import ParamError
from odesim.lab.tasks import load_task
from odesim.lab.training.task import check_settings


def whole(sentence: str) -> str:
    """The pattern of this sentence and nothing else."""
    return f"^{re.escape(sentence)}$"


REFUSED: dict[str, list[tuple[dict[str, Any], str]]] = {
    "committee": [
        ({"N": 3}, whole("N must be at least K + M = 4, for students and teachers apart, not 3")),
        ({"Q": np.eye(3)}, whole("Q has the shape (2, 2) with K=2 and M=2, not (3, 3)")),
        ({"A": np.ones(3)}, whole("A has the shape (2,) with K=2 and M=2, not (3,)")),
        (
            {"Q": np.array([[1.0, 0.1], [0.2, 1.0]])},
            whole("Q is symmetric: the overlap of two students is that of the two the other way round"),
        ),
        ({"R": np.eye(2)}, whole("no student has these overlaps: Q - R R^T has the eigenvalue -0.795, below 0")),
        (
            {"init": "normal", "R": np.zeros((2, 2))},
            whole("R is the overlap at the start, which init=normal draws; it needs init=overlaps"),
        ),
    ],
    "counting": [
        ({"length": 9, "regions": 5}, "5 regions of two brackets each need a length of 10, not 9"),
    ],
    "hierarchy_dag": [
        ({"n0": 5000}, "n0 must be at most 4851, the sets of 2 out of 99 tokens"),
        ({"n1": 46}, "n1 must be at most 45, the sets of 2 out of n0=10 latents, not 46"),
        ({"num_classes": 191}, "num_classes must be at most 190, the sets of 2 out of n1=20 latents"),
        ({"num_children": 11}, "n1 must be at most 0"),
        ({"length": 7}, "length must be at least 8, the tokens of one of the classes of seed 0, not 7"),
    ],
    "hierarchy_layers": [
        ({"n0": 2, "n1": 3}, "n1 must be at most 1, the sets of 2 out of n0=2 latents"),
    ],
    "in_context": [
        ({"lam": [1.0, 2.0]}, r"lam has the shape \(4,\) with D=4, not \(2,\)"),
        ({"k": np.ones((5, 3))}, r"k has the shape \(5, 4\) with H=5 and D=4, not \(5, 3\)"),
        ({"U": np.ones((5, 4, 4))}, "U: heads with weights=separate have v, k, q"),
    ],
    "induction": [
        ({"V": 5}, "N = 8 different tokens need a vocabulary of as many, not V = 5"),
    ],
    "joma_gaussian": [
        ({"num_distinct": 0, "num_common": 0}, whole("num_distinct + num_common must be at least 1, not 0")),
        ({"cosine": 0.1}, whole("cosine=0.1 needs coordinates=w: V and Xi are coordinates of orthonormal embeddings")),
        ({"coordinates": "w", "d": 20}, whole("d must be at least 21, the number of tokens, not 20")),
        ({"coordinates": "w", "cosine": -0.05}, whole("cosine must lie between -0.05 and 1 for 21 embeddings, not -0.05")),
    ],
    "joma_regression": [
        ({"c": np.ones(2)}, r"c has the shape \(10,\) with M=10, not \(2,\)"),
    ],
    "modular": [
        ({"p": 22}, "p of modular is odd, not 22"),
        ({"share": 1e-4}, "0.0001 of 529 pairs is none"),
    ],
    "next_token": [
        ({"y": [0.5, 0.5]}, r"y has the shape \(3,\) with K=3, not \(2,\)"),
        ({"m": [1.0, 2.0]}, r"m has the shape \(3,\) with K=3, not \(2,\)"),
        ({"y": [0.5, 0.5, 0.5]}, "y has the sum 1.5: the label is some word, and its frequencies sum to 1"),
    ],
    "reversal": [
        ({"data": "chains", "pairs": 267}, "vocabulary must be at least 3 pairs .* = 804, not 802"),
        ({"data": "chains", "both": 1.0}, "both=1 of 200 chains leaves none without A ~> C"),
        ({"pairs": 500}, "vocabulary must be at least 2 pairs .* = 1002, not 802"),
        ({"both": 1.0}, "both=1 of 200 pairs leaves none"),
        ({"order": "shufled"}, "choose from shuffled, replacement"),
    ],
    "selection": [
        ({"X": np.ones((4, 5, 3))}, r"X has the shape \(4, 5, 20\) with N=4, T=5 and d=20, not \(4, 5, 3\)"),
        ({"z": np.ones((4, 20))}, "z: with trained=prompt all sequences have one query, which is trained"),
    ],
    "simsiam": [
        ({"n2": 6}, "n2 is 6, and the inputs have n1=5 dimensions"),
        ({"s": [1.0, 2.0]}, r"s has the shape \(3,\) with n2=3, not \(2,\)"),
        ({"p": [1.0, 2.0, 3.0], "predictor": "set"}, "p is of a predictor at the start, and predictor=set takes it from W"),
    ],
    "topics": [
        ({"tau": 5}, "tau = 5 topics of a document are more than there are, T = 4"),
        ({"p_c": 0.95}, "p_c \\+ p_r must be at most 1, not 1.05"),
        ({"shortest": 200}, "shortest = 200 is above longest = 150"),
        ({"masks": "once"}, "masks=once needs documents that are drawn once: documents=N"),
        ({"init": "symmetric", "v": 1}, "init=symmetric needs at least two topics of at least two words, not T = 4 and v = 1"),
        ({"contexts": "infinite", "mixture": "dirichlet"}, "contexts=infinite needs mixture=sets, not dirichlet"),
        ({"contexts": "infinite", "documents": 3}, "contexts=infinite needs documents=0, not 3"),
    ],
}
CASES = [(task, *case) for task, cases in REFUSED.items() for case in cases]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}: {case[2]}")
def test_refused(case: tuple[str, dict[str, Any], str]) -> None:
    name, values, sentence = case
    task = load_task(name)
    with pytest.raises(ParamError, match=sentence) as caught:
        task.make(check_settings(name, task.settings, values), seeds=(0,))
    assert "\n" not in str(caught.value)
