#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
"""Checks of ds-accel run that a shell cannot make; each check that fails is printed.

    launch.py bytes PROGRAM DIR     arguments and environment arrive as bytes
    launch.py lines PROGRAM DIR     lines of several ranks do not mix
    launch.py outside PROGRAM DIR   a process that is not of the job writes to a rank's pipe
    launch.py signals PROGRAM DIR   signals, killed and stopped processes: nothing is left
    launch.py slow PROGRAM DIR      signals and processes that cost a grace period of the launcher
    launch.py pty PROGRAM DIR       terminals
    launch.py chaos PROGRAM COUNT SEED   jobs whose processes are killed and stopped at random
    launch.py flow PROGRAM MEGABYTES     what much output costs
    launch.py figures PROGRAM MEGABYTES  the same, printed for the benchmark
"""
import ctypes
import fcntl
import json
import os
import pty
import random
import select
import signal
import struct
import subprocess
import sys
import termios
import time

os.environ["DS_ACCEL_MOCK_DEVICE_COUNT"] = "256"
LIMIT_S = float(os.environ.get("LAUNCH_LIMIT_S", "60"))  # of every wait; only a failure takes so long
STRANGE = [
    b"", b" ", b"a b", b'"quoted" \'both\'', b"new\nline\n", b"$HOME `id` $(id) ${x}", b"\\ \\n",
    b"* ? [a] ~ # ! & | ; < >", b"\xff\xfe\x80 \xc3\x28", b"--flag=x", b"-", b"--", b"\t\r\x01\x7f",
    b"=", b"%s %n %%", "\u00e4\u4e2d".encode(),
]
SET_BY_LAUNCHER = {
    b"RANK", b"LOCAL_RANK", b"WORLD_SIZE", b"LOCAL_SIZE", b"LOCAL_WORLD_SIZE", b"CROSS_RANK",
    b"CROSS_SIZE", b"MASTER_ADDR", b"MASTER_PORT", b"MOCK_VISIBLE_DEVICES", b"MOCK_RUNTIME",
    b"DS_ACCEL_DECISION", b"DS_ACCELERATOR",
}
FAILED = os.environ.get("LAUNCH_FAILED")  # a file that the first failure makes, and that ends all checks
failures = 0


def check(name, wanted, given):
    """Report a difference."""
    global failures
    if wanted != given:
        failures += 1
        print(f"FAILED: {name}\n    wanted: {wanted!r:.300}\n    given:  {given!r:.300}", flush=True)
        if FAILED is not None:
            with open(FAILED, "wb"):
                pass
            leave(1)


def leave(code):
    """End this process, and the processes below it."""
    for pid in descendants(os.getpid()):
        send(pid, signal.SIGKILL)
    os._exit(code)


def leave_after_others(*_):
    """End if the checks of another process have failed; a handler of SIGALRM."""
    if os.path.exists(FAILED):
        leave(0)


def command(program, count, *arguments, options=()):
    """The command line of a job."""
    return [program, "run", "-a", "mock", "--master_port", "auto", "--num_gpus", str(count),
            "--no_python", "--no_local_rank", *options, *arguments]


# ---- bytes ---------------------------------------------------------------------------------------

def check_bytes(program, directory):
    """A megabyte of arguments, and strange environment variables."""
    source = random.Random(1)
    noise = bytes(source.randrange(1, 256) for _ in range(100000))
    script = b'cat /proc/$$/cmdline >"$0/arguments.$RANK"; cat /proc/$$/environ >"$0/environment.$RANK"'
    arguments = [b"sh", b"-c", script, directory.encode(), *STRANGE, *[noise] * 10]
    environment = {b"V%d" % i: value for i, value in enumerate([*STRANGE, noise])}
    environment.update({b"PATH": os.environb[b"PATH"], b"strange \xff name": b"x", b"DS_ACCEL_CACHE": b"off",
                        b"DS_ACCEL_MOCK_DEVICE_COUNT": b"2", b"RANKS": b"a name that begins like RANK"})
    done = subprocess.run(command(program, 2, *arguments), env=environment, timeout=LIMIT_S, check=False)
    check("exit code", 0, done.returncode)
    for rank in (b"0", b"1"):
        with open(os.path.join(directory.encode(), b"arguments." + rank), "rb") as file:
            check("arguments", b"\0".join(arguments) + b"\0", file.read())
        with open(os.path.join(directory.encode(), b"environment." + rank), "rb") as file:
            entries = file.read()
        check("the end of the environment", b"\0", entries[-1:])
        given = dict(entry.split(b"=", 1) for entry in entries[:-1].split(b"\0"))
        check("each variable is set once", len(given), len(entries[:-1].split(b"\0")))
        check("RANK", rank, given.get(b"RANK"))
        check("new variables", set(), set(given) - set(environment) - SET_BY_LAUNCHER)
        for name, value in environment.items():
            check(f"variable {name!r}", value, given.get(name))


# ---- lines ---------------------------------------------------------------------------------------

# The launcher writes a line of which it has seen only a part for 100 ms; another rank's line may then
# follow this part. A rank on a busy machine may take as long, so it counts the lines for which it
# took half of that time.
LINE_LIMIT_S = 0.05


def write_lines(length, count, piece, streams):
    """As a rank: write lines of its number, in pieces that end within lines, and then, to a file, how many were slow."""
    rank = int(os.environ["RANK"])
    fd = 1 + rank % int(streams)
    length, piece = int(length) + 1, int(piece)
    data = (str(rank).encode() * (length - 1) + b"\n") * int(count)
    begun = {}
    slow = set()
    with open(f"ready.{rank}", "wb"):  # all ranks write at the same time
        pass
    until(lambda: all(os.path.exists(f"ready.{other}") for other in range(int(os.environ["WORLD_SIZE"]))))
    for start in range(0, len(data), piece):
        part = data[start:start + piece]
        lines = range(start // length, (start + len(part) - 1) // length + 1)
        begin = time.monotonic()
        while part:
            part = part[os.write(fd, part):]
        end = time.monotonic()
        slow.update(line for line in lines if end - begun.setdefault(line, begin) >= LINE_LIMIT_S)
    with open(f"slow.{rank}", "w", encoding="ascii") as file:
        file.write(str(len(slow)))


def check_job_lines(program, ranks, length, count, piece, streams):
    """The lines of one job, whose streams are the same file."""
    name = f"{ranks} ranks, {count} lines of {length} bytes"
    for file in os.listdir():
        if file.startswith("ready."):
            os.remove(file)
    with open("lines", "wb") as file:
        argv = command(program, ranks, "/usr/bin/python3", os.path.abspath(__file__), "write", str(length), str(count),
                       str(piece), str(streams))
        check(f"{name}: exit code", 0, subprocess.run(argv, stdout=file, stderr=file, timeout=LIMIT_S, check=False).returncode)
    with open("lines", "rb") as file:
        lines = file.read().splitlines()
    check(f"{name}: mixed lines", [], [line[:100] for line in lines if line.strip(line[:1]) != b""])
    for rank in range(ranks):
        with open(f"slow.{rank}", encoding="ascii") as file:
            slow = int(file.read())
        own = [len(line) for line in lines if line[:1] == str(rank).encode()]
        check(f"{name}: bytes of rank {rank}", length * count, sum(own))
        check(f"{name}: rank {rank}, {slow} lines were slow", True, own.count(length) >= count - slow)


def check_lines(program, directory):
    """Lines that are longer than a write, or than a pipe, and those of two streams of one file."""
    os.chdir(directory)
    check_job_lines(program, 8, 6000, 200, 4099, 1)
    check_job_lines(program, 4, 3000, 100, 4096, 2)
    check_job_lines(program, 4, 600000, 20, 65536, 1)


# ---- output that never ends ----------------------------------------------------------------------

def fill(fd):
    """Write until the pipe is full. False: it has no reader."""
    try:
        while os.write(fd, b"y\n" * 2048):
            pass
    except BlockingIOError:
        return True
    except BrokenPipeError:
        return False


def check_outside(program, directory):
    """This process fills the pipe of rank 0 before each read of the job's output, so that the pipe
    is never empty, also after the ranks have ended."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # in this process only: subprocess restores it
    path = os.path.join(directory, "outside")
    script = (f'[ $RANK = 1 ] && exit; echo $$ >"{path}.new"; mv "{path}.new" "{path}.pid"; '
              f'until [ -e "{path}.ready" ]; do sleep 0.01; done')
    with subprocess.Popen(command(program, 2, "sh", "-c", script), stdout=subprocess.PIPE) as job:
        check("the rank starts", True, until(lambda: os.path.exists(path + ".pid")))
        with open(path + ".pid", encoding="ascii") as file:
            rank = file.read().strip()
        pipe = os.open(f"/proc/{rank}/fd/1", os.O_WRONLY | os.O_NONBLOCK)
        count = 0
        while fill(pipe) and count < 64 << 20:
            if state_of(int(rank)) != "":
                count = 0
            if count == 0:
                with open(path + ".ready", "wb"):
                    pass
            count += len(os.read(job.stdout.fileno(), 65536))
        check("the launcher ends", True, count < 64 << 20)
        os.close(pipe)
        while os.read(job.stdout.fileno(), 65536):
            pass
        check("exit code", 0, job.wait(timeout=LIMIT_S))


# ---- processes -----------------------------------------------------------------------------------

def become_subreaper():
    """Every process that a job leaves becomes a child of this one, so that none can hide."""
    if ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) != 0:
        sys.exit("prctl(PR_SET_CHILD_SUBREAPER) failed")


def parents():
    """The parent of each process."""
    result = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="latin-1") as file:
                    result[int(name)] = int(file.read().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                pass
    return result


def comm_of(pid):
    """The name of a process; "" if it does not exist."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


def descendants(root):
    """The processes below a process, from top to bottom."""
    table = parents()
    found = [root]
    for pid in found:
        found += [child for child, parent in table.items() if parent == pid]
    return found[1:]


def state_of(pid):
    """The state of a process, such as S or T; empty: it has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
            return file.read().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def status_of(pid, key):
    """A line of /proc/PID/status; empty: the process has ended."""
    try:
        with open(f"/proc/{pid}/status", encoding="latin-1") as file:
            return next((line.split(":")[1].strip() for line in file if line.startswith(key + ":")), "")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def has_pending(pid, *numbers):
    """Have these signals been sent to the process, which has not taken them yet?"""
    mask = sum(1 << number - 1 for number in numbers)
    return int(status_of(pid, "ShdPnd") or "0", 16) & mask == mask


def send(pid, number):
    """Send a signal to a process, which may have ended."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def until(condition):
    """Wait for a condition; return whether it came true."""
    end = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def exit_code(name, pid):
    """Wait for a child; return its exit code. A child that stops or goes on would be waited for in vain: it is
    killed, and reported with its state."""
    if not until(lambda: state_of(pid) in ("Z", "T")) or state_of(pid) == "T":
        check(f"{name}: the state of the process at its end", "Z", state_of(pid))
        for below in [pid, *descendants(pid)]:
            send(below, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def execute(argv):
    """Become the program."""
    try:
        os.execvp(argv[0], argv)
    finally:
        os._exit(127)


def reap_all():
    """Wait until this process has no child; return whether that came true."""
    def is_empty():
        try:
            while os.waitpid(-1, os.WNOHANG)[0] != 0:
                pass
        except ChildProcessError:
            return True
        return False
    return until(is_empty)


class Job:
    """A job in a process group of its own, whose output is read here."""

    def __init__(self, program, count, script, options=(), prepare=None, prefix=()):
        self.output = b""
        ranks = ("sh", "-c", script) if isinstance(script, str) else script
        argv = [*prefix, *command(program, count, *ranks, options=options)]
        reader, writer = os.pipe()
        self.reader = reader
        self.pid = os.fork()
        if self.pid == 0:
            os.setpgid(0, 0)
            os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
            os.dup2(writer, 1)
            os.dup2(os.open("/dev/null", os.O_WRONLY), 2)
            if prepare is not None:
                prepare()
            execute(argv)
        os.close(writer)

    def read(self, limit_s=LIMIT_S):
        """Read once; return whether there was something."""
        if select.select([self.reader], [], [], limit_s)[0]:
            data = os.read(self.reader, 65536)
            self.output += data
            return data != b""
        return False

    def expect(self, text, count=1):
        """Wait until the output has a text, so often."""
        while self.output.count(text) < count:
            if not self.read():
                check("output", text, self.output)
                return False
        return True

    def supervisor(self):
        """The process ID of the supervisor; 0 before it has named itself: other children only prepare the job."""
        return next((pid for pid in descendants(self.pid) if comm_of(pid) == "dsa-supervisor"), 0)

    def ranks(self):
        """The process IDs of the ranks."""
        table = parents()
        supervisor = self.supervisor()
        return sorted(pid for pid, parent in table.items() if parent == supervisor)

    def finish(self):
        """Wait for the launcher, reading its output; return its exit code as a shell's."""
        end = time.monotonic() + LIMIT_S
        done = 0
        while done == 0:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done == 0:
                if time.monotonic() > end:
                    print("FAILED: the launcher does not end", [(pid, state_of(pid)) for pid in descendants(self.pid)])
                    for pid in [self.pid, *descendants(self.pid)]:
                        send(pid, signal.SIGKILL)
                self.read(0.005)
        return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)

    def close(self):
        """Read the rest of the output."""
        while self.read():
            pass
        os.close(self.reader)


def check_end(name, job, code, is_killed=False):
    """Check the exit code of the launcher, and that nothing is left, at once or, after it was killed, soon."""
    start = time.monotonic()
    check(f"{name}: exit code", code, job.finish())
    check(f"{name}: ends before a grace period is over", True, time.monotonic() - start < 25)
    if not is_killed:
        left = descendants(os.getpid())
        check(f"{name}: processes left at the end", [], [(pid, state_of(pid)) for pid in left])
    if not reap_all():
        check(f"{name}: processes left", [], descendants(os.getpid()))
        for pid in descendants(os.getpid()):
            send(pid, signal.SIGKILL)
    job.close()


# ---- signals -------------------------------------------------------------------------------------

WAIT = "echo ready; exec sleep 1000"
FOREVER = "echo ready; while :; do sleep 0.05; done"
DEAF = "trap '' INT TERM HUP QUIT; " + FOREVER
# Ranks that ignore signals, too, but the last one says that it got one. The supervisor has taken a
# signal then, because it passes signals on in the order of ranks.
TAKEN = "trap 'echo got' INT TERM HUP QUIT; " + FOREVER
LAST_TAKEN = f"[ $RANK = 1 ] && {{ {TAKEN}; }}; {DEAF}"
# From one signal to the next, which must not count as the same; the first has been taken before.
SECOND_SIGNAL_S = 0.6
DAEMON = "(setsid sleep 1000 >/dev/null 2>&1 &) ; "


def await_file(name):
    """The command of a rank that waits for a file."""
    return f"until [ -e {name} ]; do sleep 0.01; done"


def make_file(name):
    """Make a file for which a rank waits."""
    with open(name, "wb"):
        pass


def ready(program, script, count=2, **options):
    """Start a job, and wait until its ranks are ready."""
    job = Job(program, count, script, **options)
    job.expect(b"ready\n", count)
    return job


def check_forwarding(program):
    """Signals to the launcher, or to its group, reach the ranks."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        job = ready(program, WAIT)
        os.kill(job.pid, number)
        check_end(f"{number.name} to the launcher", job, 128 + number)
        job = ready(program, WAIT)
        os.killpg(job.pid, number)
        check_end(f"{number.name} to the group", job, 128 + number)
    trap = "".join(f"trap 'echo got {name}' {name}; " for name in ("USR1", "USR2", "WINCH"))
    job = ready(program, trap + "trap 'exit 0' TERM; " + FOREVER)
    for name in ("USR1", "USR2", "WINCH"):
        os.kill(job.pid, getattr(signal, "SIG" + name))
        job.expect(b"got " + name.encode(), 2)
    os.kill(job.pid, signal.SIGTERM)
    check_end("a rank that handles SIGTERM", job, 0)
    job = ready(program, "trap 'echo got' INT; trap 'exit 4' TERM; " + FOREVER)
    supervisor = job.supervisor()
    os.kill(supervisor, signal.SIGSTOP)
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(job.pid, number)
    check("both signals are passed on", True, until(lambda: has_pending(supervisor, signal.SIGINT, signal.SIGTERM)))
    os.kill(supervisor, signal.SIGCONT)
    check_end("two signals at once are not a second signal", job, 4)
    check("each rank got one SIGINT", 2, job.output.count(b"got\n"))


def check_stops(program):
    """SIGTSTP stops launcher and ranks, and SIGCONT continues them."""
    job = ready(program, WAIT)
    ranks = job.ranks()
    os.kill(job.pid, signal.SIGTSTP)
    check("the launcher stops", True, until(lambda: state_of(job.pid) == "T"))
    check("ranks stop", True, until(lambda: [state_of(pid) for pid in ranks] == ["T", "T"]))
    os.kill(job.pid, signal.SIGCONT)
    check("ranks continue", True, until(lambda: "T" not in [state_of(pid) for pid in (job.pid, *ranks)]))
    os.kill(job.pid, signal.SIGTERM)
    check_end("after SIGTSTP and SIGCONT", job, 143)
    job = ready(program, WAIT)
    send(job.ranks()[0], signal.SIGSTOP)
    os.kill(job.pid, signal.SIGTERM)
    check_end("a stopped rank", job, 143)
    job = ready(program, f"[ $RANK = 1 ] && {{ echo ready; {await_file('stopped')}; exit 9; }}; " + WAIT)
    send(job.ranks()[0], signal.SIGSTOP)
    make_file("stopped")
    check_end("a stopped rank, and another that fails", job, 9)


def check_deaf(program):
    """Ranks that ignore signals are killed by a second signal, long before the grace period ends."""
    job = ready(program, LAST_TAKEN)
    os.kill(job.pid, signal.SIGTERM)
    job.expect(b"got\n")
    time.sleep(SECOND_SIGNAL_S)
    os.kill(job.pid, signal.SIGTERM)
    check_end("ranks that ignore SIGTERM", job, 137)
    job = ready(program, f"[ $RANK = 1 ] && {{ echo ready; {await_file('deaf')}; exit 5; }}; " + TAKEN)
    make_file("deaf")
    job.expect(b"got\n")  # SIGTERM, because the other rank has failed
    os.kill(job.pid, signal.SIGINT)
    job.expect(b"got\n", 2)
    time.sleep(SECOND_SIGNAL_S)
    os.kill(job.pid, signal.SIGINT)
    check_end("a rank fails, another ignores signals", job, 5)


def check_daemons(program):
    """Processes in sessions of their own end with the job."""
    check_end("daemons outlive the ranks", Job(program, 2, DAEMON + "exit 0"), 0)
    check_end("daemons of a failed rank", Job(program, 2, DAEMON + "exit 3"), 3)
    job = ready(program, DAEMON + WAIT)
    os.kill(job.pid, signal.SIGTERM)
    check_end("daemons and SIGTERM", job, 143)
    deaf = (f"(setsid sh -c \"trap '' TERM; : >deaf_daemon; sleep 1000; sleep 1000\" >/dev/null 2>&1 &) ; "
            f"{await_file('deaf_daemon')}; exit 0")
    check_end("daemons that ignore SIGTERM", Job(program, 1, deaf), 0)


def check_kills(program):
    """The launcher or the supervisor is killed."""
    for script in (WAIT, DAEMON + WAIT, DEAF):
        job = ready(program, script)
        os.kill(job.pid, signal.SIGKILL)
        check_end("the launcher is killed", job, 137, is_killed=True)
        job = ready(program, script)
        os.kill(job.supervisor(), signal.SIGKILL)
        check_end("the supervisor is killed", job, 137)
        job = ready(program, script)
        os.kill(job.supervisor(), signal.SIGSTOP)
        os.kill(job.pid, signal.SIGKILL)
        check_end("the supervisor is stopped, the launcher killed", job, 137, is_killed=True)


def check_inherited(program):
    """Ignored signals stay ignored, except SIGCHLD."""
    job = ready(program, "echo ready; sleep 1.5; echo end",
                prepare=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    os.kill(job.pid, signal.SIGHUP)
    time.sleep(0.6)
    os.kill(job.pid, signal.SIGHUP)
    check_end("SIGHUP is ignored, as under nohup", job, 0)
    check("ranks end by themselves", 2, job.output.count(b"end\n"))
    job = Job(program, 2, "exit 3", prepare=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    check_end("SIGCHLD is ignored", job, 3)
    masked = [signal.SIGTERM, signal.SIGCHLD, signal.SIGINT]
    job = Job(program, 2, ("grep", "SigBlk", "/proc/self/status"),
              prepare=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, masked))
    check_end("signals are blocked", job, 0)
    mask = sum(1 << number - 1 for number in masked)
    check("ranks have the mask of the launcher", [b"%016x" % mask] * 2, job.output.split()[1::2])
    job = Job(program, 2, ("grep", "SigBlk", "/proc/self/status"))
    check_end("no signal is blocked", job, 0)
    check("ranks have an empty mask", [b"%016x" % 0] * 2, job.output.split()[1::2])
    job = Job(program, 1, "trap 'echo unexpected' TERM; exit 0",
              prefix=("sh", "-c", "sleep 1000 & exec \"$@\"", "-"))
    check("a child of the caller: exit code", 0, job.finish())
    until(lambda: [comm_of(pid) for pid in descendants(os.getpid())] == ["sleep"])  # sh may still be to execute it
    check("it is left alone", ["sleep"], [comm_of(pid) for pid in descendants(os.getpid())])
    for pid in descendants(os.getpid()):
        send(pid, signal.SIGKILL)
    reap_all()
    job.close()


def can_run(*prefix):
    """May this user run a program in namespaces of its own?"""
    return subprocess.run([*prefix, "true"], check=False, stderr=subprocess.DEVNULL).returncode == 0


def check_foreign(program):
    """What ranks started ends with them, also where /proc does not show it, if the launcher is process 1."""
    if not can_run("unshare", "--pid", "--fork"):
        return
    script = f"[ $RANK = 0 ] || {{ {await_file('children')}; exit 5; }}; setsid sleep 1000 & : >children; sleep 1000; :"
    for name, prefix, is_left in (("a foreign /proc and process 1", (), False),
                                  ("a foreign /proc, and another process 1", ("sh", "-c", '"$@"; exit $?', "-"), True)):
        messages = os.open("messages", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        job = Job(program, 2, script, prefix=("unshare", "--pid", "--fork", *prefix),
                  options=("--result", "foreign.json"), prepare=lambda fd=messages: os.dup2(fd, 2))
        os.close(messages)
        check(f"{name}: exit code", 5, job.finish())
        check(f"{name}: processes left", True, reap_all())
        job.close()
        with open("foreign.json", encoding="utf-8") as file:
            check(f"{name}: the result", is_left, json.load(file)["has_unkillable"])
        with open("messages", encoding="utf-8") as file:
            check(f"{name}: the message", is_left, "belongs to another PID namespace" in file.read())
        os.remove("children")


def check_namespace(program):
    """As process 1 of a pid namespace, the launcher reaps and forwards."""
    prefix = ("unshare", "--pid", "--fork", "--mount-proc")
    if not can_run(*prefix):
        return
    job = Job(program, 2, DAEMON + "echo $PPID; exit 0", prefix=prefix)
    check_end("process 1", job, 0)
    # Without a /proc of its own, the launcher cannot find processes there, and ends its ranks by their IDs.
    foreign = ("unshare", "--pid", "--fork")
    job = Job(program, 2, "[ $RANK = 1 ] && exit 5; exec sleep 1000", prefix=foreign)
    check_end("a foreign /proc", job, 5)
    job = ready(program, f"[ $RANK = 1 ] && {{ echo ready; {await_file('foreign')}; exit 5; }}; " + TAKEN, prefix=foreign)
    make_file("foreign")
    job.expect(b"got\n")
    supervisor = job.supervisor()
    os.kill(supervisor, signal.SIGTERM)
    check("the signal is taken", True,
          until(lambda: not has_pending(supervisor, signal.SIGTERM) and state_of(supervisor) == "S"))
    time.sleep(SECOND_SIGNAL_S)
    os.kill(supervisor, signal.SIGTERM)
    check_end("a foreign /proc, and a rank that ignores SIGTERM", job, 5)
    job = ready(program, "(setsid sh -c 'setsid sleep 0.1 & exec sleep 1000' >/dev/null 2>&1 &) ; " + WAIT, prefix=prefix)
    os.kill(descendants(job.pid)[0], signal.SIGTERM)  # unshare's child, the launcher
    check_end("SIGTERM to process 1", job, 143)
    job = ready(program, LAST_TAKEN, prefix=prefix)
    launcher = descendants(job.pid)[0]
    os.kill(launcher, signal.SIGTERM)
    job.expect(b"got\n")
    time.sleep(SECOND_SIGNAL_S)
    os.kill(launcher, signal.SIGTERM)
    check_end("a second SIGTERM to process 1", job, 137)


def check_pid_file(program):
    """The file of --save_pid is removed on every path."""
    for name, number in (("TERM", signal.SIGTERM), ("KILL", signal.SIGKILL), ("", 0)):
        job = ready(program, WAIT if number else f"echo ready; {await_file('pid_read')}", options=("--save_pid",))
        path = f"/tmp/{job.pid}.deepspeed"
        with open(path, encoding="ascii") as file:
            check("the pid file", str(job.pid), file.read().strip())
        if number != 0:
            os.kill(job.pid, number)
        else:
            make_file("pid_read")
        check_end(f"--save_pid and SIG{name}", job, 128 + number if number else 0, is_killed=number == signal.SIGKILL)
        check(f"the pid file after SIG{name}", False, os.path.exists(path))


def check_group(program):
    """A signal to the process group, also after one to the launcher as timeout(1) sends them, comes once."""
    script = "trap 'echo usr1' USR1; echo ready; while :; do sleep 0.05; done"
    for count in (1, 2):
        job = ready(program, script, count=count)
        os.kill(job.pid, signal.SIGUSR1)
        os.killpg(job.pid, signal.SIGUSR1)
        os.killpg(job.pid, signal.SIGCONT)
        job.expect(b"usr1", count)
        time.sleep(0.4)
        os.kill(job.pid, signal.SIGTERM)
        check_end("a signal to the group", job, 143)
        check(f"signals that {count} ranks received", count, job.output.count(b"usr1"))


ATTEMPTS = 4  # the guard has a quarter of a second to pass on a signal, too little on a busy machine
NAMED = "trap 'echo got USR1' USR1; trap 'exit 4' TERM; " + FOREVER


def selected(job, pattern, is_full):
    """The processes of a job that pkill(1) selects by a part of their names, or, with -f, of their command lines."""
    def text_of(pid):
        with open(f"/proc/{pid}/cmdline", encoding="latin-1") as file:
            return file.read().replace("\0", " ") if is_full else comm_of(pid)
    return [pid for pid in (job.pid, job.supervisor(), *job.ranks()) if pattern in text_of(pid)]


def check_names(program):
    """A signal to processes that a name selects reaches each rank, and reaches it once."""
    for name, pattern, is_full, count in (("pkill ds-accel", "ds-accel", False, 1),
                                          ("pkill -f 'ds-accel run'", "ds-accel run", True, 1),
                                          ("pkill -f with the ranks' program", "echo got USR1", True, 4)):
        for _ in range(ATTEMPTS):
            job = ready(program, NAMED)
            pids = selected(job, pattern, is_full)
            check(f"{name} selects the launcher, or all", count, len(pids))
            for pid in pids:
                os.kill(pid, signal.SIGUSR1)
            job.expect(b"got USR1\n", 2)
            time.sleep(0.4)
            os.kill(job.pid, signal.SIGTERM)
            check_end(name, job, 4)
            received = job.output.count(b"got USR1\n")
            if received == 2:
                break
        check(f"{name}: signals that the ranks received", 2, received)
    job = ready(program, NAMED)
    os.kill(job.supervisor(), signal.SIGUSR1)
    job.expect(b"got USR1\n", 2)
    os.kill(job.supervisor(), signal.SIGTERM)
    check_end("signals to the supervisor", job, 4)
    check("signals to the supervisor come once", 2, job.output.count(b"got USR1\n"))


def check_both(program):
    """The ranks receive a signal that only launcher and supervisor received, before they are killed for it."""
    job = ready(program, NAMED)
    for pid in (job.supervisor(), job.pid):
        os.kill(pid, signal.SIGTERM)
    check("the exit code after a signal to launcher and supervisor", 4, job.finish())
    check("processes left", True, reap_all())
    job.close()


def check_blocked_messages(program):
    """The report of a failure waits for a reader of stderr, but two signals end it."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"x" * 4096)
    except BlockingIOError:
        pass
    os.set_blocking(writer, True)
    # Rank 0 fails once rank 1 runs, so that rank 1 is not terminated before it is ready.
    script = f"[ $RANK = 0 ] || {{ echo ready; : >blocked; exec sleep 1000; }}; {await_file('blocked')}; exit 3"
    job = Job(program, 2, script, prepare=lambda: os.dup2(writer, 2))
    job.expect(b"ready", 1)
    check("the ranks end", True, until(lambda: job.ranks() == []))
    for _ in range(2):
        os.kill(job.pid, signal.SIGINT)
        time.sleep(SECOND_SIGNAL_S)
    check_end("messages that nobody reads", job, 3)
    os.close(reader)
    os.close(writer)


def check_slow(program, directory):
    """What takes as long as a grace period of the launcher."""
    os.chdir(directory)
    become_subreaper()
    check_foreign(program)
    check_both(program)


def check_signals(program, directory):
    """All of the above."""
    os.chdir(directory)
    become_subreaper()
    for part in (check_forwarding, check_stops, check_deaf, check_daemons, check_kills, check_inherited,
                 check_namespace, check_pid_file, check_group, check_names, check_blocked_messages):
        part(program)


# ---- chaos ---------------------------------------------------------------------------------------

CHAOS = (
    WAIT,
    DAEMON + WAIT,
    "echo ready; sleep 1000 & sleep 1000 & wait",
    DAEMON + "echo ready; while :; do echo a line of $RANK; sleep 0.01; done",
    "trap '' TERM; echo ready; while :; do sleep 0.02; done",
    "echo ready; [ $RANK = 0 ] && sleep 0.05 && exit 3; " + DAEMON + "sleep 1000",
)


def chaos_round(program, source):
    """One job, of which processes are killed and stopped."""
    name = []
    job = Job(program, source.randrange(1, 5), source.choice(CHAOS))
    if source.randrange(3) > 0:
        job.read(0.2)
    else:
        time.sleep(source.random() * 0.03)
    is_headless = source.randrange(2)  # 1: the launcher may be killed, 0: the supervisor
    heads = [job.pid, job.supervisor()]
    for _ in range(source.randrange(1, 4)):
        below = descendants(job.pid) if state_of(job.pid) not in ("", "Z") else descendants(os.getpid())
        below = [pid for pid in below if pid not in heads] + [job.pid] * 2 + heads[1:] * 2
        if heads[1] == 0:
            # A helper that is stopped before it asked to be killed with its parent would stay.
            below = [job.pid]
        pid = source.choice(below)
        number = source.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM))
        if number == signal.SIGKILL and pid == heads[1 - is_headless]:
            number = signal.SIGSTOP
        if pid != 0:
            name.append(f"{number.name} to {'launcher' if pid == heads[0] else 'supervisor' if pid == heads[1] else 'a process'}")
            send(pid, number)
        time.sleep(source.random() * 0.01)
    end_job(job, heads)
    code = job.finish()
    if not reap_all():
        check(f"{', '.join(name)}: processes left after exit code {code}", [],
              [(pid, state_of(pid)) for pid in descendants(os.getpid())])
        for pid in descendants(os.getpid()):
            send(pid, signal.SIGKILL)
        reap_all()
    job.close()


def end_job(job, heads):
    """Continue what was stopped, and send SIGTERM until the launcher ends; a second one kills."""
    end = time.monotonic() + LIMIT_S
    next_signal = 0
    for pid in heads[1:]:
        if pid != 0:
            send(pid, signal.SIGCONT)  # nothing continues a supervisor that was stopped after its launcher was killed
    while state_of(job.pid) not in ("", "Z") and time.monotonic() < end:
        if time.monotonic() > next_signal:
            for pid in heads:
                if pid != 0:
                    send(pid, signal.SIGCONT)
            send(job.pid, signal.SIGTERM)
            next_signal = time.monotonic() + 0.55
        job.read(0.005)


def check_chaos(program, count, seed):
    """Jobs, of which processes are killed and stopped; equal seeds do the same."""
    become_subreaper()
    source = random.Random(int(seed))
    shared = set(os.listdir("/dev/shm"))
    for _ in range(int(count)):
        chaos_round(program, source)
    check("shared memory left", [], [name for name in set(os.listdir("/dev/shm")) - shared if "accel" in name])
    print(f"{count} jobs with killed and stopped processes, seed {seed}", file=sys.stderr)


# ---- terminals -----------------------------------------------------------------------------------

class Terminal:
    """A job on a terminal of its own, as a user has."""

    def __init__(self, program, count, script, options=(), argv=None):
        self.output = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
            execute(argv or command(program, count, "sh", "-c", script, options=options))

    def expect(self, text, count=1):
        """Wait until the output has a text, so often."""
        end = time.monotonic() + LIMIT_S
        while self.output.count(text) < count:
            if time.monotonic() > end or not self.read():
                check("output of the terminal", text, self.output)
                return False
        return True

    def read(self):
        """Read once; return false at the end."""
        if not select.select([self.fd], [], [], LIMIT_S)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.output += data
        return data != b""

    def settings(self):
        """The settings of the terminal."""
        return termios.tcgetattr(self.fd)

    def mode(self):
        """The mode of the terminal: cooked, raw, or that of a shell that reads a command line."""
        _, output, _, local = self.settings()[:4]
        return "cooked" if local & termios.ICANON else "line" if output & termios.OPOST else "raw"

    def has_mode(self, mode):
        """Wait for a mode of the terminal."""
        return until(lambda: self.mode() == mode)

    def finish(self):
        """Read to the end; return the exit code."""
        while self.read():
            pass
        os.close(self.fd)
        return exit_code("a job on a terminal", self.pid)


IS_TERMINAL = "r=; for fd in 0 1 2; do test -t $fd && r=${r}y || r=${r}n; done; echo $r; "


def check_inherited_terminal(program):
    """Without --pty, a single rank has the user's terminal, several have its stdin."""
    job = Terminal(program, 1, IS_TERMINAL + "stty size; read -r line; echo \"<$line>\"")
    job.expect(b"33 77")
    os.write(job.fd, b"typed\n")
    job.expect(b"<typed>")
    check("exit code", 0, job.finish())
    check("one rank has a terminal", b"yyy", job.output[:3])
    job = Terminal(program, 1, "trap 'echo got INT' INT; echo ready; read -r line; read -r line; echo \"<$line>\"")
    job.expect(b"ready")
    os.write(job.fd, b"\x03")
    job.expect(b"got INT")
    os.write(job.fd, b"typed\ntyped\n")
    job.expect(b"<typed>")
    check("a rank that handles Control-C goes on", 0, job.finish())
    job = Terminal(program, 2, WAIT)
    job.expect(b"ready", 2)
    os.write(job.fd, b"\x03")
    check("Control-C ends several ranks", 130, job.finish())


def check_rank_terminal(program, count):
    """--pty gives rank 0 a terminal, with the size and the keys of the user's."""
    script = ("[ $RANK = 0 ] || { trap 'echo other got INT' INT; echo ready; sleep 2; exit 0; }; " + IS_TERMINAL +
              "trap 'stty size' WINCH; trap 'echo got INT; exit 0' INT; stty size; echo ready; "
              "read -r line; echo \"<$line>\"; while :; do sleep 0.05; done")
    job = Terminal(program, count, script, options=("--pty",))
    job.expect(b"ready", count)
    job.expect(b"yyy")
    job.expect(b"33 77")
    os.write(job.fd, b"typed\r")
    job.expect(b"<typed>")
    fcntl.ioctl(job.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 44, 99, 0, 0))
    job.expect(b"44 99")
    os.write(job.fd, b"\x03")
    job.expect(b"got INT")
    check("exit code", 0, job.finish())
    check("Control-C reaches rank 0 only", 0, job.output.count(b"other got INT"))
    job = Terminal(program, count, "[ $RANK = 0 ] && echo ready && cat; echo end", options=("--pty",))
    job.expect(b"ready")
    os.write(job.fd, b"typed\r\x04")
    check("Control-D ends the input", 0, job.finish())
    check("all ranks end", count, job.output.count(b"end"))


def check_rank_input(program):
    """With --pty, an input that is no terminal ends for the rank, also behind an incomplete line."""
    for given in (b"", b"line\n", b"abc", b"line\nabc", b"\n", b"line\r", b"x" * 3000):
        argv = command(program, 2, "sh", "-c", "[ $RANK = 0 ] && { stty -echo; exec cat; }; exit 0", options=("--pty",))
        try:
            done = subprocess.run(argv, input=given, stdout=subprocess.PIPE, timeout=LIMIT_S, check=False)
            lines = done.stdout.replace(b"\r\n", b"\n")
            check(f"an input of {given[:9]!r}: the end", (0, True), (done.returncode, lines.endswith(given.replace(b"\r", b"\n"))))
        except subprocess.TimeoutExpired:
            check(f"an input of {given[:9]!r}: the end", "the rank ends", "it does not")


def check_hangup(program, count, options):
    """A terminal that hangs up ends the job."""
    job = Terminal(program, count, WAIT, options)
    job.expect(b"ready", count)
    processes = [job.pid, *descendants(job.pid)]
    os.close(job.fd)
    if not until(lambda: state_of(job.pid) in ("", "Z")):
        check("a hang-up ends the launcher", True, False)
        for pid in processes:
            send(pid, signal.SIGKILL)
    check("the exit code after a hang-up", 129, os.waitstatus_to_exitcode(os.waitpid(job.pid, 0)[1]))
    check("a hang-up ends all", "", "".join(state_of(pid) for pid in processes))


def check_restored(program, who):
    """The settings of the terminal are restored, also after a process was killed."""
    holder, slave = os.openpty()
    before = termios.tcgetattr(slave)
    pid = os.fork()
    if pid == 0:
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        for fd in range(3):
            os.dup2(slave, fd)
        argv = command(program, 2, "sh", "-c", "[ $RANK = 0 ] && stty -echo; exec sleep 1000", options=("--pty",))
        # A session leader's end would hang up the terminal, so the launcher is a child of one.
        child = os.posix_spawnp(argv[0], argv, os.environ)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 255)
    check("the terminal is raw", True, until(lambda: termios.tcgetattr(slave)[3] & termios.ICANON == 0))
    until(lambda: len(descendants(pid)) == 4)
    launcher, supervisor = descendants(pid)[:2]
    send({"launcher": launcher, "supervisor": supervisor}.get(who, launcher),
         signal.SIGTERM if who == "nothing" else signal.SIGKILL)
    exit_code(f"{who} killed", pid)
    check(f"the terminal is restored, {who} killed", True, until(lambda: termios.tcgetattr(slave) == before))
    os.close(holder)
    os.close(slave)
    if not reap_all():
        check(f"processes left, {who} killed", [], descendants(os.getpid()))


def check_orphaned_stop(program):
    """Control-Z stops nothing where no shell could continue it, as under ssh -t or docker exec -it."""
    job = Terminal(program, 2, "echo ready; sleep 1; echo done", ())
    job.expect(b"ready", 2)
    os.write(job.fd, b"\x1a")
    job.expect(b"done", 2)
    check("the exit code after Control-Z", 0, exit_code("Control-Z", job.pid))
    os.close(job.fd)


def check_background(program, streams, file):
    """A job in the background that reads the terminal stops, as the shell sees, also if none of its
    streams is the terminal; fg continues it."""
    job = Terminal(program, 0, None, argv=["bash", "--norc", "--noprofile", "-i"])
    line = command(program, 1, "sh", "-c", f"'read x </dev/tty; echo got:$x >/dev/tty; : >{file}'")
    os.write(job.fd, " ".join([*line, streams]).encode() + b" &\n")
    os.write(job.fd, b"while ! jobs -l | grep -q Stopped; do sleep 0.1; done; echo sto''pped\n")
    job.expect(b"stopped\r")
    os.write(job.fd, b"fg\n")
    check("fg gives the job the terminal", True, until(lambda: os.tcgetpgrp(job.fd) != job.pid))
    os.write(job.fd, b"hello\n")
    job.expect(b"got:hello")
    check("the rank ends", True, until(lambda: os.path.exists(file)))
    os.write(job.fd, b"exit 7\n")
    check("the exit code of the shell", 7, exit_code("a shell with a stopped job", job.pid))
    os.close(job.fd)


def check_background_handler(program):
    """A rank in the background handles SIGTTIN, and then succeeds: the launcher exits, although the
    kernel has sent SIGTTIN to the whole group."""
    with open("handler.py", "w", encoding="ascii") as file:
        file.write("""import os, signal
def handle(number, frame):
    raise InterruptedError
signal.signal(signal.SIGTTIN, handle)
try:
    os.read(os.open("/dev/tty", os.O_RDWR), 1)
except InterruptedError:
    open("handled", "w")
""")
    job = Terminal(program, 0, None, argv=["bash", "--norc", "--noprofile", "-i"])
    line = command(program, 1, "/usr/bin/python3", "handler.py")
    os.write(job.fd, " ".join(line).encode() + b" </dev/null >/dev/null 2>&1 &\n")
    check("the rank handles SIGTTIN", True, until(lambda: os.path.exists("handled")))
    check("the launcher ends", True, until(lambda: descendants(job.pid) == []))
    for pid in descendants(job.pid):
        send(pid, signal.SIGKILL)
    os.write(job.fd, b"exit 7\n")
    check("the exit code of the shell", 7, exit_code("a shell with an ended job", job.pid))
    os.close(job.fd)


SHELL = ["bash", "--norc", "--noprofile", "-i"]


def end_shell(job):
    """End an interactive shell, whose terminal then has usual settings."""
    check("the shell reads a command line", True, job.has_mode("line"))
    os.write(job.fd, b"stty -a | grep -q ' icanon.* echo ' && echo us''ual; exit 7\n")
    job.expect(b"usual\r")
    check("the exit code of the shell", 7, exit_code("a shell", job.pid))
    os.close(job.fd)


def check_released_terminal(program):
    """With --pty, the keys of the terminal act on the job once rank 0 has ended."""
    script = "[ $RANK = 0 ] && exit 0; echo $RANK is ready; exec sleep 1000"
    job = Terminal(program, 2, script, options=("--pty",))
    job.expect(b"1 is ready")
    check("the terminal is restored when rank 0 has ended", True, job.has_mode("cooked"))
    os.write(job.fd, b"\x03")
    check("Control-C then ends the job", 130, job.finish())
    last = b"".join(b"line %d\r\n" % number for number in range(1, 201))
    job = Terminal(program, 2, "[ $RANK = 0 ] && { seq -f \"line %g\" 200; exit 0; }; sleep 0.2", options=("--pty",))
    check("exit code", 0, job.finish())
    check("the last lines of rank 0 are written in raw mode", last, job.output)
    job = Terminal(program, 0, None, argv=SHELL)
    line = command(program, 2, "sh", "-c", f"'{script}'", options=("--pty",))
    os.write(job.fd, " ".join(line).encode() + b"; echo co''de:$?\n")
    job.expect(b"1 is ready")
    check("the terminal is restored in a shell", True, job.has_mode("cooked"))
    os.write(job.fd, b"\x1a")
    check("Control-Z then stops the job", True, until(lambda: os.tcgetpgrp(job.fd) == job.pid))
    job.expect(b"code:148")
    check("the shell reads a command line", True, job.has_mode("line"))
    os.write(job.fd, b"fg; echo co''de:$?\n")
    check("fg continues the job", True, until(lambda: os.tcgetpgrp(job.fd) != job.pid))
    launcher = os.tcgetpgrp(job.fd)
    check("nothing is stopped", True, until(lambda: "T" not in [state_of(pid) for pid in (launcher, *descendants(launcher))]))
    time.sleep(0.3)  # the terminal stays cooked
    check("raw mode is not set again", "cooked", job.mode())
    os.write(job.fd, b"\x03")
    job.expect(b"code:130")
    end_shell(job)


def check_foreground(program):
    """A job with --pty in the background gets the terminal with fg, which sends no signal to a job that runs."""
    script = ("[ $RANK = 0 ] || exit 0; stty -a | grep -q \" icanon\" && echo canonical; : >foreground; "
              "read x; echo got:$x; read x; echo got:$x; trap \"echo got INT; exit 0\" INT; echo end of input; "
              "while :; do sleep 0.05; done")
    job = Terminal(program, 0, None, argv=SHELL)
    line = command(program, 2, "sh", "-c", f"'{script}'", options=("--pty",))
    os.write(job.fd, " ".join(line).encode() + b" &\n")
    check("rank 0 starts", True, until(lambda: os.path.exists("foreground")))
    job.expect(b"canonical\r")
    check("the shell's settings stay", True, job.has_mode("line"))
    os.write(job.fd, b"fg\n")
    check("the terminal of a job in the foreground is raw", True, job.has_mode("raw"))
    os.write(job.fd, b"hello\r")
    job.expect(b"got:hello")
    launcher = os.tcgetpgrp(job.fd)
    send(launcher, signal.SIGTSTP)
    check("SIGTSTP stops the launcher", True, until(lambda: state_of(launcher) == "T"))
    check("the shell has the terminal", True, job.has_mode("line"))
    os.write(job.fd, b"fg\n")
    check("the terminal is raw again", True, job.has_mode("raw"))
    os.write(job.fd, b"again\r")
    job.expect(b"got:again")
    job.expect(b"end of input\r\n")
    os.write(job.fd, b"\x03")
    job.expect(b"got INT\r")
    end_shell(job)


def check_lost_terminal(program):
    """The guard is killed: the supervisor leaves the terminal to the shell that has taken it."""
    job = Terminal(program, 0, None, argv=SHELL)
    line = command(program, 2, "sh", "-c", "'echo $RANK is ready; exec sleep 1000'", options=("--pty",))
    os.write(job.fd, " ".join(line).encode() + b"\n")
    for rank in (b"0", b"1"):
        job.expect(rank + b" is ready")
    check("the terminal is raw", True, job.has_mode("raw"))
    launcher, supervisor = descendants(job.pid)[:2]
    send(launcher, signal.SIGKILL)
    send(supervisor, signal.SIGSTOP)  # until the shell has the terminal
    check("the shell has the terminal", True, job.has_mode("line"))
    send(supervisor, signal.SIGCONT)
    check("the supervisor ends", True, until(lambda: state_of(supervisor) in ("", "Z")))
    check("the terminal stays the shell's", "line", job.mode())
    end_shell(job)


def check_ignored_stop(program):
    """SIGTSTP that the kernel ignores leaves the terminal of --pty raw."""
    job = Terminal(program, 2, "echo ready; exec sleep 1000", options=("--pty",))
    job.expect(b"ready", 2)
    check("the terminal is raw", True, job.has_mode("raw"))
    send(job.pid, signal.SIGTSTP)
    check("the signal is taken", True, until(lambda: not has_pending(job.pid, signal.SIGTSTP)))
    time.sleep(0.3)
    check("the terminal stays raw", "raw", job.mode())
    os.write(job.fd, b"\x03")
    check("Control-C reaches rank 0", 130, job.finish())


OTHER_USER = 61234


def check_foreign_terminal(program):
    """The terminal belongs to another user, as after su, and is not read: SIGTERM ends the job all the same."""
    prefix = ["setpriv", "--reuid", str(OTHER_USER), "--clear-groups"]
    if os.getuid() != 0:
        return
    try:
        done = subprocess.run([*prefix, *command(program, 2, "true")], check=False, capture_output=True)
    except FileNotFoundError:
        return
    if done.returncode != 0 or done.stderr:
        return  # that user cannot read the installation
    job = Terminal(program, 0, None, argv=[*prefix, *command(program, 2, "yes", "0123456789")])
    job.expect(b"0123456789")
    time.sleep(0.5)  # the terminal is full
    os.kill(job.pid, signal.SIGTERM)
    check("SIGTERM ends a job whose terminal is not read", True, until(lambda: state_of(job.pid) in ("", "Z")))
    check("its exit code", 143, job.finish())


def check_pty(program, directory):
    """Terminals."""
    os.chdir(directory)
    become_subreaper()
    check_inherited_terminal(program)
    check_rank_input(program)
    for count in (1, 3):
        check_rank_terminal(program, count)
        check_hangup(program, count, ("--pty",))
        check_hangup(program, count, ())
    for who in ("nothing", "launcher", "supervisor"):
        check_restored(program, who)
    check_orphaned_stop(program)
    check_released_terminal(program)
    check_foreground(program)
    check_lost_terminal(program)
    check_ignored_stop(program)
    check_foreign_terminal(program)
    for number, streams in enumerate(("2>/dev/null", "</dev/null >/dev/null 2>&1")):
        check_background(program, streams, f"got.{number}")
    check_background_handler(program)


# ---- much output ---------------------------------------------------------------------------------

def ticks(pid):
    """The processor time of a process, in seconds."""
    with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_kib(pid):
    """The resident memory of a process."""
    with open(f"/proc/{pid}/status", encoding="latin-1") as file:
        return int(file.read().split("VmRSS:")[1].split()[0])


def flow(argv, total, measured):
    """Read a command's output; return the processor time and the memory that a process of it used."""
    reader, writer = os.pipe()
    fcntl.fcntl(reader, 1031, 1 << 20)  # F_SETPIPE_SZ
    pid = os.fork()
    if pid == 0:
        os.dup2(writer, 1)
        execute(argv)
    os.close(writer)
    count = 0
    early = late = seconds = 0
    process = 0
    buffer = bytearray(1 << 20)
    while True:
        size = os.readv(reader, [buffer])
        if size == 0:
            break
        count += size
        if process == 0:
            process = measured(pid)
        if early == 0 and count > total / 10:
            early = memory_kib(process)
        if late == 0 and count > total * 0.95:
            late, seconds = memory_kib(process), ticks(process)
    os.close(reader)
    exit_code("the writer of much output", pid)
    check("bytes", total, count)
    return seconds, early, late


def check_flow(program, megabytes):
    """The memory of the supervisor stays constant, and its processor time that of a copy."""
    line = "x" * 99
    total = int(megabytes) * 1000000
    writer = f"yes {line} | head -c {total // 4}"
    seconds, early, late = flow(command(program, 4, "sh", "-c", writer), total, lambda pid: descendants(pid)[0])
    source = f"yes {line} | head -c {total} | cat"
    base, _, _ = flow(["sh", "-c", source], total,
                      lambda pid: next(child for child in descendants(pid)
                                       if os.readlink(f"/proc/{child}/exe").endswith("/cat")))
    print(f"{megabytes} MB of lines: the supervisor took {seconds:.2f} s of a processor, cat {base:.2f} s; "
          f"its memory was {early} KiB, and then {late} KiB", file=sys.stderr)
    check("memory grows", True, late <= early + 256)
    return seconds, base


def print_figures(program, megabytes):
    """Processor times in seconds."""
    seconds, base = check_flow(program, megabytes)
    print(f"supervisor {seconds}\ncat {base}")


if __name__ == "__main__":
    # A shell makes its background processes ignore some signals, and Python ignores SIGPIPE.
    for ignored in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(ignored, signal.SIG_DFL)
    if FAILED is not None:
        signal.signal(signal.SIGALRM, leave_after_others)
        signal.setitimer(signal.ITIMER_REAL, 0.5, 0.5)
    {"bytes": check_bytes, "lines": check_lines, "write": write_lines, "outside": check_outside,
     "signals": check_signals, "slow": check_slow, "pty": check_pty, "chaos": check_chaos, "flow": check_flow,
     "figures": print_figures}[sys.argv[1]](*sys.argv[2:])
    sys.exit(failures > 0)
