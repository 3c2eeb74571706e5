"""What of a model's outputs is looked at, and which label it stands for."""

from inscape.models.deciding.chosen_output import Output
from inscape.models.deciding.decided import DecidedModel, decided
from inscape.models.deciding.decision_rules import DecisionRule, rule_of

__all__ = ["DecidedModel", "DecisionRule", "Output", "decided", "rule_of"]
