"""Reading feeds."""
