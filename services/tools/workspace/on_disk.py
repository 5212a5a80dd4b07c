"""The workspace tools, standing on the disk."""

from __future__ import annotations

from collections.abc import Sequence

from services.common.toolhost.contract import Tool
from services.tools.workspace.checks.checking import SyntaxChecks
from services.tools.workspace.disk.changing import DiskChanging
from services.tools.workspace.disk.finding import DiskFinding
from services.tools.workspace.disk.listing import DiskListing
from services.tools.workspace.disk.matching import installed_engine
from services.tools.workspace.disk.path_queue import PathQueue
from services.tools.workspace.disk.reading import DiskReading
from services.tools.workspace.disk.searching import DiskSearch
from services.tools.workspace.seen import SeenFiles
from services.tools.workspace.workspace_edit import WorkspaceEdit
from services.tools.workspace.workspace_glob import WorkspaceGlob
from services.tools.workspace.workspace_grep import WorkspaceGrep
from services.tools.workspace.workspace_list import WorkspaceList
from services.tools.workspace.workspace_read import WorkspaceRead
from services.tools.workspace.workspace_write import WorkspaceWrite


def workspace_tools(seen: SeenFiles, queue: PathQueue) -> Sequence[Tool]:
    """The tools on workspaces on disk, in the order in which they are declared.

    Args:
        seen: What conversations know of files.
        queue: Shared by everything in this process that changes workspace files.
    """
    changing, checks = DiskChanging(queue), SyntaxChecks()
    return (
        WorkspaceList(DiskListing()),
        WorkspaceRead(DiskReading(), seen),
        WorkspaceWrite(changing, seen, checks),
        WorkspaceEdit(changing, seen, checks),
        WorkspaceGrep(DiskSearch(installed_engine())),
        WorkspaceGlob(DiskFinding()),
    )
