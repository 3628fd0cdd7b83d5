"""Sound as arrays; knows nothing of benchmarks."""
