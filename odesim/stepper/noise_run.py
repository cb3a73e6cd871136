"""One run of one system with noise: the driver, and its memory, with the table of what draws."""

from typing import Any, ClassVar

import numpy as np

from odesim.base.arrays import Array
from odesim.base.options import RunOptions
from odesim.stepper.drive import ExplicitRun
from odesim.stepper.memory import RunState
from odesim.stepper.noise_methods import SCHEMES
from odesim.stepper.one_system import noisy_driver
from odesim.stepper.problem import Problem, Raw
from odesim.stepper.table import NOISE, new_table


def integrate_noisy(problem: Problem, method: str, *, save: Array | None = None, **options: Any) -> Raw:
    """The run of a problem with noise, as odesim.stepper.drive.integrate_explicit has it."""
    run = NoisyRun(problem, SCHEMES[method], save, **options)
    run.advance()
    return run.raw()


class NoisyState(RunState):
    """The state of a run with noise."""

    driver = staticmethod(noisy_driver)

    def _fill_method(self) -> None:
        super()._fill_method()
        noise, scheme = self.problem.noise, self.method
        assert noise is not None
        count, length = sum(a.size for a in noise.arrays), 0 if noise.length is None else noise.length.ctypes.data
        self._xi, self._weights = np.zeros((2, count)), np.array(scheme.noise)
        self._rates = np.array([x for a in noise.arrays for x in (a.ctypes.data, a.size)], np.int64)
        self._noise = new_table(
            NOISE, MEMBER=noise.member, KEY0=noise.seed & 0xFFFFFFFF, KEY1=noise.seed >> 32, HALVINGS=noise.halvings, DRAWS=scheme.draws,
            CHANNELS=count, XI=self._xi.ctypes.data, WEIGHTS=self._weights.ctypes.data, LENGTH=length, ARRAYS=len(noise.arrays),
            RATES=self._rates.ctypes.data,
        )  # fmt: skip
        self.at["NOISE"] = self._noise.ctypes.data


class NoisyRun(ExplicitRun):
    """A run of a scheme for noise; options as of ExplicitRun."""

    kind: ClassVar = "noisy"

    def _new_state(self, problem: Problem, method: Any, save: Array, options: RunOptions, functions: dict[str, int]) -> RunState:
        return NoisyState(problem, method, save, options)
