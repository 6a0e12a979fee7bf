"""The gates: what is decided before anything runs or is printed. Each rule is a function; each refusal a finding."""
