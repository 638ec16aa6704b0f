"""The HTML pages: one self-contained file each, made of sections with text, figures and tables."""
