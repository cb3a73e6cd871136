"""MLP and linear attention of one layer, trained together on a loss: squared logits follow the squared weights of their token.

V (Mc, K) and Xi (Mq, K) hold the weights of K nodes over contextual and query tokens, Z (Mc, Mq) the attention logits of the
contextual tokens under each query. Along the gradient flow of the cross-entropy
sum_m Z[l, m]^2 - (eta_z / eta_w) sum_k V[l, k]^2 is constant: for every data set, activation, loss, temperature and upper layer.

Assumed: orthonormal embeddings; keys and queries are not parameters, their products Z are. The activation is the identity; others are
joma.joint_linear:SOFTPLUS, SQUARE and RELU, other losses MSE (squared) and FIXED (a signal that stays).
V = Z = 0 is a fixed point, in which the paper starts: Z starts from 1 here. Theorem 1 is printed for equal learning rates and one
query; with several queries on one V, only the sum over them is constant.
"""

from sympy import Sum

from odesim.models.joma._joint import K, Mq, V, Z, eta_w, eta_z, joint, k, l, m, variants
from odesim.symbolic import Invariant, over

difference = over(Sum, Z[l, m] ** 2, (m, Mq)) - eta_z / eta_w * over(Sum, V[l, k] ** 2, (k, K))
THEOREM = Invariant("Theorem 1", difference, "constant")

SYSTEM = joint("linear", "identity", THEOREM, start=1.0)
VARIANTS = variants("linear", THEOREM, start=1.0)
