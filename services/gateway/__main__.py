"""Runs the gateway as a process of its own: ``python -m services.gateway``."""

import os
import sys

from services.common.process import run_service
from services.common.settings import GatewaySettings
from services.gateway.app import serve

if __name__ == "__main__":
    sys.exit(run_service("gateway", GatewaySettings, serve, os.environ))
