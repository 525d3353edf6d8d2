"""Whole ways to train, by what they are about; a seed picks one of them."""

from __future__ import annotations

from collections.abc import Callable

from .actors import actor_critic, soft_actor
from .adversaries import adversarial_examples, gan, input_optimised, wgan_gp
from .hands import by_name, kept_terms, listed_by_hand
from .likenesses import contrastive, distilled, self_taught, unsupervised_energy, variational
from .memories import continual, fine_tuned, retained, truncated
from .phases import benchmarked, grown, left_over, phased, renewed, run_by_word
from .plot import Plot
from .rewards import q_learning, reinforce
from .steps import by_hand, closured, meta_learning, reptile, sharpness, surgery
from .stores import pooled, replayed, rounded, swapped
from .training import (
    accumulated,
    alternating,
    micro_batches,
    one_for_both,
    scaled,
    supervised,
    tasks,
    two_optimizers,
    wide,
)
from .world import World

PLOTS: tuple[Callable[[World], Plot], ...] = (
    supervised,
    supervised,
    supervised,
    accumulated,
    micro_batches,
    two_optimizers,
    one_for_both,
    gan,
    gan,
    wgan_gp,
    actor_critic,
    actor_critic,
    reinforce,
    q_learning,
    soft_actor,
    meta_learning,
    reptile,
    variational,
    distilled,
    self_taught,
    truncated,
    by_hand,
    by_hand,
    input_optimised,
    adversarial_examples,
    closured,
    retained,
    surgery,
    sharpness,
    tasks,
    fine_tuned,
    contrastive,
    scaled,
    alternating,
    continual,
    unsupervised_energy,
    wide,
    phased,
    phased,
    run_by_word,
    left_over,
    left_over,
    grown,
    renewed,
    benchmarked,
    by_name,
    by_name,
    listed_by_hand,
    kept_terms,
    kept_terms,
    pooled,
    replayed,
    rounded,
    swapped,
)
