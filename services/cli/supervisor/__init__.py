"""Starting the services as children of one process, and keeping them running."""

from services.cli.supervisor.programs import Program, Report
from services.cli.supervisor.supervisor import ProgramEnded, Stopped, Supervisor

__all__ = ["Program", "ProgramEnded", "Report", "Stopped", "Supervisor"]
