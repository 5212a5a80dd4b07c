"""The folders and first files of a home (AGT-002 to 006)."""

from __future__ import annotations

from pathlib import Path

from services.common.start import StartError
from services.common.wording import Locale, load
from services.orchestrator.agents.file import FILE_NAME

CONFIG_NAME = "config.yaml"
# Kept to the owner: it holds keys beside everything else.
_HOME_MODE = 0o700
# Set-group-id: files that any service makes belong to the folder's group (FLD-054).
_WORKSPACE_MODE = 0o2775


def create_home(home: Path, locale: Locale) -> None:
    """Make what a first start needs and is missing; nothing that exists is changed.

    Raises:
        StartError: A folder or file cannot be made.
    """
    make_folder(home, mode=_HOME_MODE)
    for folder in (home / "agents", home / "users" / "owner"):
        make_folder(folder)
    # Folders of logs or of the database may be there already; what a person wrote is not.
    written = (home / CONFIG_NAME, home / FILE_NAME, *(home / "agents").iterdir())
    if not any(path.exists() for path in written):
        words = load("orchestrator")
        _write_new(home / CONFIG_NAME, words.text(locale, "agents.first_files.config"))
        _write_new(home / FILE_NAME, words.text(locale, "agents.first_files.agent"))


def make_folder(path: Path, *, mode: int | None = None) -> None:
    """Make a folder and its parents unless it is there.

    Raises:
        StartError: It cannot be made, or something else has its name.
    """
    try:
        if path.is_dir():
            return
        path.mkdir(parents=True)
        if mode is not None:
            path.chmod(mode)
    except OSError as error:
        raise StartError(
            "agents.start.folder",
            catalogue=load("orchestrator"),
            path=path,
            problem=error.strerror or type(error).__name__,
        ) from None


def make_workspace(path: Path, umask: int) -> None:
    """Make a workspace whose files every service and the person can edit.

    Raises:
        StartError: It cannot be made.
    """
    make_folder(path, mode=_WORKSPACE_MODE & ~umask)


def _write_new(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return
    except OSError as error:
        raise StartError(
            "agents.start.folder",
            catalogue=load("orchestrator"),
            path=path,
            problem=error.strerror or type(error).__name__,
        ) from None
