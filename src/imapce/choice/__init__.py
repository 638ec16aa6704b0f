"""Which α, which μ and which optimum is the view: the path over the settings and the score that ranks it."""
