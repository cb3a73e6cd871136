"""RKC: large systems whose Jacobian has eigenvalues along the negative real axis, such as diffusion and gradient flows.

Sommeijer, Shampine, Verwer, RKC: an explicit solver for parabolic PDEs, J. Comput. Appl. Math. 88 (1998) 315; eqs. of section 2, and the
estimate 0.8 (y_n - y_(n+1)) + 0.4 h (f_n + f_(n+1)). Its stages are those of odesim/stepper/stabilised.py. What dense output and estimate
read are h f_n, y_(n+1) - y_n and h f_(n+1): between two states lies the cubic through both and their slopes.
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
