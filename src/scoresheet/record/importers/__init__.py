"""Recordings that people already have: one module a format, each from bytes to exchanges or tool calls. Pure."""
