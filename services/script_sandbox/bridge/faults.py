"""The two ways a script ends that are neither its doing nor a limit's."""

from __future__ import annotations


class ProtocolFault(Exception):
    """The worker or the caller said what the protocol does not have at this place (SCR-264)."""


class CallerGone(Exception):
    """The caller cancelled, or its side of the stream ended: nobody waits for this script."""
