"""A server that runs for as long as a block of code does."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import psycopg

from services.cli.postgres.cluster import Cluster
from services.cli.texts import texts
from services.common.start import StartError

# Recovery after a crash may take a while on a slow disk.
START_SECONDS = 120.0
_STOP_SECONDS = 20.0


@contextmanager
def running(cluster: Cluster, settings: Mapping[str, str] | None = None) -> Iterator[None]:
    """Run the server of a cluster; it has answered when the block begins and is gone when it ends.

    Raises:
        StartError: It ended, or did not answer in time, with its last words.
    """
    cluster.run.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryFile() as words:
        process = subprocess.Popen(
            cluster.server_command(os.getpid(), settings),
            env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
            stdin=subprocess.DEVNULL,
            stdout=words,
            stderr=words,
        )
        try:
            deadline = time.monotonic() + START_SECONDS
            while not answers(cluster):
                if process.poll() is not None or time.monotonic() > deadline:
                    words.seek(0)
                    said = words.read().decode(errors="replace").strip().splitlines()
                    raise not_answering(said)
                time.sleep(0.03)
            yield
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGQUIT)
                process.wait()


def answers(cluster: Cluster) -> bool:
    """Whether the server takes connections now."""
    try:
        psycopg.connect(cluster.url("postgres", "postgres"), connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


def not_answering(said: list[str]) -> StartError:
    """The refusal that quotes what the server said last."""
    return StartError(
        "error.postgres.not_answering",
        catalogue=texts(),
        seconds=int(START_SECONDS),
        words=" ".join(said[-3:])[-500:] or "-",
    )
