"""MLP and softmax attention of one layer, trained together on a loss.

V (Mc, K) and Xi (Mq, K) hold the weights of K nodes over contextual and query tokens, Z (Mc, Mq) the attention logits of the
contextual tokens under each query. What joma.joint_exp conserves is not conserved here: logits follow the squared weights of their
token less the mean attention, (eta_z / eta_w) / (2 T) (sum_k V[l, k]^2 - |V|^2 b[l]), to the order by which samples differ and as long
as b stands still. Exact: attention sums to 1, so that sum_l Z[l, m] is constant for each query.

Assumed: orthonormal embeddings; keys and queries are not parameters, their products Z are. The activation is the identity; others are
joma.joint_softmax:SOFTPLUS, SQUARE and RELU, other losses MSE (squared) and FIXED (a signal that stays).
The papers start from small normal numbers: --init "V=normal(0,0.01)".
"""

from sympy import Sum

from odesim.models.joma._joint import Mc, Z, joint, l, m, variants
from odesim.symbolic import Invariant, over

THEOREM = Invariant("logits of a query", over(Sum, Z[l, m], (l, Mc)), "constant")

SYSTEM = joint("softmax", "identity", THEOREM)
VARIANTS = variants("softmax", THEOREM)
