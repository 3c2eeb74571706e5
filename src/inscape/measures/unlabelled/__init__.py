"""What predictions say without labels."""
