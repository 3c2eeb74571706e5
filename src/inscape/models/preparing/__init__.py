"""What happens to points on their way from the data into a model."""

from inscape.models.preparing.prepared import PreparedModel, prepared
from inscape.models.preparing.preprocessing import Preparation

__all__ = ["Preparation", "PreparedModel", "prepared"]
