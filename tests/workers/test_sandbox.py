"""What a closed-in process can and cannot do. Every test runs Python inside a real cell and looks at what came out."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelwright.judge.servers import CANDIDATE, judge_server
from kernelwright.workers import landlock, seccomp
from kernelwright.workers.fork_server import ForkServer
from kernelwright.workers.sandbox import COMPILER_REFUSAL, Cell, environment, readable_folders
from kernelwright.workers.worker import Worker


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with judge_server(threads=1) as made:
        yield made


@pytest.fixture
def cell(server: ForkServer) -> Iterator[Worker]:
    worker = server.spawn(CANDIDATE, sandboxed=True)
    yield worker
    worker.stop()


def run(worker: Worker, body: str) -> str:
    """Run statements in the candidate's worker; what they raise or assign to `said` comes back as the error's text."""
    source = "said = None\n" + body + "\nraise RuntimeError(repr(said))\n"
    from kernelwright.workers import bundle

    packed = bundle.pack([[], {}])
    try:
        message = {"op": "load", "source": source, "class": "ModelNew", "init": packed.header, "seed": 0, "threads": 1}
        reply, _ = worker.request(message, [packed.fd], timeout=60)
    finally:
        packed.close()
    return f"{reply['type']}: {reply['error']}"


needs_namespaces = pytest.mark.skipif(os.geteuid() != 0, reason="as root the namespaces are sure to be had")


@needs_namespaces
def test_the_strongest_level_is_reached_and_told(cell: Worker) -> None:
    assert cell.level == "namespaces+landlock+seccomp"


@needs_namespaces
def test_nothing_of_the_host_is_readable_but_the_tools(cell: Worker) -> None:
    project = Path(__file__).resolve().parents[2]
    said = run(
        cell,
        f"import os\nsaid = [os.path.exists(p) for p in ({str(project / 'pyproject.toml')!r}, '/root/.bashrc', '/etc/shadow', '/home')]",
    )
    assert "False, False, False, True" in said
    assert "kernel" in run(cell, "import os\nsaid = os.environ['HOME']")


def test_files_can_be_written_in_one_folder_only(cell: Worker) -> None:
    assert "5" in run(cell, "said = open('here', 'w').write('hello')")
    assert "5" in run(cell, "import tempfile\nsaid = tempfile.TemporaryFile('w').write('hello')")
    for place in ("/usr/x", "/etc/x", "/x"):
        assert "Error" in run(cell, f"open({place!r}, 'w')").replace("RuntimeError", "")


def test_there_is_no_network(cell: Worker) -> None:
    assert "PermissionError" in run(cell, "import socket\nsocket.socket(socket.AF_INET)")
    assert "None" in run(cell, "import socket\nsocket.socketpair()")


@pytest.mark.parametrize(
    "call",
    [
        "libc.ptrace(0, 0, 0, 0)",
        "libc.unshare(0x10000000)",
        "libc.mount(b'none', b'/tmp', b'tmpfs', 0, None)",
        "libc.syscall(321, 0, 0, 0)",
        "libc.syscall(298, 0, 0, 0, 0, 0)",
    ],
)
def test_dangerous_system_calls_are_refused(cell: Worker, call: str) -> None:
    said = run(cell, f"import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nr = {call}\nsaid = (r, ctypes.get_errno())")
    assert "(-1, 1)" in said


@needs_namespaces
def test_other_processes_are_invisible_and_the_keeper_cannot_be_killed(cell: Worker) -> None:
    said = run(cell, "import os\nsaid = sorted(int(p) for p in os.listdir('/proc') if p.isdigit())")
    assert "[1, 2]" in said
    assert "PermissionError" in run(cell, "import os\nos.kill(1, 9)")
    assert "PermissionError" in run(cell, "open('/proc/1/mem', 'rb')")


def test_the_environment_tells_nothing(cell: Worker) -> None:
    said = run(cell, "import os\nsaid = sorted(os.environ)\nsaid += [open('/proc/self/environ').read()]")
    assert "PYTEST" not in said
    assert "KEY" not in said.replace("KEYRING", "")


def test_memory_is_bounded(cell: Worker) -> None:
    assert "MemoryError" in run(cell, "bytearray(200 << 30)")
    assert cell.request({"op": "forget"}, timeout=10)[0]["ok"]


def test_a_compiler_works_inside(cell: Worker) -> None:
    body = "import subprocess\nopen('a.cpp', 'w').write('extern \"C\" int f() { return 42; }')\n"
    body += "subprocess.run(['g++', '-shared', '-fPIC', 'a.cpp', '-o', 'a.so'], check=True)\n"
    body += "import ctypes\nsaid = ctypes.CDLL('./a.so').f()"
    assert "42" in run(cell, body)


def test_each_worker_has_a_folder_of_its_own_that_vanishes(server: ForkServer) -> None:
    first = server.spawn(CANDIDATE, sandboxed=True)
    run(first, "open('left', 'w').write('for the next')")
    first.stop()
    second = server.spawn(CANDIDATE, sandboxed=True)
    assert "False" in run(second, "import os\nsaid = os.path.exists('left')")
    second.stop()


def test_without_namespaces_landlock_still_closes_the_file_system(server: ForkServer) -> None:
    if not landlock.abi():
        pytest.skip("this kernel has no landlock")
    saved, server.mode = server.mode, "landlock"
    try:
        worker = server.spawn(CANDIDATE, sandboxed=True)
        assert worker.level == "landlock+seccomp"
        assert "PermissionError" in run(worker, "open('/etc/hostname')")
        assert "PermissionError" in run(worker, "import socket\nsocket.socket(socket.AF_INET)")
        assert "5" in run(worker, "said = open('here', 'w').write('hello')")
        if landlock.abi() >= 6:
            assert "PermissionError" in run(worker, f"import os\nos.kill({os.getpid()}, 0)")
        worker.stop()
    finally:
        server.mode = saved


@needs_namespaces
def test_what_a_language_names_can_be_read_and_not_written(server: ForkServer, tmp_path: Path) -> None:
    drivers = tmp_path / "drivers"
    drivers.mkdir()
    (drivers / "one.icd").write_text("driver")
    for folder in (*tmp_path.parents, tmp_path, drivers):
        if folder.is_relative_to("/tmp") and folder != Path("/tmp"):
            folder.chmod(folder.stat().st_mode | 0o055)
    look = f"said = open({str(drivers / 'one.icd')!r}).read()"
    worker = server.spawn(CANDIDATE, sandboxed=True, readable=(str(drivers), "/no/such/place"))
    try:
        assert run(worker, look) == "RuntimeError: 'driver'"
    finally:
        worker.stop()
    worker = server.spawn(CANDIDATE, sandboxed=True, readable=(str(drivers),))
    try:
        assert (
            "OSError" in (said := run(worker, f"said = open({str(drivers / 'one.icd')!r}, 'w').write('mine')"))
            or "Permission" in said
        )
        assert (drivers / "one.icd").read_text() == "driver"
    finally:
        worker.stop()
    worker = server.spawn(CANDIDATE, sandboxed=True)
    try:
        assert "FileNotFoundError" in run(worker, look)
    finally:
        worker.stop()


def test_the_filter_is_well_formed_for_both_machines() -> None:
    for machine in seccomp.AUDIT_ARCH:
        code = seccomp.program(machine)
        assert len(code) % 8 == 0
        lines = [code[at : at + 8] for at in range(0, len(code), 8)]
        for number, line in enumerate(lines):
            if line[0] in (seccomp.EQUAL, seccomp.GREATER_EQUAL, seccomp.ANY_BIT):
                assert number + 1 + max(line[2], line[3]) < len(lines), "a jump leaves the program"


def test_the_allow_list_holds_no_home_and_no_project() -> None:
    folders = readable_folders()
    assert "/" not in folders
    assert str(Path.home()) not in folders
    assert not any(str(Path(__file__).resolve()).startswith(folder + "/") for folder in folders)
    assert any(sys.prefix == folder or sys.prefix.startswith(folder + "/") for folder in folders)


def test_a_cell_survives_its_journey_as_a_message() -> None:
    cell = Cell("namespaces", "/r", None, 5)
    assert Cell.from_message(cell.as_message()) == cell
    assert environment("/h")["TMPDIR"].startswith("/h/")


def test_the_parent_needs_no_torch() -> None:
    code = "import sys; import kernelwright.judge.verify; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@needs_namespaces
def test_a_hidden_package_cannot_be_imported_by_a_child_either(server: ForkServer) -> None:
    child = "subprocess.run([sys.executable, '-c', 'import torch._inductor'], capture_output=True, text=True)"
    look = f"import subprocess, sys\nsaid = {child}.stderr[-200:]"
    for hidden, refused in ((("torch._inductor",), True), ((), False)):
        worker = server.spawn(CANDIDATE, sandboxed=True, hidden=hidden)
        try:
            assert (COMPILER_REFUSAL in run(worker, look)) is refused
        finally:
            worker.stop()
