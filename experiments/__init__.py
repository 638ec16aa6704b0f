"""The tables of the paper, its numbers beside ours: `python -m experiments table1`."""
