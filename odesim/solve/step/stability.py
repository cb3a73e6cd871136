"""Numbers of the rule by which a run or a member changes to a stiff method: stability holds its steps, and the rest is long.

The spectral radius of the Jacobian comes from power iterations on differences of the right-hand side. Members take the geometric mean of
the last two growths: where units of components differ, each one alone may be far off.
"""

FEW, MANY = 3, 12
"""Numbers of power iterations: MANY for a single run; FEW for a lane, and MANY where these show that stability holds the step.

FEW iterations for one lane alone cost as much as four steps of all lanes.
"""
HELD = 0.5
"""The step is held by stability where it is, on average, above this fraction of the largest stable one."""
SHORT = 0.5
"""The rest of a run is not worth another method where it takes fewer steps than this, in units of those so far."""
FAR = 1e15
"""The most steps that a member is said to be from its end."""
