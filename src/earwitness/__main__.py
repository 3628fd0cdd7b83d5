"""``python -m earwitness``: the same program as the ``earwitness`` console script."""

from earwitness.cli import main

if __name__ == "__main__":
    main()
