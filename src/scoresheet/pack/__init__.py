"""Packs: how requests are named, how a folder is frozen, read and archived."""
