"""Right-hand sides written by hand in numpy, straight from the papers: what the model files are held against."""

from collections.abc import Callable

from tests.support.chains import gibbs, gibbs_lumped, gibbs_training
from tests.support.truth.arrays import Arrays
from tests.support.truth.blocks import cluster, covariance, joint, multilayer, reduced_exp
from tests.support.truth.hierarchy import gated, grouped, occurrence
from tests.support.truth.hopfield import (
    hopfield_classical,
    hopfield_dense,
    hopfield_graded,
    hopfield_modern,
    hopfield_potts,
    hopfield_two_layer,
    hopfield_two_patterns,
    hopfield_update,
)
from tests.support.truth.joma import (
    linear,
    linear_attention,
    linear_bterm,
    linear_multinode,
    linear_softmax,
    nonlinear,
    nonlinear_log,
    nonlinear_softmax,
    self_consistent,
)
from tests.support.truth.learning import (
    committee,
    deep_linear,
    deep_linear_modes,
    induction_full,
    induction_stages,
    parametric_gradient,
    projected,
    sgd_least_squares,
    softmax_regression,
    two_layer,
)
from tests.support.truth.particles import (
    particles_circle,
    particles_gamma,
    particles_noisy_circle,
    particles_rescaled,
    particles_sphere,
    particles_two_clusters,
    particles_unnormalised,
)
from tests.support.truth.reversal import reversal_bilinear, reversal_full, reversal_row
from tests.support.truth.scan_snap import decoder, full, full_decorrelated, reduced, reduced_symmetric, symmetric, theorem4
from tests.support.truth.topics import topics_full, topics_reduced, topics_stage1, topics_tied

RIGHT_SIDES: dict[str, Callable[[float, Arrays, Arrays], Arrays]] = {
    "scan_snap.full": full,
    "scan_snap.full_decorrelated": full_decorrelated,
    "scan_snap.symmetric": symmetric,
    "scan_snap.reduced_symmetric": reduced_symmetric,
    "scan_snap.theorem4": theorem4,
    "scan_snap.decoder": decoder,
    "scan_snap.reduced": reduced,
    "joma.linear": linear,
    "joma.linear_softmax": linear_softmax,
    "joma.linear_multinode": linear_multinode,
    "joma.nonlinear": nonlinear,
    "joma.nonlinear_softmax": nonlinear_softmax,
    "joma.linear_attention": linear_attention,
    "joma.linear_bterm": linear_bterm,
    "joma.self_consistent": self_consistent,
    "joma.nonlinear_log": nonlinear_log,
    "joma.joint_linear": joint("linear"),
    "joma.joint_exp": joint("exp"),
    "joma.joint_softmax": joint("softmax"),
    "galore.parametric_gradient": parametric_gradient,
    "galore.projected": projected,
    "hierarchy.grouped": grouped,
    "hierarchy.gated": gated,
    "hierarchy.occurrence": occurrence,
    "hierarchy.multilayer": multilayer(),
    "hierarchy.covariance": covariance,
    "joma.reduced_exp": reduced_exp,
    "joma.cluster": cluster,
    "gibbs.master": gibbs(together=True),
    "gibbs.parallel": gibbs(together=False),
    "gibbs.lumped": gibbs_lumped,
    "gibbs.training_flow": gibbs_training,
    "hopfield.update": hopfield_update,
    "hopfield.modern": hopfield_modern,
    "hopfield.potts": hopfield_potts,
    "hopfield.two_patterns": hopfield_two_patterns,
    "hopfield.graded": hopfield_graded,
    "hopfield.two_layer": hopfield_two_layer,
    "hopfield.classical": hopfield_classical,
    "hopfield.dense": hopfield_dense,
    "particles.unnormalised": particles_unnormalised,
    "particles.rescaled": particles_rescaled,
    "classics.committee": committee,
    "induction.full": induction_full,
    "induction.stages": induction_stages,
    "memory.softmax_regression": softmax_regression,
    "classics.deep_linear": deep_linear,
    "classics.deep_linear_modes": deep_linear_modes,
    "particles.sphere": particles_sphere,
    "particles.circle": particles_circle,
    "particles.noisy_circle": particles_noisy_circle,
    "noise.sgd_least_squares": sgd_least_squares,
    "noise.two_layer": two_layer,
    "particles.gamma": particles_gamma,
    "particles.two_clusters": particles_two_clusters,
    "reversal.row": reversal_row,
    "reversal.full": reversal_full,
    "reversal.bilinear": reversal_bilinear,
    "topics.full": topics_full,
    "topics.stage1": topics_stage1,
    "topics.reduced": topics_reduced,
    "topics.tied": topics_tied,
}
"""Model -> function(t, states, parameters) that gives d state / dt; of a Map the next state."""
