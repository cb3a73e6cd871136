"""Topics are learned in stages: values first, attention to the topic much later, copying of the shown word last.

Stands beside Section 4 of li2023topic (two stages, by training): T = v = 10, tau = 2, masking .15, .1, .1, all numbers at 1e-3 at the
start. a, norms of W_V and W_K; b, the loss and its plateaus; c, the time at which attention comes, against ln(1/eps), with the slope
1/g2; d, the time at which copying comes, against 1/eps (T = 4, v = 3), which the paper does not have.
"""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.models.topics._stage1_claims import ATTENTION, COPYING, SETTING
from odesim.plot.figures import SCRIPT, THEORY, Feature
from odesim.plot.style import CATEGORIES, DASHES, FAINT, SMALL, few_log_ticks, few_ticks, letter_panels, picture

QUESTION = "what is learned first?"
MODEL, EPS, END, G2 = "topics.reduced", 1e-3, 6e5, 5.5748e-5
FINE = {"rtol": 1e-9, "atol": 1e-12}


def norms(y: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """|W_V| and |W_K| (t,): the projectors have the ranks T (v - 1) and T - 1."""
    words, topics = SETTING["T"] * (SETTING["v"] - 1), SETTING["T"] - 1
    values = words * y["a_w"] ** 2 + topics * y["a_t"] ** 2 + y["r_w"] ** 2 + y["r_m"] ** 2
    return np.sqrt(values), np.sqrt(words * y["k_w"] ** 2 + topics * y["k_t"] ** 2 + (y["K2"] ** 2).sum(axis=(1, 2)))


def passing(event: str, eps: float, end: float, **params: float) -> float:
    """When an event first happens, all numbers at eps at the start."""
    run = odesim.integrate(MODEL, params={**params, "eps": eps}, span=(0, end), save=2, events=[f"passed: {event}"], **FINE)
    return float(run.events["passed"][0]["t"])


def data(fast: bool) -> xr.Dataset:
    """norm_V, norm_K, loss (t), and the times of attention (eps) and of copying (small). fast: the same."""
    times = np.r_[0, np.geomspace(1, END, 400)]
    run = odesim.integrate(MODEL, params={**SETTING, "eps": EPS}, span=(0, END), save=times, **FINE)
    norm_V, norm_K = norms(run.y)
    return xr.Dataset(
        {
            "norm_V": ("t", norm_V),
            "norm_K": ("t", norm_K),
            "loss": ("t", run.observables["loss"]),
            "attention": ("eps", [passing("k_t * q_t - 1", eps, 1.2 * t, **SETTING) for eps, t in ATTENTION.items()]),
            "copying": ("small", [passing("a_w - 0.5", eps, 1.1 * c / eps) for eps, c in COPYING.items()]),
        },
        coords={"t": times, "eps": list(ATTENTION), "small": list(COPYING)},
        attrs={**SETTING, "eps0": EPS, **FINE},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Four panels; it computes only the lines of slope 1/g2 and 1."""
    with picture("Values first, then attention, then copying", 105.0, width=120.0) as figure:
        (left, right), (low_left, low_right) = figure.subplots(2, 2)
        for j, (name, label) in enumerate((("norm_V", "$|W_V|$"), ("norm_K", "$|W_K|$"))):
            left.plot(ds.t[1:], ds[name][1:], color=CATEGORIES[j], ls=DASHES[j], label=label)
        left.set(xscale="log", yscale="log", xlabel="t", ylabel="norm", ylim=(5e-3, 30))
        left.legend(loc="upper left")
        right.plot(ds.t[1:], ds.loss[1:], color=CATEGORIES[0])
        for value, name in ((0.95, "0.9500"), (0.9459, "0.9459")):
            right.axhline(value, color=FAINT, lw=0.6, ls=(0, (1, 1.5)))
            right.text(0.02, value, name, transform=right.get_yaxis_transform(), fontsize=SMALL, va="bottom" if value == 0.95 else "top")
        right.set(xscale="log", xlabel="t", ylabel="loss", ylim=(0.942, 1.002))
        wait = np.log(1 / ds.eps)
        low_left.plot(wait, ds.attention, "o", ms=3, color=CATEGORIES[0])
        low_left.plot(wait, float(ds.attention[1]) + (wait - wait[1]) / G2, color=FAINT, lw=0.8, ls=(0, (1, 1.5)))
        low_left.set(xlabel="ln(1/ε)", ylabel="time of $k_t q_t = 1$")
        low_right.plot(1 / ds.small, ds.copying, "s", ms=3, color=CATEGORIES[1])
        low_right.plot(1 / ds.small, float(ds.copying[-1]) * ds.small[-1] / ds.small, color=FAINT, lw=0.8, ls=(0, (1, 1.5)))
        low_right.set(xscale="log", yscale="log", xlabel="1/ε", ylabel="time of $a_w = 1/2$")
        few_ticks(right, low_left)
        few_log_ticks(left, low_right, right)
        letter_panels(left, right, low_left, low_right)
    return figure


def plateau(t: float) -> float:
    """|W_K| before attention: the part of topics grows from EPS by exp(g2 t), the others stay."""
    T, d = SETTING["T"], SETTING["T"] * SETTING["v"] + 1
    return float(EPS * np.sqrt(d - (T - 1) + (T - 1) * np.exp(2 * G2 * t)))


def expected(ds: xr.Dataset) -> list[Feature]:
    """Times of attention and copying to their digits, plateaus of the loss, norms between the stages."""
    at = ds.interp(t=[1e3, 1e4, 3e4, 1.2e5, 6e5])
    features = [
        # the digits are those of another solver, to its own tolerance
        Feature(f"time of attention over its digits, eps = {eps:g}", float(ds.attention.sel(eps=eps)) / want, 1.0, 3e-5, SCRIPT)
        for eps, want in ATTENTION.items()
    ]
    features += [
        Feature(f"eps times the time of copying, eps = {eps:g}", eps * float(ds.copying.sel(small=eps)), want, 0.05, SCRIPT)
        for eps, want in COPYING.items()
    ]
    features += [
        Feature(
            "slope of the time of attention in ln(1/eps), times g2", float(np.diff(ds.attention.values)[-1] / np.log(10) * G2), 1.0, 1e-3
        ),
        Feature("slope of ln(copying) in ln(1/eps), last", float(np.diff(np.log(ds.copying.values))[-1] / np.log(3)), 1.0, 0.03),
        Feature("|W_V| at t = 1e3", float(at.norm_V[0]), 3.53, 0.01, SCRIPT),
        Feature("|W_K| at t = 1e4", float(at.norm_K[1]), 0.010, 0.002, SCRIPT),
        # the part of topics, rank T - 1, grows by exp(g2 t) once the values are learned, in which 1/(2 kappa^2 sigma2) = 150 go by
        Feature("|W_K| at t = 3e4 over theory", float(at.norm_K[2]) / plateau(3e4), 1.0, G2 * 300, THEORY),
        Feature("|W_K| at t = 1.2e5, above 1: by", max(0.0, 1 - float(at.norm_K[3])), 0.0, 0.0),
        Feature("|W_V| at t = 6e5, off 3.53", float(at.norm_V[4]) / 3.53, 1.0, 0.05, SCRIPT),
        Feature("loss at the start", float(ds.loss[0]), 1.0, 1e-3),
        Feature("loss on the first plateau", float(at.loss[1]), 0.95, 5e-5, SCRIPT),
        Feature("loss on the second plateau", float(at.loss[4]), 0.9459, 5e-5, SCRIPT),
    ]
    return features
