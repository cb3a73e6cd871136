"""Rosenbrock methods as numbers: what they are made of, Rodas4 and Rodas5P."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np

from odesim.base.arrays import Array


@dataclass(frozen=True, eq=False)
class Rosenbrock:
    """A Rosenbrock method of s stages in the variables that need no product with the Jacobian J.

    (1/(gamma h) - J) u_i = f(t + alpha_i h, y + sum_{j<i} A[i, j] u_j) + sum_{j<i} C[i, j]/h u_j + h d_i df/dt,
    after Hairer and Wanner, Solving Ordinary Differential Equations II (1996), IV.7. It is stiffly accurate: the last
    stage starts from the embedded solution, the new state is that plus u_s, and u_s is the error estimate.
    A, C (s, s) below their diagonals; H (k, s): the interpolant of order dense_order, see `dense`.
    error_order: the power of h in the error norm.
    """

    name: str
    order: int
    gamma: float
    A: Array
    C: Array
    H: Array
    error_order: int
    dense_order: int
    source: str

    adaptive = True

    @property
    def stages(self) -> int:
        return len(self.A)

    @cached_property
    def Gamma(self) -> Array:
        """(s, s): u = Gamma k, where k are the stages of the usual form; gamma on the diagonal."""
        return np.linalg.inv(np.eye(self.stages) / self.gamma - self.C)

    @cached_property
    def alpha(self) -> Array:
        """(s,): the times of the stages, in steps from t."""
        return _whole((self.A @ self.Gamma).sum(axis=1))

    @cached_property
    def d(self) -> Array:
        """(s,): the weights of df/dt."""
        return _whole(self.Gamma.sum(axis=1))

    @cached_property
    def weights(self) -> Array:
        """(s,): the new state is y + sum_j weights[j] u_j."""
        last = self.A[-1].copy()
        last[-1] = 1.0
        return last

    @cached_property
    def P(self) -> Array:
        """(s, k + 1): the coefficients of dense by powers of theta, from theta^1 on."""
        bent = np.zeros((self.stages, len(self.H) + 1))
        bent[:, :-1] += self.H.T
        bent[:, 1:] -= self.H.T
        bent[:, 0] += self.weights
        return bent

    @property
    def last(self) -> int:
        """The number of the last stage."""
        return self.stages - 1

    def dense(self, theta: float) -> Array:
        """(s,): y(t + theta h) = y + sum_j dense[j] u_j, which is (1-theta) y + theta (y1 + (1-theta) sum_k theta^k H[k] u)."""
        bent = np.polynomial.polynomial.polyval(theta, self.H)
        return theta * (self.weights + (1 - theta) * bent)

    def dense_slope(self, theta: float) -> Array:
        """The derivative of dense by theta (s,)."""
        bent = np.polynomial.polynomial.polyval(theta, self.H)
        bent_slope = np.polynomial.polynomial.polyval(theta, np.polynomial.polynomial.polyder(self.H))
        return self.weights + (1 - 2 * theta) * bent + theta * (1 - theta) * bent_slope


def _whole(a: Array) -> Array:
    """The array a with entries within 1e-12 of an integer set to it, which rounding has moved."""
    return np.where(np.abs(a - np.rint(a)) < 1e-12, np.rint(a), a)


def make_rosenbrock(
    name: str,
    *,
    order: int,
    gamma: float,
    A: Sequence[Sequence[float]],
    C: Sequence[Sequence[float]],
    H: Sequence[Sequence[float]],
    error_order: int,
    dense_order: int,
    source: str,
) -> Rosenbrock:
    """The Rosenbrock of these rows; A and C without their diagonals and what lies above them."""
    s = len(A)
    full = []
    for rows in (A, C):
        square = np.zeros((s, s))
        for i, row in enumerate(rows):
            square[i, : len(row)] = row
        full.append(square)
    bent = np.array(H, float)
    for array in (*full, bent):
        array.setflags(write=False)
    return Rosenbrock(name, order, gamma, full[0], full[1], bent, error_order, dense_order, source)


RODAS4 = make_rosenbrock(
    "rodas4",
    order=4,
    gamma=0.25,
    A=(
        (),
        (1.544,),
        (0.9466785280815826, 0.2557011698983284),
        (3.314825187068521, 2.896124015972201, 0.9986419139977817),
        (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950),
        (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950, 1.0),
    ),
    C=(
        (),
        (-5.6688,),
        (-2.430093356833875, -0.2063599157091915),
        (-0.1073529058151375, -9.594562251023355, -20.47028614809616),
        (7.496443313967647, -10.24680431464352, -33.99990352819905, 11.70890893206160),
        (8.083246795921522, -7.981132988064893, -31.52159432874371, 16.31930543123136, -6.058818238834054),
    ),
    H=(
        (10.12623508344586, -7.487995877610167, -34.80091861555747, -7.992771707568823, 1.025137723295662, 0.0),
        (-0.6762803392801253, 6.087714651680015, 16.43084320892478, 24.76722511418386, -6.594389125716872, 0.0),
    ),
    error_order=4,
    dense_order=3,
    source="Hairer and Wanner 1996, IV.7",
)


_LAST = (-7.502846399306121, 2.561846144803919, -11.627539656261098, -0.18268767659942256, 0.030198172008377946)

RODAS5P = make_rosenbrock(
    "rodas5p",
    order=5,
    gamma=0.21193756319429014,
    A=(
        (),
        (3.0,),
        (2.849394379747939, 0.45842242204463923),
        (-6.954028509809101, 2.489845061869568, -10.358996098473584),
        (2.8029986275628964, 0.5072464736228206, -0.3988312541770524, -0.04721187230404641),
        _LAST,
        (*_LAST, 1.0),
        (*_LAST, 1.0, 1.0),
    ),
    C=(
        (),
        (-14.155112264123755,),
        (-17.97296035885952, -2.859693295451294),
        (147.12150275711716, -1.41221402718213, 71.68940251302358),
        (165.43517024871676, -0.4592823456491126, 42.90938336958603, -5.961986721573306),
        (24.854864614690072, -3.0009227002832186, 47.4931110020768, 5.5814197821558125, -0.6610691825249471),
        (30.91273214028599, -3.1208243349937974, 77.79954646070892, 34.28646028294783, -19.097331116725623, -28.087943162872662),
        (
            37.80277123390563,
            -3.2571969029072276,
            112.26918849496327,
            66.9347231244047,
            -40.06618937091002,
            -54.66780262877968,
            -9.48861652309627,
        ),
    ),
    H=(
        (
            25.948786856663858,
            -2.5579724845846235,
            10.433815404888879,
            -2.3679251022685204,
            0.524948541321073,
            1.1241088310450404,
            0.4272876194431874,
            -0.17202221070155493,
        ),
        (
            -9.91568850695171,
            -0.9689944594115154,
            3.0438037242978453,
            -24.495224566215796,
            20.176138334709044,
            15.98066361424651,
            -6.789040303419874,
            -6.710236069923372,
        ),
        (
            11.419903575922262,
            2.8879645146136994,
            72.92137995996029,
            80.12511834622643,
            -52.072871366152654,
            -59.78993625266729,
            -0.15582684282751913,
            4.883087185713722,
        ),
    ),
    error_order=5,
    dense_order=4,
    source="Steinebach 2023",
)


ROSENBROCK: Mapping[str, Rosenbrock] = MappingProxyType({method.name: method for method in (RODAS4, RODAS5P)})
