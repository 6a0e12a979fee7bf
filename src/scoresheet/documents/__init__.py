"""Every file format, one frozen model each. JSON Schemas are made from here (`scoresheet schema NAME`). Pure."""
