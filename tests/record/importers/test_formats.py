"""The list of formats."""

import importlib
import pkgutil

from scoresheet.record import importers
from scoresheet.record.importers.formats import FORMATS

SHARED = {"calls", "formats", "hosts", "intake", "literal", "shape", "volatile"}


def test_every_module_is_a_format_or_shared_by_them():
    modules = {each.name for each in pkgutil.iter_modules(importers.__path__)}
    assert modules == {each.module for each in FORMATS.values()} | SHARED


def test_every_format_reads_file_by_file_or_all_at_once():
    for each in FORMATS.values():
        module = importlib.import_module(f"scoresheet.record.importers.{each.module}")
        assert hasattr(module, "read") != hasattr(module, "read_all")
        assert all(suffix.startswith(".") for suffix in each.suffixes)
