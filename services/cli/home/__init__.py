"""The home folder: where its parts are, making it, and what stops a start in it."""

from services.cli.home.checks import check_disk, check_port, check_writable
from services.cli.home.layout import Layout, locked

__all__ = ["Layout", "check_disk", "check_port", "check_writable", "locked"]
