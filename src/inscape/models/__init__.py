"""What we look at: classifiers of any library behind one small interface."""

from inscape.models.base import Model, Prediction
from inscape.models.wrapping import quantile_levels, wrap

__all__ = ["Model", "Prediction", "quantile_levels", "wrap"]
