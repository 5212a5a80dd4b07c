"""The version of the crew, as it was installed."""

from importlib import metadata

VERSION = metadata.version("my-agent-crew")
