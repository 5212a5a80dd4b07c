"""Runs the script sandbox as a process of its own: ``python -m services.script_sandbox``."""

import os
import sys

from services.common.process import run_service
from services.common.settings import ScriptSandboxSettings
from services.script_sandbox.app import serve

if __name__ == "__main__":
    sys.exit(run_service("script_sandbox", ScriptSandboxSettings, serve, os.environ))
