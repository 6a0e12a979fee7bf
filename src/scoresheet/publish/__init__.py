"""From rows to what people may read: figures, the report, and whether it is admissible."""
