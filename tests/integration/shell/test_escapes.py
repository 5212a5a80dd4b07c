"""Trying to get out of the sandbox, in each of its forms.

Every attempt is a piece of Python that runs inside and raises when it is held off. What it would have
changed outside is looked at from outside as well.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.tools.shell.sandbox.shell_sandbox import ShellSandbox

from .conftest import PYTHON, Shell

# Runs the attempts of a JSON file one by one, each in a process of its own, and prints the names of
# those that were not held off. Ended by a signal counts as held off.
HARNESS = """
import ctypes, fcntl, json, os, signal, socket, struct, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    result = libc.syscall(*[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
X86 = os.uname().machine == "x86_64"
free = []
for name, source in json.load(open(sys.argv[1])).items():
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        try:
            exec(source, globals())
        except (OSError, subprocess.SubprocessError):
            os._exit(1)
        except BaseException as error:
            print("broken attempt", name, repr(error), flush=True)
            os._exit(2)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status == 0:
        free.append(name)
print("NOT HELD OFF:", json.dumps(free))
"""

SOCKETS = {
    **{
        f"family_{family}_type_{kind}": f"socket.socket({family}, {kind})"
        for family in range(1, 47)
        for kind in (1, 2, 3, 5)
    },
    "datagram_pair": "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
    "raw_pair": "socket.socketpair(socket.AF_UNIX, 3)",
    "resolver": "socket.getaddrinfo('made-up-name.example.com', 80)",
    "listening": "import http.server; http.server.HTTPServer(('', 0), None)",
    "bash_tcp": "subprocess.run(['bash', '-c', 'exec 3<>/dev/tcp/127.0.0.1/' + PORT], check=True)",
    "bash_udp": "subprocess.run(['bash', '-c', 'echo x > /dev/udp/127.0.0.1/53'], check=True)",
}

KERNEL = {
    "io_uring_setup": "call(425, 1, ctypes.create_string_buffer(120))",
    "io_uring_enter": "call(426, 0, 0, 0, 0, None, 0)",
    "io_uring_register": "call(427, -1, 0, None, 0)",
    "user_namespace": "call(272 if X86 else 97, 0x10000000)",
    "mount_namespace": "call(272 if X86 else 97, 0x20000)",
    "net_namespace": "call(272 if X86 else 97, 0x40000000)",
    "cloned_namespace": "call(56 if X86 else 220, 0x10000000 | 17, 0, 0, 0, 0)",
    "clone3": "call(435, ctypes.create_string_buffer(struct.pack('8Q', 0x10000000,0,0,0,17,0,0,0)), 64)",
    "setns": "call(308 if X86 else 268, os.open('/proc/self/ns/user', os.O_RDONLY), 0)",
    "mount": "call(165 if X86 else 40, b'none', WRITABLE.encode(), b'tmpfs', 0, None)",
    "unmount": "call(166 if X86 else 39, b'/proc', 2)",
    "new_mount": "call(430, b'tmpfs', 0)",
    "open_tree": "call(428, -100, b'/', 1)",
    "chroot": "os.chroot(WRITABLE)",
    "pivot_root": "call(155 if X86 else 41, b'/', b'/')",
    "trace_me": "call(101 if X86 else 117, 0, 0, 0, 0)",
    "trace_parent": "call(101 if X86 else 117, 0x4206, os.getppid(), 0, 0)",
    "bpf": "call(321 if X86 else 280, 0, ctypes.create_string_buffer(120), 120)",
    "perf": "call(298 if X86 else 241, ctypes.create_string_buffer(120), 0, -1, -1, 0)",
    "load_module": "call(175 if X86 else 105, b'x', 1, b'')",
    "keyring": "call(250 if X86 else 219, 0, -3, 1)",
    "add_key": "call(248 if X86 else 217, b'user', b'x', b'y', 1, -3)",
    "userfault": "call(323 if X86 else 282, 0)",
    "by_handle": "call(304 if X86 else 265, -100, ctypes.create_string_buffer(64), 0)",
    "fanotify": "call(300 if X86 else 262, 0x200, 0)",
    "kexec": "call(246 if X86 else 104, 0, 0, None, 0)",
    "set_time": "call(227 if X86 else 112, 0, ctypes.create_string_buffer(16))",
    "host_name": "socket.sethostname('taken')",
    "push_characters": "import pty; m, s = pty.openpty(); fcntl.ioctl(s, 0x5412, b'x')",
    "push_to_terminal": "fcntl.ioctl(os.open('/dev/tty', os.O_RDWR), 0x5412, b'x')",
    "privileges": (
        "lines = open('/proc/self/status').read().splitlines()\n"
        "fields = dict(line.split(':\\t') for line in lines if ':\\t' in line)\n"
        "none = {name: '0' * 16 for name in ('CapInh', 'CapPrm', 'CapEff', 'CapAmb')}\n"
        "if fields | none | {'NoNewPrivs': '1'} == fields: raise OSError"
    ),
    "device_node": "os.mknod(WRITABLE + '/zero', 0o020666, os.makedev(1, 5))",
    "setuid_program": "subprocess.run(['su', '-c', 'true', 'nobody'], check=True, stdin=subprocess.DEVNULL)",
}
FOREIGN_ABI = {
    "x32": "call(0x40000000 + 39)",
    "int80": (
        "import mmap\n"
        "m = mmap.mmap(-1, 4096, prot=7)\n"
        "m.write(bytes.fromhex('b814000000cd80c3'))\n"
        "ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()"
    ),
}

FILES = {
    "create": "open(OUTSIDE + '/new', 'w')",
    "create_in_workspace": "open(WORKSPACE + '/new', 'w')",
    "append": "open(KEPT, 'a')",
    "truncate": "os.truncate(KEPT, 0)",
    "open_truncating": "os.open(KEPT, os.O_RDONLY | os.O_TRUNC)",
    "open_both_ways": "os.open(KEPT, os.O_RDWR)",
    "remove": "os.unlink(KEPT)",
    "remove_folder": "os.rmdir(OUTSIDE + '/folder')",
    "make_folder": "os.mkdir(OUTSIDE + '/made')",
    "link_out": "os.link(KEPT, WRITABLE + '/hard')",
    "link_in": "open(WRITABLE + '/a', 'w'); os.link(WRITABLE + '/a', OUTSIDE + '/hard')",
    "rename_out": "open(WRITABLE + '/b', 'w'); os.rename(WRITABLE + '/b', OUTSIDE + '/moved')",
    "rename_in": "os.rename(KEPT, WRITABLE + '/taken')",
    "exchange": (
        "open(WRITABLE + '/c', 'w')\n"
        "call(316 if X86 else 276, -100, KEPT.encode(), -100, (WRITABLE + '/c').encode(), 2)"
    ),
    "symbolic_link_out": "os.symlink('/etc/passwd', OUTSIDE + '/link')",
    "through_symbolic_link": "os.symlink(KEPT, WRITABLE + '/sym'); open(WRITABLE + '/sym', 'w')",
    "through_folder_link": "os.symlink(OUTSIDE, WRITABLE + '/symd'); open(WRITABLE + '/symd/new', 'w')",
    "through_dots": "open(WRITABLE + '/../new', 'w')",
    "through_proc_root": "open('/proc/self/root' + OUTSIDE + '/new', 'w')",
    "through_proc_fd": "d = os.open(OUTSIDE, os.O_PATH); open(f'/proc/self/fd/{d}/new', 'w')",
    "reopened": "d = os.open(WORKSPACE + '/read', os.O_RDONLY); open(f'/proc/self/fd/{d}', 'w')",
    "fifo": "os.mkfifo(OUTSIDE + '/fifo')",
    "allocate": "d = os.open(KEPT, os.O_RDONLY); os.posix_fallocate(d, 0, 100)",
    "attribute": "os.setxattr(KEPT, 'user.mark', b'x')",
    "owner": "os.chown(KEPT, os.getuid(), os.getgid())",
    "owner_by_descriptor": "os.fchown(os.open(WORKSPACE + '/read', os.O_RDONLY), os.getuid(), os.getgid())",
    "shell_start_file": "open(os.path.expanduser('~/.bashrc'), 'a')",
    "git_hook": "open(WORKSPACE + '/.git/hooks/pre-commit', 'w')",
    "user_unit": "os.makedirs(os.path.expanduser('~/.config/systemd/user/evil')); raise SystemError",
    "own_limits": "open('/proc/sys/kernel/core_pattern', 'w')",
    "machine_setting": "open('/sys/kernel/mm/ksm/run', 'w')",
    "crontab": "open('/var/spool/cron/crontabs/root', 'a')",
    "etc": "open('/etc/crew-was-here', 'w')",
    "device_folder": "open('/dev/crew-was-here', 'w')",
    "machine_temp": "open(MACHINE_TEMP + '/new', 'w')",
    "read_machine_temp": "open(MACHINE_TEMP + '/kept').read()",
    "other_agents_temp": "os.listdir(OTHER_TEMP)",
    "read_hidden": "open(HIDDEN + '/key').read()",
    "list_hidden": "os.listdir(HIDDEN)",
    "write_hidden": "open(HIDDEN + '/new', 'w')",
    "hidden_through_link": "os.symlink(HIDDEN, WRITABLE + '/h'); open(WRITABLE + '/h/key').read()",
    "hidden_file": "open(HIDDEN_FILE).read()",
    "rename_hidden": "os.rename(HIDDEN, WRITABLE + '/mine')",
    "create_missing_hidden": "os.makedirs(MISSING_HIDDEN); open(MISSING_HIDDEN + '/planted', 'w')",
}
# TLS-305, TLS-308: the fallback says that it cannot hold these.
MODE_AND_TIMES = {
    "mode": "os.chmod(KEPT, 0o777)",
    "mode_by_descriptor": "os.fchmod(os.open(WORKSPACE + '/read', os.O_RDONLY), 0o777)",
    "times": "os.utime(KEPT, (1, 1))",
}

OUTSIDERS = {
    "signal": "os.kill(OUTSIDER, 0)",
    "kill": "os.kill(OUTSIDER, 9)",
    "kill_service": "os.kill(SERVICE, 9)",
    "signal_by_descriptor": "signal.pidfd_send_signal(os.pidfd_open(OUTSIDER), 9)",
    "queued_signal": "call(129 if X86 else 138, OUTSIDER, 9, ctypes.create_string_buffer(128))",
    "thread_signal": "call(234 if X86 else 131, OUTSIDER, OUTSIDER, 9)",
    "signal_by_file": (
        "r, w = os.pipe()\n"
        "fcntl.fcntl(r, fcntl.F_SETOWN, OUTSIDER)\n"
        "fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)\n"
        "os.write(w, b'x'); time.sleep(0.2); raise OSError"
    ),
    "limits": "import resource; resource.prlimit(OUTSIDER, resource.RLIMIT_NOFILE, (10, 10))",
    "read_limits": "import resource; resource.prlimit(OUTSIDER, resource.RLIMIT_NOFILE)",
    "priority": "os.setpriority(os.PRIO_PROCESS, OUTSIDER, 19)",
    "priority_of_user": "os.setpriority(os.PRIO_USER, os.getuid(), 19)",
    "affinity": "os.sched_setaffinity(OUTSIDER, {0})",
    "scheduler": "os.sched_setscheduler(OUTSIDER, os.SCHED_BATCH, os.sched_param(0))",
    "io_priority": "call(251 if X86 else 30, 1, OUTSIDER, 3 << 13)",
    "environment": "open(f'/proc/{OUTSIDER}/environ', 'rb').read()",
    "memory": "open(f'/proc/{OUTSIDER}/mem', 'rb').read(1)",
    "maps": "open(f'/proc/{OUTSIDER}/maps').read()",
    "root": "os.listdir(f'/proc/{OUTSIDER}/root')",
    "directory": "os.listdir(f'/proc/{OUTSIDER}/cwd')",
    "descriptors": "os.readlink(f'/proc/{OUTSIDER}/fd/0')",
    "open_descriptor": "open(f'/proc/{OUTSIDER}/fd/1', 'w')",
    "foreign_memory": "call(310 if X86 else 270, OUTSIDER, None, 0, None, 0, 0)",
    "foreign_descriptor": "call(438, os.pidfd_open(OUTSIDER), 0, 0)",
    "move_pages": "call(279 if X86 else 239, OUTSIDER, 0, None, None, None, 0)",
    "attach": "call(101 if X86 else 117, 0x4206, OUTSIDER, 0, 0)",
    "shared_memory": "call(30 if X86 else 196, call(29 if X86 else 194, SEGMENT, 0, 0), 0, 0)",
    "guard": (
        "pid = os.getppid()\n"
        "for _ in range(6):\n"
        "    pid = int(open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[1])\n"
        "    if pid <= 1: raise OSError\n"
        "    os.kill(pid, 0) if b'guard' in open(f'/proc/{pid}/cmdline', 'rb').read() else None\n"
        "raise OSError"
    ),
}

HELPERS = [
    *("xdg-open x", "gio open x", "gdbus call --session", "dbus-send --session x", "busctl --user status"),
    *("systemctl --user status", "systemd-run --user true", "at now", "notify-send x", "xclip -o", "xsel -o"),
    *("wl-copy x", "flatpak-spawn true", "docker ps", "podman ps"),
]


class Ground:
    """What lies outside of the sandbox for the attempts to reach."""

    def __init__(self, shell: Shell, tmp_path: Path) -> None:
        self.shell = shell
        workspace = shell.workspace
        self.outside = workspace / "closed"
        for folder in (self.outside / "folder", workspace / ".git/hooks", workspace / "private"):
            folder.mkdir(parents=True)
        self.kept = self.outside / "kept"
        self.kept.write_text("kept")
        os.chmod(self.kept, 0o600)
        (workspace / "read").write_text("read")
        (workspace / "private/key").write_text("hidden")
        (workspace / "secret.env").write_text("hidden")
        other = tmp_path / "temps/another"
        other.mkdir()
        (other / "note").write_text("of another agent")
        self.machine_temp = tmp_path / "machine"
        self.machine_temp.mkdir()
        (self.machine_temp / "kept").write_text("of the machine")
        self.names = {
            "WORKSPACE": str(workspace),
            "WRITABLE": str(workspace / "out"),
            "OUTSIDE": str(self.outside),
            "KEPT": str(self.kept),
            "HIDDEN": str(workspace / "private"),
            "HIDDEN_FILE": str(workspace / "secret.env"),
            "MISSING_HIDDEN": str(workspace / "out/later"),
            "OTHER_TEMP": str(other),
            "MACHINE_TEMP": str(self.machine_temp),
            "SERVICE": os.getpid(),
        }
        self.confined = shell.granted(
            private_paths=[self.names[name] for name in ("HIDDEN", "HIDDEN_FILE", "MISSING_HIDDEN")]
        )

    async def not_held_off(self, attempts: dict[str, str], **names: object) -> list[str]:
        """Names of the attempts that got through."""
        header = "\n".join(f"{name} = {value!r}" for name, value in (self.names | names).items())
        (self.shell.workspace / "attempts.json").write_text(json.dumps(attempts))
        source = f"{header}\n{HARNESS}"
        result = await self.confined.python(source, self.shell.workspace / "attempts.json")
        assert "broken attempt" not in result.text, result.text
        last = [line for line in result.text.splitlines() if line.startswith("NOT HELD OFF:")]
        assert last, result.text
        found: list[str] = json.loads(last[0].removeprefix("NOT HELD OFF:"))
        return found

    def seen_outside(self) -> dict[str, object]:
        """Everything the attempts might have changed."""
        status = self.kept.stat()
        return {
            "text": self.kept.read_text(),
            "mode": status.st_mode,
            "modified": status.st_mtime_ns,
            "links": status.st_nlink,
            "outside": sorted(path.name for path in self.outside.iterdir()),
            "hidden": sorted(path.name for path in (self.shell.workspace / "private").iterdir()),
            "hooks": sorted(path.name for path in (self.shell.workspace / ".git/hooks").iterdir()),
            "read": (self.shell.workspace / "read").read_text(),
            "machine_temp": sorted(path.name for path in self.machine_temp.iterdir()),
        }


@pytest.fixture
def ground(closed: Shell, tmp_path: Path) -> Ground:
    return Ground(closed, tmp_path)


async def test_the_attempts_get_through_where_nothing_holds_them_off(
    plain: Shell, tmp_path: Path, outsider: asyncio.subprocess.Process
) -> None:
    """A control: without it, an attempt that is wrong in itself would count as held off."""
    (plain.workspace / "out").mkdir()
    ground = Ground(plain, tmp_path)
    files = (
        "create append link_out link_in rename_out through_symbolic_link through_proc_root reopened fifo "
        "read_machine_temp other_agents_temp read_hidden list_hidden hidden_through_link hidden_file"
    )
    harmless = {name: FILES[name] for name in files.split()} | MODE_AND_TIMES
    harmless |= {name: SOCKETS[name] for name in ("family_1_type_1", "family_2_type_1", "datagram_pair")}
    harmless |= {name: SOCKETS[name] for name in ("listening", "family_10_type_2")}
    outside = ("signal", "read_limits", "limits", "priority", "affinity", "environment", "maps", "directory")
    harmless |= {name: OUTSIDERS[name] for name in outside}
    harmless |= {name: KERNEL[name] for name in ("trace_me", "privileges", "clone3")}
    free = await ground.not_held_off(harmless, OUTSIDER=outsider.pid)
    # A container's own filter may refuse these two to everybody.
    assert set(harmless) - set(free) <= {"trace_me", "clone3"}


@pytest.mark.spec("TLS-289", "TLS-290", "TLS-291", "TLS-292", "TLS-293", "TLS-429")
async def test_without_network_no_socket_can_be_made(ground: Ground) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert await ground.not_held_off(SOCKETS, PORT=str(server.getsockname()[1])) == []


@pytest.mark.spec("TLS-282", "TLS-291")
async def test_local_programs_files_and_names_still_work_without_network(closed: Shell) -> None:
    (closed.workspace / "file").write_text("there\n")
    source = "import socket; a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1)); print(2)"
    result = await closed.result(
        f'cat file; {PYTHON} -I -S -c "{source}"; getent hosts localhost | wc -l; echo a | cat; '
        "cat <<E\nheredoc\nE\ngit init -q out/r && git -C out/r -c user.name=a -c user.email=b@c "
        "commit -q --allow-empty -m x && git -C out/r log --format=%s"
    )
    assert result.text.splitlines()[:7] == ["there", "b'x'", "2", "1", "a", "heredoc", "x"], result.text


@pytest.mark.spec("TLS-294", "TLS-306", "TLS-309")
async def test_no_kernel_interface_leads_out(ground: Ground) -> None:
    assert await ground.not_held_off(KERNEL) == []
    if os.uname().machine != "x86_64":
        pytest.skip("the foreign ABIs of this architecture are not tried")
    assert await ground.not_held_off(FOREIGN_ABI) == []


@pytest.mark.spec("TLS-300", "TLS-302", "TLS-305", "TLS-312", "TLS-313", "TLS-429")
async def test_nothing_outside_the_writable_paths_changes_and_nothing_hidden_is_read(ground: Ground) -> None:
    before = ground.seen_outside()
    assert await ground.not_held_off(FILES) == []
    assert ground.seen_outside() == before
    assert not (ground.shell.workspace / "out/later/planted").exists()


@pytest.mark.spec("TLS-305", "TLS-308")
async def test_mode_and_times_are_held_or_the_report_says_that_they_are_not(ground: Ground) -> None:
    before = ground.seen_outside()
    free = await ground.not_held_off(MODE_AND_TIMES)
    if ground.shell.sandbox.report.form == "bubblewrap":
        assert free == []
        assert ground.seen_outside() == before
    else:
        assert "does not hold off changes of mode and times" in ground.shell.sandbox.report.reason


@pytest.mark.spec("TLS-307")
async def test_processes_outside_cannot_be_touched(
    ground: Ground, outsider: asyncio.subprocess.Process, shared_segment: int
) -> None:
    limits = Path(f"/proc/{outsider.pid}/limits").read_text()
    free = await ground.not_held_off(OUTSIDERS, OUTSIDER=outsider.pid, SEGMENT=shared_segment)
    if ground.shell.sandbox.report.form == "bubblewrap":
        # Within its own namespace the user has no other processes.
        free = [name for name in free if name != "priority_of_user"]
    assert free == []
    assert outsider.returncode is None
    assert Path(f"/proc/{outsider.pid}/limits").read_text() == limits
    assert os.getpriority(os.PRIO_PROCESS, outsider.pid) == 0


@pytest.mark.spec("TLS-307")
async def test_in_bubblewrap_no_outside_process_is_even_seen(closed: Shell) -> None:
    if closed.sandbox.report.form != "bubblewrap":
        pytest.skip("the fallback shows the names of other processes")
    result = await closed.call(
        "for p in /proc/[0-9]*; do cat $p/comm; done | sort -u; ls /proc | grep -c '^[0-9]'"
    )
    assert int(result.text.splitlines()[-1]) < 10


@pytest.fixture
def shared_segment() -> Iterator[int]:
    """Memory that a process outside shares under a key."""
    libc = ctypes.CDLL(None, use_errno=True)
    key = 0x43524557
    segment = libc.shmget(key, 4096, 0o1600)
    assert segment != -1
    yield key
    libc.shmctl(segment, 0, None)


@pytest.mark.spec("TLS-296", "TLS-297", "TLS-298", "TLS-299")
@pytest.mark.parametrize("network", [False, True])
async def test_services_that_act_on_a_commands_behalf_cannot_be_reached(
    sandbox: ShellSandbox, grant: object, tmp_path: Path, network: bool, request: pytest.FixtureRequest
) -> None:
    shell: Shell = request.getfixturevalue("networked" if network else "closed")
    ground = Ground(shell, tmp_path)
    path = shell.workspace / "service.sock"
    name = f"\0crew-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as by_path, socket.socket(socket.AF_UNIX) as abstract:
        by_path.bind(str(path))
        abstract.bind(name)
        for server in (by_path, abstract):
            server.listen()
        datagram = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        datagram.bind(str(shell.workspace / "log.sock"))
        attempts = {
            "by_path": f"socket.socket(socket.AF_UNIX).connect({str(path)!r})",
            "abstract": f"socket.socket(socket.AF_UNIX).connect({name!r})",
            "datagram": (
                "a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
                f"a.sendto(b'x', {str(shell.workspace / 'log.sock')!r})"
            ),
            "reused_pair": f"a, b = socket.socketpair(); b.close(); a.connect({str(path)!r})",
            "inherited_place": "os.stat('/run/docker.sock')"
            if shell.sandbox.report.form == "bubblewrap"
            else "raise OSError",
            **{
                f"helper {line}": f"subprocess.run({line.split()!r}, check=True, timeout=5)"
                for line in HELPERS
            },
        }
        assert await ground.not_held_off(attempts) == []
        datagram.setblocking(False)
        with pytest.raises(BlockingIOError):
            datagram.recv(1)
        datagram.close()


@pytest.mark.spec("TLS-301", "TLS-302")
async def test_each_agent_has_a_temporary_folder_of_its_own_that_lasts(closed: Shell) -> None:
    assert (await closed.call("echo kept > $TMPDIR/note; echo $TMPDIR; cat $TMPDIR/note")).text.endswith(
        "kept\n"
    )
    again = await closed.call("cat $TMPDIR/note; echo $TMPDIR")
    assert again.text.startswith("kept\n")
    assert (Path(closed.grant.temp_dir) / "note").read_text() == "kept\n"
    if closed.sandbox.report.form == "bubblewrap":
        assert again.text.splitlines()[1] == "/tmp"
        assert (await closed.call("cat /tmp/note /var/tmp/note")).text == "kept\nkept\n"
    else:
        assert again.text.splitlines()[1] == closed.grant.temp_dir
        assert (await closed.result("touch /tmp/note")).is_error


@pytest.mark.spec("TLS-301")
async def test_an_agent_without_a_named_folder_gets_one_of_its_own(closed: Shell) -> None:
    unnamed = closed.granted(temp_dir="")
    first = await unnamed.call("echo mine > $TMPDIR/own; cat $TMPDIR/own")
    assert first.text == "mine\n"
    other = Shell(unnamed.sandbox, unnamed.grant, agent_id="somebody else")
    assert (await other.result("cat $TMPDIR/own")).is_error


@pytest.mark.spec("TLS-280")
async def test_without_writable_paths_the_workspace_is_read_only(closed: Shell) -> None:
    locked = closed.granted(shell_write_paths=[])
    result = await locked.result("touch new; touch $TMPDIR/ok && echo temp works")
    assert "temp works" in result.text
    assert "may write only in $TMPDIR" in result.text
    assert not (closed.workspace / "new").exists()


@pytest.mark.spec("TLS-281", "TLS-300", "TLS-304")
async def test_writes_go_where_the_profile_says_and_a_refused_one_says_what_to_do(closed: Shell) -> None:
    (closed.workspace / "log.txt").write_text("")
    (closed.workspace / ".git/hooks").mkdir(parents=True)
    shell = closed.granted(shell_write_paths=["out/deep", "log.txt"])
    result = await shell.result("echo a > out/deep/x && echo b >> log.txt && cat out/deep/x log.txt")
    assert result.text == "a\nb\n"
    for command in (
        "echo a > y",
        "echo a >> ~/.bashrc",
        "ln out/deep/x z",
        "touch .git/hooks/pre-commit",
        "mv log.txt other",
        "rm -r out",
    ):
        refused = await shell.result(command)
        assert refused.is_error, command
        assert "Status: BLOCKED" in refused.text
        assert "`out/deep`, `log.txt`" in refused.text


@pytest.mark.spec("TLS-304")
async def test_a_writable_path_that_leads_out_is_refused(closed: Shell, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (closed.workspace / "link").symlink_to(tmp_path / "elsewhere")
    for entry in ("link", "../elsewhere", "/etc", "link/below", "x/../../elsewhere"):
        refused = await closed.granted(shell_write_paths=[entry]).result("touch ran")
        assert refused.is_error
        assert "leads out of the workspace" in refused.text
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.spec("TLS-304")
async def test_a_command_cannot_widen_a_writable_path_within_another(closed: Shell) -> None:
    shell = closed.granted(shell_write_paths=["out", "out/sub"])
    await shell.call("rm -rf out/sub; ln -s .. out/sub")
    await shell.result("touch out/sub/widened widened")
    assert not (closed.workspace / "widened").exists()
    (closed.workspace / "out/inner").mkdir()
    (closed.workspace / "alias").symlink_to("out/inner")
    shell = closed.granted(shell_write_paths=["out", "alias"])
    assert "symbolic link" in (await shell.result("true")).text


@pytest.mark.spec("TLS-283")
async def test_a_script_just_written_goes_no_further_than_a_plain_command(closed: Shell) -> None:
    result = await closed.result(
        "printf '#!/bin/sh\\necho a > ../y\\n' > out/s; chmod +x out/s; cd out && ./s; $(echo touch ../z)"
    )
    assert result.is_error
    assert not (closed.workspace / "y").exists()
    assert not (closed.workspace / "z").exists()


async def test_two_agents_commands_at_once_do_not_end_each_other(closed: Shell) -> None:
    other = Shell(closed.sandbox, closed.grant, agent_id="another")
    texts = await asyncio.gather(
        closed.call("sleep 2; echo first"),
        *(other.call("sleep 0.2; echo second") for _ in range(3)),
    )
    assert [result.text for result in texts] == ["first\n", *["second\n"] * 3]
