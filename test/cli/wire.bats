#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2154
# Sessions as other programs see them: the wire, what run would answer, clients that do not behave.

load helpers

setup_file() {
	session
}

teardown_file() {
	session_end
}

wire() {
	timeout 280 /usr/bin/python3 "$BATS_TEST_DIRNAME/wire.py" "$@"
}

@test "the client of the manual page" {
	wire manual
}

@test "what is wrong with a message is said" {
	"$IBMR" session stop
	session
	wire messages
}

@test "every plan has the results and errors that run gives (first half)" {
	session
	wire same_as_run 0 2
}

@test "every plan has the results and errors that run gives (second half)" {
	session
	wire same_as_run 1 2
}

@test "so has every plan for a soft0 or a limit of its own, in a session of its own" {
	wire same_as_run_apart
}

@test "a line on the terminal says how far long work is, and goes" {
	soft0 mode=async,delay=60000
	session
	wire progress
}

@test "clients that do not behave hold nobody up and leave nothing" {
	session
	wire hostile
}

@test "a message that does not come to its end is waited for ten seconds" {
	session
	wire slow
}

@test "64 clients at a time end with exactly what they made" {
	session
	wire many 64 "${SESSION_SECONDS:-5}"
}

@test "a name that many make and remove is one MR at a time" {
	session
	wire one_name 8 "${SESSION_SECONDS:-2}"
}

@test "room for clients is made as they come, however many may" {
	session --max-clients 4611686018427387904
	/usr/bin/python3 - "$BATS_TEST_DIRNAME" <<'EOF'
import sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import wire
clients = [wire.Session() for _ in range(70)]
for client in clients + clients[::-1]:
    assert client.ask({"do": "show"})["ok"]
assert clients[0].ask({"do": "status"})["result"]["clients"] == 70
EOF
}

@test "more clients than the session takes" {
	session --max-clients 2
	/usr/bin/python3 - "$BATS_TEST_DIRNAME" <<'EOF'
import sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import wire
first, second = wire.Session(), wire.Session()
assert first.ask({"do": "show"})["ok"] and second.ask({"do": "show"})["ok"]
third = wire.Session()
assert third.receive()["error"]["cause"] == "session_clients"
first.sock.close()
import time
for _ in range(100):
    try:
        assert wire.Session().ask({"do": "show"})["ok"]
        sys.exit(0)
    except (ConnectionError, EOFError, KeyError, AssertionError):
        time.sleep(0.05)
sys.exit(1)
EOF
}
