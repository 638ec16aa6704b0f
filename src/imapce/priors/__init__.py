"""What is known becomes X, Y and Z: the kinds of knowledge, the terms they add, and the problem they pose."""
