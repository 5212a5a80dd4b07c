"""Runs the orchestrator as a process of its own: ``python -m services.orchestrator``."""

import os
import sys

from services.common.process import run_service
from services.common.settings import OrchestratorSettings
from services.orchestrator.app import serve

if __name__ == "__main__":
    sys.exit(run_service("orchestrator", OrchestratorSettings, serve, os.environ))
