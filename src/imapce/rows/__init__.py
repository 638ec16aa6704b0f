"""Rows that are only ever reduced: the contract (`base`), one file per engine, and `open`, which picks one."""
