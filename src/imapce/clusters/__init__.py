"""Clusters: one mixture of t components, the effect of covariates given the clusters, evidence and stability."""
