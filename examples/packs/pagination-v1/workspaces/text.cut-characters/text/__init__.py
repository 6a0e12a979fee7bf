"""Text in pieces."""
