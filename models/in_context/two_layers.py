"""Two layers of linear attention, each a step of gradient descent in context, learn their two step sizes.

For inputs N(0, I) in D dimensions and prompts of N pairs the error of the second prediction is w^T (1 - eta1 S)(1 - eta2 S) x_q, where
N S is a Wishart matrix; its mean square over D is 1 - 2 a m1 + (a^2 + 2 b) m2 - 2 a b m3 + b^2 m4 with a = eta1 + eta2, b = eta1 eta2 and
the moments m_k = E tr S^k / D. The best steps differ. From equal ones the flow cannot leave the diagonal, and stops at a saddle.

Assumed: population loss; weights of the form for which a layer is a step of gradient descent.
"""

from sympy import Interval, S, oo, symbols

from odesim.symbolic import Invariant, Param, Source, System, gradient_flow

eta1, eta2 = symbols("eta1 eta2")
D, N = symbols("D N", positive=True)
m2 = (N + D + 1) / N
m3 = (N**2 + D**2 + 3 * N * D + 3 * N + 3 * D + 4) / N**2
m4 = (N**3 + D**3 + 6 * N * D * (N + D) + 6 * (N**2 + D**2) + 17 * N * D + 21 * (N + D) + 20) / N**3
both, product = eta1 + eta2, eta1 * eta2
loss = 1 - 2 * both + (both**2 + 2 * product) * m2 - 2 * both * product * m3 + product**2 * m4

SYSTEM = System(
    name="in_context.two_layers",
    source=Source("ahn2023transformers", "Abstract", "two layers, inputs N(0, I), one step size a layer"),
    axes={},
    equations=gradient_flow(loss, {eta1: 1, eta2: 1}),
    params=(
        Param(D, 5.0, Interval(1, oo), "dimension of the inputs"),
        Param(N, 20.0, Interval(1, oo), "pairs of input and label in a prompt"),
    ),
    initial={eta1: S(1) / 10, eta2: S(1) / 5},
    span=(0.0, 10.0),
    time="steps times learning rate",
    observables={"loss": loss, "sum": both, "product": product},
    invariants=(Invariant("loss falls", loss, "nonincreasing"),),
)
