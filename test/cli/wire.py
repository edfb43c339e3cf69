# SPDX-License-Identifier: BSD-2-Clause
"""A client of sessions, by what ibmr-session(1) says of the wire; and tests that use it.

wire.py TEST runs one test against the session of $IBMR_SOCKET; its words are the functions below."""

import array
import glob
import json
import os
import pty
import random
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

IBMR = os.environ.get("IBMR", "ibmr")
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
ACCESS = ["local_write", "remote_write", "remote_read"]


class Session:
    """A connection."""

    def __init__(self, path=None):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(path or os.environ["IBMR_SOCKET"])

    def send(self, message, fds=()):
        text = json.dumps(message).encode()
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        data = struct.pack(">I", len(text)) + text
        sent = self.sock.sendmsg([data], rights)
        if sent < len(data):
            self.sock.sendall(data[sent:])

    def exactly(self, size):
        data = b""
        while len(data) < size:
            part = self.sock.recv(size - len(data))
            if not part:
                raise EOFError("the session closed the connection")
            data += part
        return data

    def receive(self):
        return json.loads(self.exactly(struct.unpack(">I", self.exactly(4))[0]))

    def ask(self, request, fds=(), **more):
        self.send({"version": 1, "request": request, **more}, fds)
        return self.receive()

    def step(self, step, **more):
        """A step with the files that it names, opened as the commands open them."""
        files, fds, made = {}, [], None

        def lend(role, name, flags, create=False):
            nonlocal made
            if name.startswith("$TMPDIR") and name[7:8] in ("", "/"):
                name = os.environ["TMPDIR"] + name[7:]
            files[role] = {"name": name}
            try:
                if create:
                    try:
                        fd = os.open(name, flags | os.O_CREAT | os.O_EXCL, 0o666)
                        made = name
                    except FileExistsError:
                        fd = os.open(name, flags)
                else:
                    fd = os.open(name, flags)
            except OSError as error:
                files[role]["errno"] = error.errno
            else:
                files[role]["fd"] = len(fds)
                fds.append(fd)

        if step["do"] == "reg" and "file" in step:
            flags = os.O_RDWR if step.get("map") == "shared" else os.O_RDONLY
            lend("file", step["file"], flags | os.O_NONBLOCK, step.get("create", False))
        if step["do"] == "reg" and "file" in step.get("init", {}):
            lend("init", step["init"]["file"], os.O_RDONLY)
        if step["do"] == "write" and "file" in step:
            lend("file", step["file"], os.O_RDONLY)
        if step["do"] == "read" and "to_file" in step:
            lend("to_file", step["to_file"], os.O_WRONLY, True)
        reply = self.ask(step, fds, files=files, **more)
        for fd in fds:
            os.close(fd)
        if made and not reply["ok"] and os.path.getsize(made) == 0:
            os.unlink(made)
        return reply

    def names(self):
        return [mr["name"] for mr in self.ask({"do": "show"})["result"]["mrs"]]

    def clear(self):
        """Away with all MRs, those over others first."""
        left = self.names()
        while left:
            before = len(left)
            left = [n for n in left if not self.ask({"do": "dereg", "mr": n})["ok"]]
            assert len(left) < before, left


# ---- the same as run ---------------------------------------------------------------

def plain(value, key=""):
    """Without what differs from run to run: keys, addresses, times."""
    if isinstance(value, dict):
        return {k: plain(v, k) for k, v in value.items() if k != "elapsed_us"}
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, str) and key in ("lkey", "rkey", "base", "message", "hint"):
        return re.sub(r"0x[0-9a-f]+", "0x", value)
    return value


def steps_of(path):
    try:
        with open(path, encoding="utf-8") as file:
            plan = json.load(file)
    except ValueError:
        return None
    return plan.get("steps") if isinstance(plan, dict) else None


def document(command, env=None):
    """What ibmr answers."""
    done = subprocess.run(command, check=False, env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL)
    return json.loads(done.stdout)


def same(left, right, *members):
    left, right = (plain({m: answer.get(m) for m in members}) for answer in (left, right))
    if left != right:
        raise AssertionError("run: %s\nsession: %s" % (json.dumps(left), json.dumps(right)))


def compare(session, path, answer, **more):
    """Every step of a plan, as run answered it, by the session; how many were compared."""
    for number, (step, outcome) in enumerate(zip(steps_of(path), answer.get("steps", []))):
        if outcome["skipped"]:
            return number
        try:
            same(outcome, session.step(step, **more), "ok", "expected", "result", "error")
        except AssertionError as error:
            sys.exit("%s, step %d: %s" % (path, number, error))
    return len(answer.get("steps", []))


def compare_here(session, path):
    os.chdir(os.path.dirname(path))
    with tempfile.TemporaryDirectory() as outer:
        # one name both times: messages have it
        os.environ["TMPDIR"] = os.path.join(outer, "tmp")
        os.mkdir(os.environ["TMPDIR"])
        answer = document([IBMR, "run", "--device", "soft0", path])
        shutil.rmtree(os.environ["TMPDIR"])
        os.mkdir(os.environ["TMPDIR"])
        steps = compare(session, path, answer)
        session.clear()
    return steps


OF_ITS_OWN = {"soft0", "memlock", "args", "device"}


def cases(apart):
    """Plans of the cases with what their run asks for: of soft0 or of the system, or nothing. How a
    document is read is no matter of steps."""
    for path in sorted(glob.glob(os.path.join(TOP, "test", "cases", "*", "plan.json"))):
        with open(os.path.join(os.path.dirname(path), "expect.json"), encoding="utf-8") as file:
            want = json.load(file).get("run")
        if want and "input" not in want and apart == bool(OF_ITS_OWN & set(want)):
            if steps_of(path) is not None:
                yield path, want


def same_as_run(part, parts):
    """Plans of the examples, and of the cases that ask for nothing of their own."""
    session = Session()
    paths = sorted(glob.glob(os.path.join(TOP, "man", "examples", "*.json")))
    paths += [path for path, _ in cases(False)]
    steps = sum(compare_here(session, path) for path in paths[int(part)::int(parts)])
    print("%d steps are the same" % steps)
    assert steps > 60


def compare_apart(path, want, socket_path):
    """The same with a session for this plan alone, under the same conditions."""
    os.chdir(os.path.dirname(path))
    env = dict(os.environ, IBMR_SOCKET=socket_path)
    env["IBMR_SOFT0"] = ",".join(filter(None, [env.get("IBMR_SOFT0"), want.get("soft0")]))
    limit = []
    if "memlock" in want:
        limit = ["prlimit", "--memlock=%d:%d" % (want["memlock"], want["memlock"])]
    args = list(want.get("args", []))
    if "--device" not in args:
        args += ["--device", "soft0"]
    answer = document([*limit, IBMR, "run", *args, path], env)
    device = args[args.index("--device") + 1]
    start = document([*limit, IBMR, "session", "start", "--device", device], env)
    if not start["ok"]:
        same(answer, start, "ok", "error")
        assert "steps" not in answer or all(step["skipped"] for step in answer["steps"]), path
        return 1
    more = {"timeout_ms": 200} if "200ms" in args else {}
    try:
        return compare(Session(socket_path), path, answer, **more)
    finally:
        subprocess.run([IBMR, "session", "stop"], check=True, env=env, stdout=subprocess.DEVNULL)


def same_as_run_apart():
    """Plans of the cases that ask for a soft0 or a limit of their own."""
    socket_path = os.path.join(os.environ["TMPDIR"], "apart.sock")
    done = [compare_apart(path, want, socket_path) for path, want in cases(True)]
    print("%d steps of %d plans are the same" % (sum(done), len(done)))
    assert len(done) > 20


# ---- clients that do not behave --------------------------------------------------------

def manual():
    """The client that the manual page shows."""
    with open(os.path.join(TOP, "man", "ibmr-session.1"), encoding="utf-8") as file:
        code = re.search(r"^import json, os, socket, struct\n.*?(?=^\.Ed)", file.read(),
                         re.M | re.S).group(0)
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    assert done.stdout == b"True\naccess\n", done.stdout


def hostile():
    """Others are answered while some send slowly, nothing, half of it, or garbage, and vanish."""
    good = Session()
    assert good.ask({"do": "reg", "mr": "a", "length": 4096, "access": ACCESS})["ok"]
    fds_before = len(os.listdir("/proc/%d/fd" % good.ask({"do": "status"})["result"]["pid"]))
    bad = [Session() for _ in range(40)]
    for number, client in enumerate(bad):
        kind = number % 8
        if kind == 1:
            client.sock.send(b"\0\0")
        elif kind == 2:
            client.sock.send(struct.pack(">I", 1000) + b'{"version":')
        elif kind == 3:
            client.sock.send(b"GET / HTTP/1.0\r\n\r\n")
            answer = client.receive()
            assert answer["error"]["cause"] == "session_message", answer
        elif kind == 4:
            client.sock.send(struct.pack(">I", 0))
            assert client.receive()["error"]["cause"] == "protocol"
        elif kind == 5:
            client.sock.send(struct.pack(">I", 5) + b"\xff\xfe{}x")
            assert client.receive()["error"]["code"] == "spec_syntax"
        elif kind == 6:
            client.send({"version": 1, "request": {"do": "show"}})  # and never reads
        elif kind == 7:
            fds = array.array("i", [0] * 200)
            try:
                client.sock.sendmsg([b"\0\0\0\x02{}"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
                assert client.receive()["error"]["cause"] == "protocol"
            except ConnectionError:
                pass
        start = time.monotonic()
        assert good.ask({"do": "read", "mr": "a", "length": 8})["ok"]
        assert time.monotonic() - start < 5
    half = Session()
    half.send({"version": 1, "request": {"do": "show"}})
    half.sock.shutdown(socket.SHUT_WR)
    assert half.receive()["ok"]
    assert half.sock.recv(1) == b""
    for client in bad:
        client.sock.close()
    half.sock.close()
    for _ in range(100):
        status = good.ask({"do": "status"})["result"]
        fds_now = len(os.listdir("/proc/%d/fd" % status["pid"]))
        if status["clients"] == 1 and fds_now <= fds_before:
            return
        time.sleep(0.05)
    sys.exit("left behind: %s, %d descriptors, before %d" % (status, fds_now, fds_before))


def slow():
    """A message has its ten seconds, a byte a second or none at all; the others have theirs."""
    good, dribble, stuck, silent = Session(), Session(), Session(), Session()
    start = time.monotonic()
    dribble.sock.send(struct.pack(">I", 1000))
    stuck.sock.send(b"\0")
    try:
        for _ in range(30):
            dribble.sock.send(b" ")
            assert good.ask({"do": "show"})["ok"]
            time.sleep(0.5)
        sys.exit("a message of 15 seconds")
    except (BrokenPipeError, ConnectionResetError):
        pass
    assert 8 < time.monotonic() - start < 14
    assert stuck.sock.recv(1) == b""
    silent.sock.close()
    assert good.ask({"do": "status"})["result"]["clients"] == 1


def messages():
    """What is wrong with a message is said, and the connection goes on."""
    session = Session()
    for message, code, cause in (
            ({}, "spec_missing", None),
            ([], "spec_type", None),
            ({"version": 2, "request": {"do": "show"}}, "session", "version"),
            ({"version": 1}, "spec_missing", None),
            ({"version": 1, "request": {"do": "show"}, "more": 1}, "spec_unknown_member", None),
            ({"version": 1, "request": {"do": "shew"}}, "spec_value", None),
            ({"version": 1, "request": {"do": "show", "mr": ""}}, "spec_value", None),
            ({"version": 1, "request": {"do": "status", "mr": "a"}}, "spec_unknown_member", None),
            ({"version": 1, "device": "mlx5_9", "request": {"do": "show"}}, "session",
             "other_device"),
            ({"version": 1, "request": {"do": "reg", "mr": "a", "file": "x"}}, "session",
             "protocol"),
            ({"version": 1, "request": {"do": "reg", "mr": "a", "file": "x"},
              "files": {"file": {"name": "x", "fd": 0}}}, "session", "protocol"),
            ({"version": 1, "request": {"do": "show"}, "files": {"other": {"name": "x", "fd": 0}}},
             "session", "protocol")):
        session.send(message)
        error = session.receive()["error"]
        assert (error["code"], error["cause"]) == (code, cause), (message, error)
    reader, writer = os.pipe()
    session.ask({"do": "reg", "mr": "a", "length": 4096, "access": ACCESS})
    reply = session.ask({"do": "write", "mr": "a", "file": "pipe"}, [reader],
                        files={"file": {"name": "pipe", "fd": 0}})
    assert reply["error"]["code"] == "io" and reply["error"]["errno"] == "ENODEV", reply
    os.close(reader)
    os.close(writer)
    assert session.ask({"do": "read", "mr": "a", "length": 1,
                        "expect": {"hex": "01"}})["expected"] is False


# ---- many ---------------------------------------------------------------------------------

class Own:
    """The MRs of one client of many, and what each of its requests must come to."""

    def __init__(self, number):
        self.number = number
        self.choose = random.Random(number)
        self.have = {}  # name: "direct", "empty" or the name of the MR that it is filled over
        self.session = Session()

    def used(self, name):
        return name in self.have.values()

    def ask(self, want, do, name, **members):
        reply = self.session.ask({"do": do, "mr": name, **members})
        assert reply["ok"] == want, (do, name, self.have, reply)
        return reply

    def reg(self, name, there):
        self.ask(there is None, "reg", name, length=8192, access=ACCESS)
        self.have.setdefault(name, "direct")

    def create(self, name, there):
        self.ask(there is None, "create", name, max_klms=2)
        self.have.setdefault(name, "empty")

    def dereg(self, name, there):
        free = there is not None and not self.used(name)
        self.ask(free, "dereg", name)
        if free:
            del self.have[name]

    def fill(self, name, there):
        over = self.choose.choice([n for n, k in self.have.items() if k == "direct"] or ["none"])
        may = there not in (None, "direct") and over in self.have
        self.ask(may, "fill", name, layout="list", access=ACCESS,
                 klms=[{"mr": over, "offset": 4096, "length": 64}])
        if may:
            self.have[name] = over

    def invalidate(self, name, there):
        may = there not in (None, "direct")
        self.ask(may, "invalidate", name)
        if may:
            self.have[name] = "empty"

    def write(self, name, there):
        byte = self.choose.randrange(256)
        may = there not in (None, "empty")
        self.ask(may, "write", name, byte=byte, length=64)
        if may:
            reply = self.ask(True, "read", name, length=64)
            assert reply["result"]["hex"] == "%02x" % byte * 64, reply

    def show(self, name, there):
        self.ask(there is not None, "show", name)

    def step(self):
        name = "c%d-%d" % (self.number, self.choose.randrange(4))
        verbs = (self.reg, self.create, self.dereg, self.fill, self.invalidate, self.write, self.show)
        self.choose.choice(verbs)(name, self.have.get(name))
        if self.choose.random() < 0.05:  # an answer that nobody waits for
            self.session.send({"version": 1, "request": {"do": "show"}})
            self.session.sock.close()
            self.session = Session()


def one_of_many(number, end, ended):
    """Make, fill, use and remove MRs of one's own; each answer must be what one's own MRs make it."""
    own = Own(number)
    try:
        while time.monotonic() < end:
            own.step()
        ended.append((number, None, own.have))
    except Exception as error:  # noqa: B902 - it is told by the one who started the thread
        ended.append((number, repr(error), {}))


def in_threads(what, clients, seconds):
    """Clients at a time; what each of them left."""
    ended = []
    end = time.monotonic() + float(seconds)
    threads = [threading.Thread(target=what, args=(i, end, ended)) for i in range(int(clients))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wrong = [(number, text) for number, text, _ in ended if text]
    assert not wrong and len(ended) == int(clients), wrong
    return [left for _, _, left in ended]


def many(clients, seconds):
    """Clients at a time, doing random work: at the end there is exactly what each left."""
    left = in_threads(one_of_many, clients, seconds)
    session = Session()
    want = sorted(name for have in left for name in have)
    assert sorted(session.names()) == want, (session.names(), want)
    print("%d requests" % session.ask({"do": "status"})["result"]["requests"])
    session.clear()


def one_of_one_name(number, end, ended):
    """All for the same name: whoever reads it sees the bytes of one MR, with which it began."""
    try:
        session = Session()
        view = "view%d" % number
        assert session.ask({"do": "create", "mr": view, "max_klms": 1})["ok"]
        while time.monotonic() < end:
            codes = set()
            session.ask({"do": "reg", "mr": "one", "length": 65536, "access": ACCESS,
                         "init": {"byte": number + 1}})
            for ask in ({"do": "read", "mr": "one", "offset": 61440, "length": 4096},
                        {"do": "fill", "mr": view, "layout": "list", "access": ACCESS,
                         "klms": [{"mr": "one", "length": 4096}]},
                        {"do": "read", "mr": view, "length": 4096},
                        {"do": "invalidate", "mr": view},
                        {"do": "dereg", "mr": "one"}):
                reply = session.ask(ask)
                if not reply["ok"]:
                    codes.add(reply["error"]["code"])
                elif ask["do"] == "read":
                    assert reply["result"]["hex"] == reply["result"]["hex"][:2] * 4096
            assert codes <= {"no_such_mr", "state", "in_use"}, codes
        ended.append((number, None, {view}))
    except Exception as error:  # noqa: B902 - it is told by the one who started the thread
        ended.append((number, repr(error), {}))


def one_name(clients, seconds):
    """Clients that make and remove one name: none ever meets an MR that was there before."""
    in_threads(one_of_one_name, clients, seconds)
    Session().clear()


# ---- progress -----------------------------------------------------------------------------

def on_terminal(*args, stdin=None):
    """What a command writes to standard error when that is a terminal."""
    ours, theirs = pty.openpty()
    command = subprocess.Popen([IBMR, *args], stdin=stdin, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    text = b""
    try:
        while True:
            part = os.read(ours, 65536)
            if not part:
                break
            text += part
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert command.wait() == 0, text
    return text.decode()


def progress():
    """soft0 takes its time for every message: a megabyte at a time."""
    session = Session()
    size = "40MiB"
    assert session.ask({"do": "reg", "mr": "a", "length": size, "access": ACCESS})["ok"]
    seen = on_terminal("write", "a", "--byte", "1")
    assert re.search(r"\r *[0-9]+% of 40 MiB", seen), seen
    assert re.search(r"\r +\r$", seen), seen
    assert on_terminal("write", "a", "--byte", "1", "--length", "64") == ""
    plan = {"steps": [{"do": "reg", "mr": "a", "length": size, "access": ACCESS},
                      {"do": "write", "mr": "a", "byte": 1}]}
    with open("plan.json", "w", encoding="utf-8") as file:
        json.dump(plan, file)
    seen = on_terminal("run", "--device", "soft0", "plan.json")
    assert re.search(r"\r *[0-9]+% of 40 MiB", seen) and re.search(r"\r +\r$", seen), seen
    # where nobody would see it there is none
    done = subprocess.run([IBMR, "write", "a", "--byte", "1"], check=True, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE)
    assert done.stderr == b"", done.stderr
    # bytes that come slowly
    with subprocess.Popen("for i in 1 2 3 4 5 6; do printf 12345678; sleep 0.4; done", shell=True,
                          stdout=subprocess.PIPE) as slow:
        seen = on_terminal("write", "a", stdin=slow.stdout)
    assert re.search(r"\r[0-9]+ bytes", seen) and re.search(r"\r +\r$", seen), seen
    # who asks for it over the wire
    session.send({"version": 1, "progress": True, "request": {"do": "read", "mr": "a"}})
    told = session.receive()
    assert told["progress"]["total"] == 40 << 20 and told["progress"]["done"] > 0, told
    while "progress" in told:
        told = session.receive()
    assert told["ok"], told


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
