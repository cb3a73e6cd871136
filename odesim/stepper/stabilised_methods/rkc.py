"""RKC: large systems whose Jacobian has eigenvalues along the negative real axis, such as diffusion and gradient flows.

Sommeijer, Shampine, Verwer, RKC: an explicit solver for parabolic PDEs, J. Comput. Appl. Math. 88 (1998) 315, section 2. Its stages and
the estimate are written in odesim/stepper/stabilised.py, which reads no A and no E: here E says that there is an estimate, of h f_n,
y_(n+1) - y_n and h f_(n+1). It is held to rtol^1.5 (wide_run.py), and not to rtol as in rkc.f. P makes of these three the cubic through
both states and their slopes.
"""

from odesim.stepper.tableau import make_method

METHOD = make_method(
    "rkc",
    order=2,
    last=2,
    c=(0.0, 1.0, 1.0),
    A=((), (), ()),
    E=(0.4, -0.8, 0.4),
    error_order=3,
    gains=(0.7 / 3, 0.4 / 3),
    factors=(0.1, 10.0),
    P=((1.0, -2.0, 1.0), (0.0, 3.0, -2.0), (0.0, -1.0, 1.0)),
    dense_order=3,
    source="Sommeijer, Shampine and Verwer 1998",
)
