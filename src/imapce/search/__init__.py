"""Equation 2 and its optima: the manifold, the objective, where to begin and how to descend. NumPy and SciPy only."""
