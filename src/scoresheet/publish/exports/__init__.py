"""Admissible runs in the formats of other tools, one a module. None of them loses the protocol sheet on its way."""
