"""The long form: ``python -m tests.chaos --kills 50 --seconds 600 [--seed N] [--keep FOLDER]``."""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

from tests.chaos.run import run


def main() -> int:
    """Run once and print; 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--keep", type=Path, help="existing folder that gets the services' logs")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    report = run(kills=options.kills, seconds=options.seconds, seed=options.seed, keep=options.keep)
    print(report)
    return 1 if report.broken else 0


if __name__ == "__main__":
    sys.exit(main())
