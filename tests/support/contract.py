"""Names and shapes of states, parameters and observables of each model, which scripts rely on: a contract."""

JOINT = (
    {"V": "(Mc, K)", "Xi": "(Mq, K)", "Z": "(Mc, Mq)"},
    {"X": "(N, Mc)", "pi": "(N,)", "q": "(N,)", "A": "(C, K)", "y": "(N,)", "T": "()", "eta_w": "()", "eta_z": "()"},
    {"loss": "()", "attention": "(N, Mc)", "entropy": "()"},
)
SYMMETRIC = {"p": "(D,)", "pc": "(C,)", "mc": "(C,)", "K": "()", "M": "()", "k_m": "()", "eta_Y": "()", "eta_Z": "()"}
TOPICS = {"P": "(N, d)", "P_shown": "(N, d)", "B": "(d, d)"} | dict.fromkeys(("T", "tau", "p_m", "p_c", "p_r"), "()")
CHAIN = dict.fromkeys(("q", "k", "J", "h"), "()") | {"p": "(S,)", "Q": "(S, S)", "f": "(S,)"}
FULL = (
    {"Y": "(S, K + 1)", "Z": "(Q, S)"},
    {"P": "(K, S)", "psi": "(K,)", "p": "(K,)", "M": "()", "eta_Y": "()", "eta_Z": "()"},
    {"loss": "()", "c": "(K, S)", "entropy": "(K,)", "entropy_distinct": "(K,)"},
)
CONTRACT: dict[str, tuple[dict[str, str], dict[str, str], dict[str, str]]] = {  # states, parameters, observables that scripts rely on
    "scan_snap.full": FULL,
    "scan_snap.full_decorrelated": FULL,
    "scan_snap.symmetric": (
        dict.fromkeys("abdz", "(D,)") | dict.fromkeys(("u", "v", "zc"), "(C,)"),
        SYMMETRIC,
        {"loss": "()", "c": "(D,)", "cc": "(C,)"},
    ),
    "scan_snap.reduced_symmetric": (
        dict.fromkeys(("S_d", "S_c", "B", "u"), "()"),
        SYMMETRIC,
        {"z": "(D,)", "zc": "(C,)", "gamma": "()", "c": "(D,)", "cc": "(C,)"},
    ),
    "scan_snap.reduced": (
        {"Z": "(Q, S)", "B": "(K,)", "u": "()"},
        {"P": "(K, S)", "psi": "(K,)", "M": "()", "eta_Y": "()", "eta_Z": "()"},
        {"c": "(K, S)", "chi": "(K, S)", "xi": "(K,)", "gamma": "()", "loss": "()"},
    ),
    "scan_snap.theorem4": (
        dict.fromkeys(("z", "B", "u"), "()"),
        dict.fromkeys(("K", "M", "eta_Y", "eta_Z", "C0"), "()"),
        {"gamma": "()", "chi_bound": "()"},
    ),
    "scan_snap.decoder": (
        dict.fromkeys(("u", "Gamma"), "()"),
        dict.fromkeys(("K", "M", "eta_Y", "eta_Z"), "()"),
        dict.fromkeys(("h", "gamma", "alpha", "loss"), "()"),
    ),
    "joma.linear": ({"v": "(M,)"}, {"Delta": "(M,)"}, {"entropy": "()"}),
    "joma.linear_softmax": ({"v": "(M,)"}, {"Delta": "(M,)"}, {"entropy": "()"}),
    "joma.linear_multinode": (
        {"V": "(M, K)"},
        {"Delta": "(M, K)"},
        {"stable_rank_V": "()", "stable_rank_dV": "()", "entropy": "()"},
    ),
    "joma.nonlinear": ({"v": "(M,)"}, {"mu": "(M,)"}, {"entropy": "()", "gap": "(M,)"}),
    "joma.nonlinear_softmax": ({"v": "(M,)"}, {"mu": "(M,)", "T": "()"}, {"entropy": "()", "gap": "(M,)"}),
    "joma.linear_attention": ({"V": "(M, K)", "z": "(M,)"}, {"Delta": "(M, K)"}, {"entropy": "()"}),
    "joma.linear_bterm": ({"v": "(M,)"}, {"Delta": "(M,)", "b": "(M,)"}, {"p": "(M,)", "entropy": "()"}),
    "joma.self_consistent": ({"v": "(M,)"}, {"c": "(M,)"}, {"loss": "()", "entropy": "()", "rest": "(M,)"}),
    "joma.nonlinear_log": ({"L": "(M,)"}, {"mu": "(M,)", "v0": "(M,)"}, {"v": "(M,)", "gap": "(M,)", "entropy": "()"}),
    "joma.joint_linear": JOINT,
    "joma.joint_exp": JOINT,
    "joma.joint_softmax": JOINT,
    "classics.deep_linear": (
        dict.fromkeys(("W1", "W2", "W3"), "(d, d)"),
        {"Sigma": "(d, d)", "a0": "()"},
        {"product": "(d, d)", "loss": "()"},
    ),
    "classics.deep_linear_modes": ({"a": "(r,)"}, {"s": "(r,)", "L": "()"}, {}),
    "particles.sphere": (
        {"x": "(n, d)"},
        dict.fromkeys("QKV", "(H, d, d)") | dict.fromkeys(("beta", "causal"), "()") | {"x0": "(n, d)"},
        {"attention": "(n, n, H)", "entropy": "(n, H)", "product": "(n, n)", "merged": "()"},
    ),
    "particles.circle": ({"theta": "(n,)"}, {"beta": "()"}, {"energy": "()", "x": "(n, 2)"}),
    "particles.gamma": ({"gamma": "()"}, {"beta": "()", "n": "()"}, {}),
    "particles.two_clusters": ({"r": "()"}, dict.fromkeys(("beta", "m1", "m2"), "()"), {}),
    "gibbs.master": ({"pi": "(S,)"}, CHAIN, dict.fromkeys(("TV", "KL", "mean"), "()")),
    "gibbs.parallel": ({"pi": "(S,)"}, CHAIN | {"s": "(S,)"}, dict.fromkeys(("TV", "KL", "mean", "TV_kept", "KL_kept"), "()")),
    "gibbs.lumped": (
        {"pi": "(n + 1,)"},
        {"k": "()", "b": "()", "log_w": "(n + 1,)", "p": "(n + 1,)", "Q": "(n + 1, n + 1)"},
        dict.fromkeys(("TV", "KL", "mean"), "()"),
    ),
    "gibbs.training_flow": (
        {"theta": "(A,)"},
        {"k": "()", "theta_star": "(A,)", "F": "(A, S)", "p": "(S,)", "G": "(N, R)"},
        dict.fromkeys(("loss", "error"), "()"),
    ),
    "hopfield.modern": ({"xi": "(d,)"}, {"X": "(d, N)", "beta": "()", "tau": "()"}, {"energy": "()", "p": "(N,)", "entropy": "()"}),
    "hopfield.potts": ({"z": "(N,)"}, {"c": "()"}, {"energy": "()"}),
    "hopfield.two_patterns": ({"u": "()"}, {"beta": "()", "delta": "()"}, {"energy": "()"}),
    "hopfield.graded": ({"u": "(d,)"}, {"W": "(d, d)", "g": "()"}, {"energy": "()", "output": "(d,)"}),
    "hopfield.two_layer": (
        {"v": "(d,)", "h": "(N,)"},
        {"X": "(d, N)"} | dict.fromkeys(("beta", "tau_v", "tau_h"), "()"),
        {"energy": "()", "p": "(N,)", "entropy": "()"},
    ),
    "hopfield.classical": (
        {"s": "(d,)"},
        {"X": "(d, N)", "W": "(d, d)", "B": "()", "s0": "(d,)"},
        {"overlap": "(N,)", "energy": "()"},
    ),
    "hopfield.dense": ({"s": "(d,)"}, {"X": "(d, N)", "m": "()", "B": "()", "s0": "(d,)"}, {"overlap": "(N,)", "energy": "()"}),
    "particles.unnormalised": (
        {"x": "(n, d)"},
        dict.fromkeys("QKV", "(H, d, d)") | dict.fromkeys(("beta", "causal"), "()") | {"x0": "(n, d)"},
        {"product": "(n, n)", "energy": "()", "merged": "()"},
    ),
    "particles.rescaled": (
        {"z": "(n, d)", "E": "(d, d)"},
        dict.fromkeys("QKV", "(d, d)") | {"z0": "(n, d)"},
        {"attention": "(n, n)", "entropy": "(n,)"},
    ),
    "classics.committee": (
        {"Q": "(K, K)", "R": "(K, M)", "v": "(K,)"},
        {"T": "(M, M)", "A": "(M,)"} | dict.fromkeys(("eta", "eta_2", "sigma"), "()"),
        {"e_g": "()"},
    ),
    "induction.full": (
        {"P": "(N, N)", "W_2": "(V, V)", "W_3": "(V, V)"},
        {"X": "(S, N)", "after": "(N,)", "eps": "()"},
        dict.fromkeys(("loss", "s1", "s2"), "()"),
    ),
    "induction.stages": (dict.fromkeys("abc", "()"), dict.fromkeys(("N", "V", "eps"), "()"), dict.fromkeys(("loss", "s1", "s2"), "()")),
    "memory.softmax_regression": ({"m": "(N,)"}, {"p": "(N,)", "M": "()"}, {"loss": "()", "probability": "(N,)"}),
    "hopfield.update": ({"xi": "(d,)"}, {"X": "(d, N)", "beta": "()"}, {"energy": "()", "p": "(N,)", "entropy": "()"}),
    "hierarchy.grouped": (
        {"v": "(L - 1,)"},
        dict.fromkeys(("N", "rho", "rho0", "kappa"), "()"),
        {"P": "(L - 1,)", "mass": "(L - 1,)", "entropy": "()"},
    ),
    "hierarchy.gated": (
        {"v1": "(L - 1,)", "v2": "(L - 2,)", "v3": "(L - 3,)"},
        dict.fromkeys(("N", "rho", "rho0", "kappa"), "()"),
        dict.fromkeys(("r1", "r2", "r3"), "()"),
    ),
    "hierarchy.occurrence": ({"c": "()"}, dict.fromkeys(("L", "rho", "rho0", "c_root"), "()"), dict.fromkeys(("P", "first_order"), "()")),
    "hierarchy.covariance": (
        {"V1": "(K1, K0)", "V2": "(K2, K1)", "U": "(C, K2)"},
        {"Sig_xx": "(K0, K0)", "Sig_cx": "(C, K0)"},
        {"loss": "()", "W": "(K0, C)"},
    ),
    "joma.reduced_exp": (
        {"V": "(Mc, K)", "Xi": "(K,)"},
        {"X": "(N, Mc)", "pi": "(N,)", "A": "(C, K)", "y": "(N,)", "z0": "(Mc,)"} | dict.fromkeys(("T", "eta_w", "eta_z"), "()"),
        {"loss": "()", "z": "(Mc,)", "entropy": "()"},
    ),
    "joma.cluster": (
        {"v": "(M,)", "xi": "()"},
        {"xbar": "(C, M)", "a": "(C,)", "sigma": "()"},
        {"active": "(C,)", "gain": "()"},
    ),
    "hierarchy.multilayer": (
        {"V1": "(K1, K0)", "V2": "(K2, K1)", "U": "(C, K2)", "xi1": "(K1,)", "xi2": "(K2,)"},
        {"X": "(N, K0)", "pi": "(N,)", "y": "(N,)"},
        {"loss": "()"},
    ),
    "galore.parametric_gradient": (
        {"W": "(m, n)"},
        {"A": "(N, m, n)", "B": "(N, m, m)", "C": "(N, n, n)"},
        {"loss": "()", "stable_rank_W": "()", "stable_rank_G": "()", "numerical_rank_G": "()"},
    ),
    "galore.projected": (
        {"W": "(m, n)", "P": "(m, r)"},
        {"A": "(N, m, n)", "B": "(N, m, m)", "C": "(N, n, n)", "P0": "(m, r)", "Omega": "(n, r)", "period": "()"},
        {"loss": "()", "shadow": "(n, r)"},
    ),
    "reversal.row": (
        {"v": "()"},
        dict.fromkeys(("M", "N", "eta_Y", "r"), "()"),
        dict.fromkeys(("p_target", "p_other", "loss"), "()"),
    ),
    "reversal.full": ({"Y": "(R, M)"}, {"x1": "(N,)", "x3": "(N,)", "eta_Y": "()"}, {"loss": "()", "p": "(N,)"}),
    "topics.stage1": ({"W_V": "(d, d)"}, TOPICS, dict.fromkeys(("loss", "norm_W_V"), "()")),
    "topics.tied": ({"E": "(K, d)"}, TOPICS | {"eps": "()"}, {"loss": "()"}),
    "topics.reduced": (
        dict.fromkeys(("a_w", "a_t", "r_w", "r_m", "k_w", "q_w", "k_t", "q_t"), "()") | {"K2": "(2, 2)", "Q2": "(2, 2)"},
        dict.fromkeys(("T", "v", "tau", "p_m", "p_c", "p_r", "d_a", "eps"), "()"),
        dict.fromkeys(("loss", "alpha", "beta"), "()"),
    ),
    "topics.full": (
        dict.fromkeys(("W_V", "W_K", "W_Q"), "(d, d)"),
        TOPICS | {"d_a": "()", "eps": "()"},
        dict.fromkeys(("loss", "norm_W_V", "norm_W_K", "norm_W_Q"), "()"),
    ),
    "reversal.bilinear": (
        {"Theta": "(d, d)"},
        {"E": "(M, d)"} | dict.fromkeys(("x1", "x3"), "(N,)") | dict.fromkeys(("h1", "h3"), "(H,)") | {"eta": "()"},
        {"loss": "()", "loss_held": "()"},
    ),
}
