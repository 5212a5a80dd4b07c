"""Runs the tools service as a process of its own: ``python -m services.tools``."""

import os
import sys

from services.common.process import run_service
from services.common.settings import ToolsSettings
from services.tools.app import serve

if __name__ == "__main__":
    sys.exit(run_service("tools", ToolsSettings, serve, os.environ))
