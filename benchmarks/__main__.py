"""``python -m benchmarks [NAME ...] [--option value ...]``: run every benchmark, or those named.

What begins with the first option is handed on to the benchmark.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks


def main() -> None:
    known = sorted(
        module.name
        for module in pkgutil.iter_modules(benchmarks.__path__)
        if not module.name.startswith("_")
    )
    given = sys.argv[1:]
    first = next((k for k, word in enumerate(given) if word.startswith("-")), len(given))
    names, options = given[:first], given[first:]
    if options and len(names) != 1:
        sys.exit("options belong to one benchmark: python -m benchmarks NAME --option value")
    for name in names or known:
        if name not in known:
            sys.exit(f"no benchmark {name!r}; there are: {', '.join(known)}")
        print(f"\n== {name} ==", flush=True)
        sys.argv = [f"benchmarks {name}", *options]
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
