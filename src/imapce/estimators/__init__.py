"""The view as scikit-learn knows it: `fit`, `transform`, fitted attributes, a model file."""
