"""scan_snap.full with a decorrelated decoder gradient: the flow that the paper's reduced attention is the limit of.

Y (S, K+1) and Z (Q, S) as in scan_snap.full. The decoder does not follow the attended tokens f of the classes themselves but the rows of
F (F^T F)^-1 (Lemma 3): each is orthogonal to the other classes, so that a class changes no logit but its own. With attention at rest the
classes learn apart from each other, along the margins of scan_snap.decoder. The attention follows the plain gradient.

Assumed: what scan_snap.full assumes, and attended tokens of the classes that are linearly independent: there is no inverse otherwise,
and the run ends. For eta_Z much below eta_Y the attention is that of scan_snap.reduced, up to O(eta_Z/eta_Y). Trainings of scan_snap
with decoder=decorrelated take the steps of this flow.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from sympy import Sum

from odesim.models.scan_snap.full import SYSTEM as FULL
from odesim.models.scan_snap.full import K, S, Y, Z, e, eta_Y, f, j, k, l, m, n, p
from odesim.symbolic import ClosedForm, Constraint, Source, at, inverse, over


def attention_at_rest(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """Y (S, K+1) from 0 and Z (Q, S) as it is, where eta_Z = 0: F^T Y holds a margin u_n for each class.

    Y is F (F^T F)^-1 (u_n (e_n - 1/M))_n, with exp(u_n) + (M - 1) u_n = 1 + M p_n eta_Y t by the Wright omega function.
    """
    from scipy.special import wrightomega

    P, M, K = params["P"], params["M"], len(params["P"])
    total = 1 + M * params["p"] * params["eta_Y"] * t
    u = np.log(M - 1) + np.log(wrightomega(total / (M - 1) - np.log(M - 1)))
    f = P * np.exp(y0["Z"][params["psi"].astype(int)])
    f /= np.linalg.norm(f, axis=1, keepdims=True)
    return {"Y": f.T @ np.linalg.solve(f @ f.T, u[:, None] * (np.eye(K, K + 1) - 1 / M)), "Z": y0["Z"]}


G_inverse = inverse(over(Sum, at(f, {n: k}) * f, (l, S)), (k, K), (n, K), name="G_inverse")
alone = over(Sum, at(f, {n: k}) * G_inverse[k, n], (k, K))  # overlaps with class n alone

SYSTEM = replace(
    FULL,
    name="scan_snap.full_decorrelated",
    source=Source("tian2023scan", "Lemma 3", "the decoder gradient decorrelated, that of the attention plain; infinite contexts"),
    axes={**FULL.axes, k: K},
    equations={Y[l, j]: eta_Y * over(Sum, p[n] * alone * e, (n, K)), Z[m, l]: FULL.equations[Z[m, l]]},
    display={**FULL.display, "alone": alone},
    constraints=(*FULL.constraints, Constraint("S is at least K", S - K, ">=0")),
    closed_forms=(ClosedForm("attention at rest", "from Y = 0, where eta_Z = 0 and M > 1", attention_at_rest),),
)
