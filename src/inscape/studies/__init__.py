"""Many models: studies and what they show."""
