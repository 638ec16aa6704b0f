"""One script per speed or memory claim, each against a peer in the same run: `python -m benchmarks.solver`."""
