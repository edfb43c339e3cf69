# SPDX-License-Identifier: BSD-2-Clause
"""A client of sessions, by what ibmr-session(1) says of the wire; and tests that use it.

wire.py TEST runs one test against the session of $IBMR_SOCKET; its words are the functions below."""

import array
import glob
import json
import os
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

    def __init__(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(os.environ["IBMR_SOCKET"])

    def send(self, message, fds=()):
        text = json.dumps(message).encode()
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        data = struct.pack(">I", len(text)) + text
        sent = self.sock.sendmsg([data], rights)
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

    def step(self, step):
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
        reply = self.ask(step, fds, files=files)
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


def compare(session, path):
    """Every step of a plan, by run and by the session; how many were compared."""
    os.chdir(os.path.dirname(path))
    with tempfile.TemporaryDirectory() as outer:
        # one name both times: messages have it
        os.environ["TMPDIR"] = os.path.join(outer, "tmp")
        os.mkdir(os.environ["TMPDIR"])
        done = subprocess.run([IBMR, "run", "--device", "soft0", path], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        outcomes = json.loads(done.stdout).get("steps", [])
        shutil.rmtree(os.environ["TMPDIR"])
        os.mkdir(os.environ["TMPDIR"])
        for number, (step, outcome) in enumerate(zip(steps_of(path), outcomes)):
            if outcome["skipped"]:
                break
            reply = session.step(step)
            member = "result" if reply["ok"] else "error"
            left = plain({m: outcome.get(m) for m in ("ok", "expected", member)})
            right = plain({m: reply.get(m) for m in ("ok", "expected", member)})
            if left != right:
                sys.exit("%s, step %d: run: %s\nsession: %s" % (
                    path, number, json.dumps(left), json.dumps(right)))
        session.clear()
    return sum(not outcome["skipped"] for outcome in outcomes)


def same_as_run(part, parts):
    """Plans of the examples and of the cases that ask for no soft0 or limit of their own."""
    session = Session()
    paths = sorted(glob.glob(os.path.join(TOP, "man", "examples", "*.json")))
    for path in sorted(glob.glob(os.path.join(TOP, "test", "cases", "*", "plan.json"))):
        with open(os.path.join(os.path.dirname(path), "expect.json"), encoding="utf-8") as file:
            run = json.load(file).get("run")
        if run and not {"soft0", "memlock", "input", "args", "device"} & set(run):
            paths.append(path)
    steps = sum(compare(session, path) for path in paths[int(part)::int(parts)]
                if steps_of(path) is not None)
    print("%d steps are the same" % steps)
    assert steps > 60


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

def one_of_many(number, end, problems):
    """Make, fill, use and remove MRs of one's own; each answer must be what one's own MRs make it."""
    try:
        session = Session()
        choose = random.Random(number)
        have = {}
        while time.monotonic() < end:
            name = "c%d-%d" % (number, choose.randrange(4))
            state = have.get(name)
            verb = choose.choice(("reg", "create", "dereg", "write", "show"))
            if verb == "reg":
                ok = session.ask({"do": "reg", "mr": name, "length": 8192, "access": ACCESS})["ok"]
                want = state is None
                have.setdefault(name, "direct")
            elif verb == "create":
                ok = session.ask({"do": "create", "mr": name, "max_klms": 2})["ok"]
                want = state is None
                have.setdefault(name, "indirect")
            elif verb == "dereg":
                ok = session.ask({"do": "dereg", "mr": name})["ok"]
                want = state is not None
                have.pop(name, None)
            elif verb == "write":
                byte = choose.randrange(256)
                ok = session.ask({"do": "write", "mr": name, "byte": byte, "length": 64})["ok"]
                want = state == "direct"
                if ok:
                    reply = session.ask({"do": "read", "mr": name, "length": 64})
                    assert reply["result"]["hex"] == "%02x" % byte * 64, reply
            else:
                ok = session.ask({"do": "show", "mr": name})["ok"]
                want = state is not None
            assert ok == want, (verb, name, state, ok)
            if choose.random() < 0.05:
                session.sock.close()
                session = Session()
        problems.append((number, None, have))
    except Exception as error:  # noqa: B902 - it is told by the one who started the thread
        problems.append((number, repr(error), {}))


def many(clients, seconds):
    """Clients at a time, doing random work: at the end there is exactly what each left."""
    ended = []
    end = time.monotonic() + float(seconds)
    threads = [threading.Thread(target=one_of_many, args=(i, end, ended))
               for i in range(int(clients))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wrong = [(number, text) for number, text, _ in ended if text]
    assert not wrong and len(ended) == int(clients), wrong
    session = Session()
    want = sorted(name for _, _, have in ended for name in have)
    assert sorted(session.names()) == want, (session.names(), want)
    print("%d requests" % session.ask({"do": "status"})["result"]["requests"])
    session.clear()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
