"""References that answer slowly and certainly."""
