"""``crew up``: starting, keeping, ending, and refusing to start."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path

import psycopg
import pytest

from services.cli.home import Layout
from tests.integration.operate.crew import alive, children_of, comm, running_crew, wait_until

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads /proc of Linux")


@pytest.fixture
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # Short: a path of a socket has 107 bytes.
    return tmp_path_factory.mktemp("c", numbered=True)


def layout_of(root: Path) -> Layout:
    return Layout(root / "home", root / "run")


def test_the_first_start_makes_the_home_and_the_second_uses_it(root: Path) -> None:
    with running_crew(root) as crew:
        assert crew.stop() == 0
        assert "Making the database" in crew.output
    home = root / "home"
    assert {path.name for path in home.iterdir()} >= {"logs", "backups", "secrets", "postgres"}
    assert home.stat().st_mode & 0o777 == 0o700
    with running_crew(root) as crew:
        assert "Making the database" not in crew.output
        with psycopg.connect(layout_of(root).cluster.url("crew_app")) as connection:
            assert connection.execute("select count(*) from conversations").fetchone() == (0,)
        assert crew.stop() == 0


def test_a_stop_ends_everything_in_order_and_soon(root: Path) -> None:
    with running_crew(root) as crew:
        tree = crew.tree()
        assert len(tree) > 5
        began = time.monotonic()
        assert crew.stop() == 0
        # Five seconds are promised; the machine may be busy.
        assert time.monotonic() - began < 15
        assert not [pid for pid in tree if alive(pid)]
        for name in ("tools", "orchestrator", "gateway"):
            assert (root / "run" / f"{name}.stopped").read_text() == "in order"
        assert "database system is shut down" in (root / "home/logs/postgres.log").read_text()


@pytest.mark.parametrize("name", ["orchestrator", "tools", "gateway"])
def test_a_killed_service_is_started_again(root: Path, name: str) -> None:
    with running_crew(root) as crew:
        first = crew.pid(name)
        others = {other: crew.pid(other) for other in ("orchestrator", "tools", "gateway") if other != name}
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: not alive(first))
        wait_until(lambda: crew.pid(name) != first)
        assert {other: crew.pid(other) for other in others} == others
        assert f"{name} was ended by signal 9" in crew.output
        assert crew.stop() == 0


def test_a_killed_postgres_is_started_again_and_has_lost_nothing(root: Path) -> None:
    with running_crew(root) as crew:
        url = layout_of(root).cluster.url("crew_owner")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("create table kept (n integer)")
            connection.execute("insert into kept values (42)")
        first = next(pid for pid in children_of(crew.process.pid) if comm(pid) == "postgres")
        os.kill(first, signal.SIGKILL)

        def reads_again() -> bool:
            try:
                with psycopg.connect(url, connect_timeout=5) as connection:
                    return connection.execute("select n from kept").fetchone() == (42,)
            except psycopg.OperationalError:
                return False

        wait_until(lambda: not alive(first))
        wait_until(reads_again)
        assert crew.stop() == 0


def test_killing_the_parent_takes_everything_with_it_and_the_next_start_goes_on(root: Path) -> None:
    with running_crew(root) as crew:
        tree = crew.tree()
        crew.process.kill()
        crew.process.wait(30)
        wait_until(lambda: not [pid for pid in tree if alive(pid)])
    with running_crew(root) as crew:
        assert crew.stop() == 0


@pytest.mark.spec("AGT-013")
def test_only_the_orchestrator_is_given_keys_database_and_home(root: Path) -> None:
    with running_crew(root) as crew:
        told = {name: (root / "run/told" / name).read_text() for name in ("orchestrator", "tools", "gateway")}
        assert "OPENAI_API_KEY=sk-not-for-everybody" in told["orchestrator"]
        assert "MY_AGENT_DATABASE_URL=postgresql://crew_app:" in told["orchestrator"]
        assert "crew_owner" not in told["orchestrator"]
        for name in ("tools", "gateway"):
            assert "sk-not-for-everybody" not in told[name]
            assert "DATABASE_URL" not in told[name]
            assert "MY_AGENT_HOME=" not in told[name]
            files = (root / "run/files" / name).read_text()
            assert "memfd:variables" not in files
            assert ".lock" not in files
        assert "memfd:variables" in (root / "run/files/orchestrator").read_text()
        assert crew.stop() == 0


@pytest.mark.spec("TLS-246")
def test_a_service_is_closed_to_others_of_the_same_user(root: Path) -> None:
    with running_crew(root) as crew:
        for name in ("orchestrator", "tools", "gateway"):
            assert (root / "run" / "dumpable" / name).read_text() == "0"
        assert crew.stop() == 0


def test_a_refused_start_says_why_once_and_leaves_nothing(root: Path) -> None:
    (root / "run" / "refuse").mkdir(parents=True)
    (root / "run" / "refuse" / "gateway").touch()
    with running_crew(root, ready=False) as crew:
        assert crew.process.wait(60) == 1
        assert "Cannot listen on nowhere: refused for the test." in crew.output
        assert "Traceback" not in crew.output
        assert not children_of(crew.process.pid)
    assert "database system is shut down" in (root / "home/logs/postgres.log").read_text()


def test_a_service_that_crashes_at_the_start_ends_it_and_names_its_log(root: Path) -> None:
    (root / "run" / "crash").mkdir(parents=True)
    (root / "run" / "crash" / "tools").touch()
    with running_crew(root, ready=False) as crew:
        assert crew.process.wait(60) == 1
        assert "tools ended during the start" in crew.output
        assert str(root / "home/logs/tools.log") in crew.output
    assert "crashed for the test" in (root / "home/logs/tools.log").read_text()


def test_a_second_crew_in_the_same_home_is_refused(root: Path) -> None:
    with running_crew(root) as crew:
        (root / "second").mkdir()
        with running_crew(root / "second", ready=False, MY_AGENT_HOME=str(root / "home")) as second:
            assert second.process.wait(60) == 1
            assert (
                f"A crew is already running in {root / 'home'} (process {crew.process.pid})" in second.output
            )
        assert crew.pid("tools")
        assert crew.stop() == 0


def test_a_port_in_use_is_refused_before_anything_is_made(root: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with running_crew(root, ready=False, MY_AGENT_PORT=str(port)) as crew:
            assert crew.process.wait(60) == 1
            assert f"Port {port} on 127.0.0.1 is already in use" in crew.output
    assert not (root / "home" / "postgres").exists()


@pytest.mark.spec("AGT-016")
def test_a_broken_config_is_refused_with_the_key(root: Path) -> None:
    (root / "home").mkdir()
    (root / "home" / "config.yaml").write_text("max_step: 3\n")
    with running_crew(root, ready=False) as crew:
        assert crew.process.wait(60) == 1
        assert "there is no setting named max_step; did you mean max_steps?" in crew.output
        assert len(crew.output.strip().splitlines()) == 1
    assert {path.name for path in (root / "home").iterdir()} == {"config.yaml"}


@pytest.mark.spec("FLD-048")
def test_data_of_another_major_version_are_refused_and_left_alone(root: Path) -> None:
    data = root / "home" / "postgres"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("17\n")
    with running_crew(root, ready=False) as crew:
        assert crew.process.wait(60) == 1
        assert "Postgres 17" in crew.output
        assert "Postgres 18" in crew.output
        assert "crew backup" in crew.output
        assert "crew restore" in crew.output
    assert [path.name for path in data.iterdir()] == ["PG_VERSION"]


def test_what_a_killed_first_start_left_of_the_database_is_made_anew(root: Path) -> None:
    half = root / "home" / ".postgres.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    with running_crew(root) as crew:
        assert crew.stop() == 0
    assert not half.exists()


def test_a_service_that_is_never_ready_is_named_and_everything_stopped(root: Path) -> None:
    (root / "run" / "hang").mkdir(parents=True)
    (root / "run" / "hang" / "tools").touch()
    with running_crew(root, ready=False, READY_SECONDS="2") as crew:
        assert crew.process.wait(60) == 1
        assert "tools was not ready within 2 s" in crew.output
    assert "database system is shut down" in (root / "home/logs/postgres.log").read_text()
