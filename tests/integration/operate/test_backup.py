"""Backup and restore: what comes out is what went in."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import psycopg
import pytest

from services.cli.archive.manifest import Manifest
from services.cli.home import Layout
from services.cli.postgres.cluster import Cluster
from services.cli.postgres.running import running
from services.orchestrator.store.migrate import known, migrate
from tests.fixtures.postgres import ScratchDatabase
from tests.integration.operate.crew import running_crew

CONVERSATION = "11111111-1111-1111-1111-111111111111"


def crew(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MY_AGENT_")}
    return subprocess.run(
        [sys.executable, "-P", "-m", "services.cli.main", *words],
        env=clean | environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def fill_database(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "insert into conversations (id, agent_id, channel, title, autonomous, cost_cap_usd, last_seq)"
            " values (%s, 'default', 'web', 'Hòa bình', false, 0.5, 2)",
            (CONVERSATION,),
        )
        connection.execute(
            "insert into messages (conversation_id, seq, role, author, content) values"
            " (%(c)s, 1, 'user', 'person', 'xin chào'), (%(c)s, 2, 'assistant', 'agent', repeat('ờ', 50000))",
            {"c": CONVERSATION},
        )


def fill_home(home: Path) -> None:
    for path, text in {
        "agents/ann/agent.yaml": "mode: work\n",
        "agents/ann/workspace/notes.md": "notes",
        "workspace/deep/er/file.txt": "deep",
        "users/owner/facts.md": "facts",
        "env": "OPENROUTER_API_KEY='sk-secret-key'\n",
        "secrets/gateway/gateway-to-orchestrator.token": "t" * 43,
        "logs/orchestrator.log": "log",
        "state/tools/calls.sqlite": "calls",
    }.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text)
    (home / "agents/ann/workspace/run.sh").write_text("#!/bin/sh\n")
    (home / "agents/ann/workspace/run.sh").chmod(0o755)
    (home / "agents/ann/workspace/empty").mkdir()
    (home / "agents/ann/workspace/link").symlink_to("notes.md")
    (home / "agents/ann/workspace/outside").symlink_to("/etc/passwd")
    (home / "agents/ann/workspace/climbing").symlink_to("../../../../elsewhere")
    (home / "agents/ann/workspace/second").hardlink_to(home / "agents/ann/workspace/notes.md")
    os.mkfifo(home / "agents/ann/workspace/pipe")


def rows(url: str) -> list[object]:
    with psycopg.connect(url) as connection:
        return [
            connection.execute(f"select * from {table} order by 1").fetchall()
            for table in ("conversations", "messages", "schema_version", "audit.calls")
        ]


@pytest.mark.spec("FLD-047")
def test_a_backup_of_a_running_crew_restores_to_the_same(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("b")
    archive = tmp_path / "crew.tar.gz"
    fill_home(root / "home")
    with running_crew(root) as up:
        layout = Layout(root / "home", root / "run")
        fill_database(layout.cluster.url("crew_app"))
        before = rows(layout.cluster.url("crew_owner"))
        done = crew(
            "backup", str(archive), MY_AGENT_HOME=str(root / "home"), MY_AGENT_RUN_DIR=str(root / "run")
        )
        assert done.returncode == 0, done.stderr
        assert up.stop() == 0
    assert archive.stat().st_mode & 0o777 == 0o600

    other = tmp_path_factory.mktemp("o")
    done = crew(
        "restore", str(archive), MY_AGENT_HOME=str(other / "home"), MY_AGENT_RUN_DIR=str(other / "run")
    )
    assert done.returncode == 0, done.stderr
    assert "held no keys" in done.stdout
    restored = other / "home"
    workspace = restored / "agents/ann/workspace"
    assert (workspace / "notes.md").read_text() == "notes"
    assert (workspace / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (workspace / "empty").is_dir()
    assert (workspace / "link").readlink() == Path("notes.md")
    assert not (workspace / "outside").is_symlink()
    assert not (workspace / "climbing").is_symlink()
    assert (workspace / "second").read_bytes() == (workspace / "notes.md").read_bytes()
    assert not (workspace / "pipe").exists()
    assert (restored / "workspace/deep/er/file.txt").read_text() == "deep"
    assert not (restored / "env").exists()
    assert not (restored / "logs").exists()
    assert not (restored / ".restoring").exists()

    with running_crew(other) as up:
        assert rows(Layout(restored, other / "run").cluster.url("crew_owner")) == before
        url = Layout(restored, other / "run").cluster.url("crew_app")
        with psycopg.connect(url) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("delete from audit.calls")
        assert up.stop() == 0


@pytest.mark.spec("FLD-047")
def test_secrets_are_in_only_when_asked_for(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.mktemp("s")
    fill_home(root / "home")
    settings = {"MY_AGENT_HOME": str(root / "home"), "MY_AGENT_RUN_DIR": str(root / "run")}
    stopped_database(root)
    assert crew("backup", str(tmp_path / "without"), **settings).returncode == 0
    assert crew("backup", str(tmp_path / "with"), "--secrets", **settings).returncode == 0
    with tarfile.open(tmp_path / "without") as archive:
        names = archive.getnames()
        assert not [name for name in names if "secrets" in name or name.endswith("/env")]
        assert not [name for name in names if "postgres" in name or "logs" in name]
    with tarfile.open(tmp_path / "with") as archive:
        names = archive.getnames()
        assert "home/env" in names
        assert "home/secrets/gateway/gateway-to-orchestrator.token" in names
        assert not [name for name in names if name.startswith("home/secrets/postgres/")]


@pytest.mark.spec("FLD-047")
def test_restoring_an_older_schema_migrates_it(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, empty_database: ScratchDatabase
) -> None:
    """The archive of a release with the first migration alone, and one more now."""
    archive = tmp_path / "old"
    home = tmp_path_factory.mktemp("h")
    migrate(empty_database.owner_url)
    done = crew(
        "backup",
        str(archive),
        MY_AGENT_HOME=str(home),
        MY_AGENT_MIGRATION_DATABASE_URL=empty_database.owner_url,
    )
    assert done.returncode == 0, done.stderr
    later = tmp_path / "later"
    later.mkdir()
    for file in known():
        (later / file.file).write_text(file.text)
    newest = known()[-1].n + 1
    (later / f"{newest:04}_more.sql").write_text("create table more (n integer);")
    root = tmp_path_factory.mktemp("r")
    code = (
        "import sys; from pathlib import Path; from services.orchestrator.store import migrate as m;"
        f"m.MIGRATIONS = Path({str(later)!r}); m.known.__wrapped__.__defaults__ = (m.MIGRATIONS,);"
        "m.migrate.__kwdefaults__['folder'] = m.MIGRATIONS;"
        "from services.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "restore", str(archive)],
        env=os.environ | {"MY_AGENT_HOME": str(root / "home"), "MY_AGENT_RUN_DIR": str(root / "run")},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert f"from schema {newest - 1} to {newest}" in done.stdout
    cluster = Layout(root / "home", root / "run").cluster
    with running(cluster), psycopg.connect(cluster.url("crew_app")) as connection:
        assert connection.execute("select count(*) from more").fetchone() == (0,)


def test_workspaces_outside_of_the_home_move_between_deployments(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, database: ScratchDatabase
) -> None:
    home, workspaces = tmp_path / "home", tmp_path / "workspaces"
    (home / "agents" / "ann").mkdir(parents=True)
    (home / "agents/ann/agent.yaml").write_text("mode: work\n")
    for agent in ("default", "ann"):
        (workspaces / agent / "sub").mkdir(parents=True)
        (workspaces / agent / "sub" / "file").write_text(agent)
    done = crew(
        *("backup", str(tmp_path / "archive")),
        MY_AGENT_HOME=str(home),
        MY_AGENT_WORKSPACES_DIR=str(workspaces),
        MY_AGENT_MIGRATION_DATABASE_URL=database.owner_url,
    )
    assert done.returncode == 0, done.stderr
    native = tmp_path_factory.mktemp("n")
    done = crew(
        *("restore", str(tmp_path / "archive")),
        MY_AGENT_HOME=str(native / "home"),
        MY_AGENT_RUN_DIR=str(native / "run"),
    )
    assert done.returncode == 0, done.stderr
    assert (native / "home/workspace/sub/file").read_text() == "default"
    assert (native / "home/agents/ann/workspace/sub/file").read_text() == "ann"
    assert (native / "home/agents/ann/agent.yaml").exists()


def test_a_restore_into_a_used_home_or_database_changes_nothing(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, database: ScratchDatabase
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    archive = tmp_path / "archive"
    named = {"MY_AGENT_MIGRATION_DATABASE_URL": database.owner_url}
    assert crew("backup", str(archive), MY_AGENT_HOME=str(home), **named).returncode == 0
    fill_database(database.url)
    before = rows(database.owner_url)
    into = tmp_path / "into"
    done = crew("restore", str(archive), MY_AGENT_HOME=str(into), **named)
    assert done.returncode == 1
    assert "already holds a crew" in done.stderr
    assert rows(database.owner_url) == before
    used = tmp_path / "used"
    used.mkdir()
    (used / "mine").write_text("mine")
    done = crew("restore", str(archive), MY_AGENT_HOME=str(used))
    assert done.returncode == 1
    assert "is not empty" in done.stderr
    assert {path.name for path in used.iterdir()} <= {"mine", ".lock"}


def hostile(manifest: bytes, *entries: tarfile.TarInfo) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        first = tarfile.TarInfo("manifest.json")
        first.size = len(manifest)
        archive.addfile(first, io.BytesIO(manifest))
        for entry in entries:
            entry.size = 4 if entry.isreg() else 0
            archive.addfile(entry, io.BytesIO(b"evil"))
    return packed.getvalue()


def named(name: str, **fields: object) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    for key, value in fields.items():
        setattr(entry, key, value)
    return entry


GOOD = Manifest("0.1.0", 1, "2026-01-01T00:00:00+00:00", False).encode()
ARCHIVES: Mapping[str, Callable[[], bytes]] = {
    "no archive": lambda: b"hello",
    "empty": lambda: b"",
    "cut off": lambda: hostile(GOOD, named("home/x"))[:60],
    "no manifest": lambda: hostile(b"[]"),
    "huge numbers": lambda: hostile(b'{"format": 1e999}'),
    "later format": lambda: hostile(GOOD.replace(b'"format": 1', b'"format": 2')),
    "later schema": lambda: hostile(GOOD.replace(b'"schema": 1', b'"schema": 9999')),
    "climbs out": lambda: hostile(GOOD, named("home/../../../evil")),
    "absolute": lambda: hostile(GOOD, named("/tmp/evil")),
    "elsewhere": lambda: hostile(GOOD, named("other/evil")),
    "link out": lambda: hostile(
        GOOD, named("home/l", type=tarfile.SYMTYPE, linkname="../../.."), named("home/l/evil")
    ),
    "hard link out": lambda: hostile(
        GOOD, named("home/h", type=tarfile.LNKTYPE, linkname="../../etc/passwd")
    ),
    "device": lambda: hostile(GOOD, named("home/d", type=tarfile.CHRTYPE, devmajor=1, devminor=3)),
    "no database": lambda: hostile(GOOD, named("home/x")),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_hostile_archive_is_refused_and_writes_nothing_outside(tmp_path: Path, name: str) -> None:
    archive = tmp_path / "archive"
    archive.write_bytes(ARCHIVES[name]())
    home = tmp_path / "deep" / "er" / "home"
    done = crew("restore", str(archive), MY_AGENT_HOME=str(home), MY_AGENT_RUN_DIR=str(tmp_path / "run"))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert [path for path in tmp_path.glob("**/evil") if ".restoring" not in path.parts] == []
    assert {path.name for path in home.iterdir()} <= {".restoring", ".lock"}


def test_an_archive_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path, database: ScratchDatabase
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    named = {"MY_AGENT_HOME": str(home), "MY_AGENT_MIGRATION_DATABASE_URL": database.owner_url}
    missing = tmp_path / "missing" / "archive"
    done = crew("backup", str(missing), **named)
    assert done.returncode == 1
    assert "cannot be written" in done.stderr


def stopped_database(root: Path) -> None:
    """A home with a migrated database that does not run."""
    cluster: Cluster = Layout(root / "home", root / "run").cluster
    cluster.initialise()
    with running(cluster):
        cluster.provision()
        migrate(cluster.url("crew_owner"))
