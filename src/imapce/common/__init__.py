"""What every room uses: argument checks, words, threads, and files that are whole or not there at all."""
