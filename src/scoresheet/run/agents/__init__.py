"""Agents that scoresheet knows how to start, one file each."""
