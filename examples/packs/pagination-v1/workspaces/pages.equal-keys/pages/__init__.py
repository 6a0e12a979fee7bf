"""Pages of lists."""
