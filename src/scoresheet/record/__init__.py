"""Recording live services into a pack, and importing recordings that people already have."""
