"""The command line: one module a verb. Only this folder prints."""
