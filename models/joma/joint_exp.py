"""MLP and exp attention of one layer, trained together on a loss: each logit is half the squared weights of its token.

V (Mc, K) and Xi (Mq, K) hold the weights of K nodes over contextual and query tokens, Z (Mc, Mq) the attention logits of the
contextual tokens under each query. Along the gradient flow of the cross-entropy
sum_m Z[l, m] - (eta_z / eta_w) / (2 T) sum_k V[l, k]^2 is constant: for every data set, activation, loss and upper layer.

Assumed: orthonormal embeddings; keys and queries are not parameters, their products Z are. The activation is the identity; others are
joma.joint_exp:SOFTPLUS, SQUARE and RELU, other losses MSE (squared) and FIXED (a signal that stays).
The papers start from small normal numbers: --init "V=normal(0,0.01)". Theorem 1 is printed for equal
learning rates, T = 1 and one query; with several queries on one V, only the sum over them is constant.
"""

from sympy import Sum

from odesim.models.joma._joint import K, Mq, T, V, Z, eta_w, eta_z, joint, k, l, m, variants
from odesim.symbolic import Invariant, over

difference = over(Sum, Z[l, m], (m, Mq)) - eta_z / eta_w / (2 * T) * over(Sum, V[l, k] ** 2, (k, K))
THEOREM = Invariant("Theorem 1", difference, "constant")

SYSTEM = joint("exp", "identity", THEOREM)
VARIANTS = variants("exp", THEOREM)
