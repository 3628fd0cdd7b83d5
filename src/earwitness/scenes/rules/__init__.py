"""The rules a dialogue must keep, as far as a script can check them: limits, words, and one module per theme."""
