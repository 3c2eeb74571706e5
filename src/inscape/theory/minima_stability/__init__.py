"""Checks of Mulayoff, Michaeli, Soudry 2021: which minima gradient descent can stay at."""

from inscape.theory.minima_stability.stable_minima import (
    ms_lemma1,
    ms_lemma2,
    ms_lemma3,
    ms_lemma4,
    ms_lemma5,
    ms_theorem1,
    ms_theorem2,
)

__all__ = ["ms_lemma1", "ms_lemma2", "ms_lemma3", "ms_lemma4", "ms_lemma5", "ms_theorem1", "ms_theorem2"]
