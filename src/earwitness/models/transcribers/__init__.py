"""Engines that write down what is said."""
