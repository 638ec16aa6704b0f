"""Groups in all directions, and what is left given the known: one model, its clusters, whether they are structure."""
