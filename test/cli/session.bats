#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2016,SC2030,SC2031,SC2154
# Sessions: starting, ending, and the commands on MRs between the two.

load helpers

rights=local_write,remote_write,remote_read,remote_atomic

gone() { # PID: within 20 s, on a machine that has much else to do
	local i
	for ((i = 0; i < 400; i++)); do
		runs "$1" || return 0
		sleep 0.05
	done
	return 1
}

# A session with an MR over another one; its process is $pid.
held_session() {
	session
	good reg a --length 4096 --access "$rights"
	good create x --max-klms 1
	printf '{"layout":"list","klms":[{"mr":"a","length":8}]}' | "$IBMR" fill x -
	good session status
	pid=$(jq .result.pid <<<"$output")
}

@test "start says where and what, status how much, stop leaves nothing" {
	mkdir here
	export IBMR_SOCKET=$PWD/here/s.sock
	good session start --device soft0
	holds '.device == {name: "soft0", software: true} and .result.device == "soft0" and
		(.result.socket | endswith("/s.sock")) and .result.pid > 1 and (.result.version | length > 0)'
	pid=$(jq .result.pid <<<"$output")
	[ "$(stat -c %a here/s.sock)" = 600 ]
	good reg a --length 8192
	good session status
	holds ".result.pid == $pid and .result.mrs == 1 and .result.locked_bytes == 8192"
	good session stop
	gone "$pid"
	[ -z "$(ls here)" ]
}

@test "no session: each command says how to start one" {
	for IBMR_SOCKET in "$PWD/s.sock" "$PWD/no/such/s.sock" ""; do
		export IBMR_SOCKET XDG_RUNTIME_DIR=$PWD
		for command in "show" "reg a --length 1" "dereg a" "session stop" "session status"; do
			# shellcheck disable=SC2086
			bad 5 session $command
			holds '.error.cause == "not_running"'
			holds ".error.hint | contains(\"ibmr session start --device soft0${IBMR_SOCKET:+ --socket $IBMR_SOCKET} \")"
		done
	done
	[ ! -e ibmr ]
	bad 5 session session start --device soft0 --socket no/such/s.sock
	holds '.error.cause == "folder"'
}

@test "create, fill, prefetch from the shell" {
	session
	good reg pool --length 64KiB --access "$rights"
	holds '.command == "reg" and .result.mr.length == 65536 and .result.mr.state == "registered"'
	good reg lazy --length 1MiB --access local_write,on_demand
	good create col --max-klms 4
	holds '.result.mr.kind == "indirect" and .result.mr.state == "empty"'
	printf '{"layout":"list","access":["local_write","remote_write","remote_read"],"klms":[
		{"mr":"pool","offset":4096,"length":16},{"mr":"pool","offset":64,"length":16}]}' >spec.json
	good fill col spec.json
	holds '.result.mr.length == 32 and .result.mr.entries == 2 and .result.mr.base == "0x0"'
	good fill col - --base 0x1000 <spec.json
	holds '.result.mr.base == "0x1000"'
	good prefetch lazy --offset 4096 --length 64KiB --advice write
	holds '.result.pages == 16 and .result.cpu_resident_before == 0 and .result.cpu_resident_after == 16'
	good verify col
	bad 1 in_use dereg pool
	good invalidate col
	good dereg pool
	good show
	holds '[.result.mrs[].name] == ["lazy", "col"]'
	bad 1 no_such_mr show co
	holds '.error.where == "/mr" and (.error.hint | contains("col"))'
}

@test "bytes: standard input, files, hex, standard output, pipes" {
	session
	good reg a --length 3MiB --access "$rights"
	head -c 2500000 /dev/urandom >bytes
	good write a <bytes
	holds '.result.length == 2500000'
	"$IBMR" read a --length 2500000 --to-file - 2>answer | cmp - bytes
	jq -e '.ok and .result.file == "-" and .result.hex == null' answer
	good read a --length 2500000 --to-file out
	cmp out bytes
	"$IBMR" read a --length 2500000 --to-file >(cat >piped; touch copied)
	for ((i = 0; i < 100; i++)); do [ ! -e copied ] || break; sleep 0.05; done
	cmp piped bytes
	bad 1 io read a --to-file /dev/full
	holds '.error.message == "/dev/full: No space left on device"'
	good write a --file <(printf 'from a pipe') --offset 10
	good read a --offset 10 --length 11
	holds '.result.hex == "66726f6d20612070697065"'
	good write a --hex 00ff --offset 1
	good write a --ramp 5 --length 4
	good read a --length 4
	holds '.result.hex == "05060708"'
	good write a --byte 7
	holds '.result.length == 3145728'
	(head -c 100 >/dev/null; "$IBMR" write a) <bytes >answer
	jq -e '.result.length == 2499900' answer
}

@test "memory begins as asked" {
	session
	printf 'from a file' >begin
	good reg ramp --length 4096 --access "$rights" --init-ramp 254
	good reg byte --length 4096 --access "$rights" --init-byte 0x7f
	good reg hex --length 4096 --access "$rights" --init-hex 00ff
	good reg file --length 4096 --access "$rights" --init-file begin
	good reg pipe --length 4096 --access "$rights" --init-file <(printf 'a pipe')
	for pair in ramp:feff0001 byte:7f7f7f7f hex:00ff0000 file:66726f6d pipe:61207069; do
		good read "${pair%:*}" --length 4
		holds ".result.hex == \"${pair#*:}\""
	done
	bad 2 usage reg a --length 1 --init-byte 1 --init-byte 2
	bad 2 spec_value reg a --length 1 --init-byte 1 --init-ramp 2
	holds '.error.where == "/init"'
	bad 2 spec_value reg a --length 1 --init-byte 256
	holds '.error.where == "/init/byte"'
	bad 2 spec_value reg a --length 1 --init-hex $'\xff'
	holds '.error.where == "/init/hex"'
	bad 1 range reg a --length 1 --init-hex 0011
	bad 1 io reg a --length 1 --init-file nowhere
	good show
	holds '[.result.mrs[].name] == ["ramp", "byte", "hex", "file", "pipe"]'
}

@test "a FIFO without a peer ends by the time of the step, or by a signal" {
	session
	mkfifo never
	good reg a --length 4096 --access "$rights"
	bad 6 timeout write a --file never --timeout 100ms
	bad 6 timeout read a --to-file never --timeout 100ms
	sleep 5 <>never >/dev/null 3>&- &
	sleeper=$!
	bad 6 timeout write a --file never --timeout 100ms
	kill "$sleeper"
	wait "$sleeper" || true
	env --default-signal=INT "$IBMR" write a --file never >out 2>/dev/null &
	client=$!
	sleep 0.3
	kill -INT "$client"
	status=0
	wait "$client" || status=$?
	[ "$status" -eq 130 ]
	jq -e '.error.code == "interrupted"' out
	good dereg a
}

@test "a refused read makes no file and leaves one that is there" {
	session
	good reg a --length 4096 --access "$rights"
	bad 1 range read a --offset 5000 --to-file new
	[ ! -e new ]
	echo kept >old
	bad 1 range read a --offset 5000 --to-file old
	[ "$(cat old)" = kept ]
	bad 1 io read a --to-file no/such/folder
	bad 1 io write a --file missing
	holds '.error.errno == "ENOENT" and .error.origin == "open" and (.error.message | startswith("missing:"))'
	bad 1 io write a </dev/null
	holds '.error.cause == "empty_file"'
}

@test "atomics and copy" {
	session
	good reg a --length 4096 --access "$rights"
	good reg b --length 4096 --access "$rights"
	good fetch-add a --offset 8 --add 5
	holds '.command == "fetch_add" and .result.old == "0x0"'
	good compare-swap a --offset 8 --compare 5 --swap 0xff
	holds '.command == "compare_swap" and .result.old == "0x5"'
	good copy --to b --from a --from-offset 8 --length 1
	good read b --length 1
	holds '.result.hex == "ff"'
}

@test "files under MRs are opened where the command runs, with its umask" {
	session
	mkdir folder
	cd folder
	printf abcdefgh >data
	good reg m --file data --access "$rights" --map shared
	good write m --hex 58
	[ "$(cat data)" = Xbcdefgh ]
	umask 027
	good reg made --file made --create --map shared --length 4096 --access "$rights"
	[ "$(stat -c '%a %s' made)" = "640 4096" ]
	bad 1 exists reg made --file other --create --map shared --length 4096
	[ ! -e other ]
	bad 1 io reg x --file nothing
	holds '.error.errno == "ENOENT"'
	bad 1 range reg x --file data --length 100
}

@test "names and values that are none: exit 2, as in a plan" {
	session
	for name in '' a/b $'a\tb' "$(printf 'x%.0s' {1..65})" $'\xff'; do
		bad 2 spec_value reg "$name" --length 1
		holds '.error.where == "/mr"'
	done
	bad 2 spec_value reg a --length 0
	bad 2 spec_value reg a --length 1 --access local_write,
	bad 2 spec_missing reg a
	bad 2 spec_missing create a
	bad 2 usage reg a --length 1 --length 2
	bad 2 usage prefetch a --flush maybe
	bad 2 usage session frob
	bad 2 usage session status --max-objects 3
	bad 2 spec_missing copy --to a
	good reg a --length 1
	bad 1 exists reg a --length 1
}

@test "a second start is refused, and of two at once one wins" {
	session
	bad 5 session session start --device soft0
	holds '.error.cause == "running"'
	export IBMR_SOCKET=$PWD/two.sock
	for i in 1 2 3 4; do
		"$IBMR" session start --device soft0 >"start.$i" 2>/dev/null &
	done
	wait
	[ "$(jq -s 'map(select(.ok)) | length' start.*)" = 1 ]
	[ "$(jq -s 'map(select(.error.cause == "running")) | length' start.*)" = 3 ]
	good session stop
	export IBMR_SOCKET=$session_socket
}

@test "a session whose socket was removed: start says how to find it" {
	session
	good session status
	local pid
	pid=$(jq .result.pid <<<"$output")
	rm "$IBMR_SOCKET"
	bad 5 session session status
	bad 5 session session start --device soft0
	holds '.error.cause == "running" and (.error.hint | contains("fuser") and contains(".lock"))'
	kill "$pid"
	gone "$pid"
	session
	bad 5 session session start --device soft0
	holds '.error.hint | contains("session stop")'
}

@test "after kill -9 the next start has nothing in its way" {
	session
	good session status
	kill -9 "$(jq .result.pid <<<"$output")"
	gone "$(jq .result.pid <<<"$output")"
	bad 5 session show
	holds '.error.cause == "not_running"'
	session
	good show
	holds '.result.mrs == []'
}

@test "a signal ends it, MRs released, nothing left" {
	for signal in TERM INT HUP; do
		soft0 "counters=$PWD/counters"
		held_session
		kill -s "$signal" "$pid"
		gone "$pid"
		[ ! -e "$IBMR_SOCKET" ] && [ ! -e "$IBMR_SOCKET.lock" ]
		grep -qx 'cmd.dereg_mr [1-9].*' counters
		for left in live.mr live.mkey live.context pinned_bytes; do
			grep -qx "$left 0" counters
		done
	done
}

@test "a device that is pulled out ends it, and who asks is told" {
	export LSAN_OPTIONS="${LSAN_OPTIONS:+$LSAN_OPTIONS:}suppressions=$top/test/sweep/leaks-of-others"
	before=$IBMR_SOFT0
	soft0 "gone=reg_mr:2,counters=$PWD/counters"
	held_session
	# who is connected while another one meets it
	/usr/bin/python3 -B - "$BATS_TEST_DIRNAME" >told <<'EOF2'
import sys
sys.path.insert(0, sys.argv[1])
import wire
idle, busy = wire.Session(), wire.Session()
assert idle.ask({"do": "show"})["ok"]
reply = busy.ask({"do": "reg", "mr": "b", "length": 4096})
print(reply["error"]["code"], reply["error"]["cause"])
reply = idle.receive()
print(reply["error"]["code"], reply["error"]["cause"], reply["error"]["message"])
EOF2
	diff told - <<-EOF2
	no_device device_gone
	session device_gone the session ended: device soft0 is gone
	EOF2
	gone "$pid"
	grep -qx 'live.context 0' counters
	[ ! -e "$IBMR_SOCKET" ]
	for command in "show" "reg b --length 1" "session status"; do
		# shellcheck disable=SC2086
		bad 5 session $command
		holds '.error.cause == "device_gone" and (.error.message | contains("device soft0 is gone")) and
			(.error.hint | contains("ibmr session start"))'
	done
	# the next start takes the word away
	export IBMR_SOFT0=$before
	session
	good show
	good session stop
	[ ! -e "$IBMR_SOCKET.lock" ]
	bad 5 session show
	holds '.error.cause == "not_running"'
}

@test "in the foreground the end of the device is a failure; in run the program has its own status" {
	export LSAN_OPTIONS="${LSAN_OPTIONS:+$LSAN_OPTIONS:}suppressions=$top/test/sweep/leaks-of-others"
	soft0 gone=reg_mr:1
	export IBMR_SOCKET=$PWD/s.sock
	"$IBMR" session start --foreground --device soft0 >doc 2>complaint &
	for ((i = 0; i < 200; i++)); do [ ! -s doc ] || break; sleep 0.05; done
	bad 1 no_device reg a --length 1
	status=0
	wait $! || status=$?
	status_is 5
	grep -q 'device soft0 is gone' complaint
	mkdir here
	export TMPDIR=$PWD/here
	run --separate-stderr "$IBMR" session run --device soft0 -- sh -c '
		"$IBMR" reg a --length 1 >/dev/null 2>&1
		"$IBMR" show 2>/dev/null; exit 9'
	status_is 9
	holds '.error.cause == "device_gone"'
	[ -z "$(ls here)" ]
}

@test "a session that dies at work: what is known of the request" {
	soft0 hold=1
	for signal in KILL:lost TERM:ended; do
		session
		good reg a --length 4096 --access "$rights"
		good session status
		pid=$(jq .result.pid <<<"$output")
		"$IBMR" write a --hex 00 --timeout 1m >doc 2>complaint &
		writer=$!
		# it is at work when others wait
		until ! timeout 0.3 "$IBMR" show >busy 2>&1; do :; done
		kill -s "${signal%:*}" "$pid"
		status=0
		wait "$writer" || status=$?
		status_is 5
		jq -e ".error.code == \"session\" and .error.cause == \"${signal#*:}\" and (.error.hint | length > 0)" doc
		gone "$pid"
	done
}

@test "what listens there and is no session is named as that" {
	export IBMR_SOCKET=$PWD/s.sock
	for answer in protocol:'b"HTTP/1.0 400 no\r\n\r\n"' protocol:'b"\0\0\0\2{}"' \
		protocol:'b"\0\0\0\1["' lost:'b"\0\0\0\2{"' lost:'b""'; do
		rm -f s.sock
		/usr/bin/python3 - "${answer#*:}" <<-'EOF2' &
		import ast, os, socket, sys
		listener = socket.socket(socket.AF_UNIX)
		listener.bind("s.new")
		listener.listen(1)
		os.rename("s.new", "s.sock")
		client, _ = listener.accept()
		client.recv(65536)
		client.sendall(ast.literal_eval(sys.argv[1]))
		EOF2
		for ((i = 0; i < 100; i++)); do [ ! -S s.sock ] || break; sleep 0.05; done
		bad 5 session show
		holds ".error.cause == \"${answer%%:*}\""
		wait
	done
}

@test "a name that is used again means the new MR only" {
	session
	good reg a --length 4096 --access "$rights" --init-byte 1
	good create x --max-klms 1
	printf '{"layout":"list","access":["remote_read"],"klms":[{"mr":"a","offset":8,"length":8}]}' >spec.json
	good fill x spec.json
	bad 1 in_use dereg a
	good invalidate x
	good dereg a
	good reg a --length 4096 --access "$rights" --init-byte 2
	bad 1 state read x
	good fill x spec.json
	good read x
	holds '.result.hex == "0202020202020202"'
	good verify x
}

@test "no core file can be written of it, whatever the limit was" {
	ulimit -S -c "$(ulimit -H -c)"
	session
	good session status
	grep -E '^Max core file size +1 +1 ' "/proc/$(jq .result.pid <<<"$output")/limits"
}

@test "it ends when nobody asked for the idle time" {
	export IBMR_SOCKET=$PWD/s.sock
	good session start --device soft0 --idle-timeout 300ms
	gone "$(jq .result.pid <<<"$output")"
	[ ! -e s.sock ]
}

@test "run: a private session, the program's output and status" {
	mkdir here
	export TMPDIR=$PWD/here
	run --separate-stderr "$IBMR" session run --device soft0 -- sh -c '
		"$IBMR" reg a --length 4096 >/dev/null && "$IBMR" show a --format jsonl; exit 7'
	status_is 7
	holds '.result.mr.name == "a"'
	[ -z "$(ls here)" ]
	run -127 "$IBMR" session run --device soft0 -- no-such-program
	touch plain
	run -126 "$IBMR" session run --device soft0 -- ./plain
	run -143 "$IBMR" session run --device soft0 -- sh -c 'kill -TERM $$'
	[ -z "$(ls here)" ]
}

@test "run: killed outright, its session ends by itself" {
	"$IBMR" session run --device soft0 -- sh -c '"$IBMR" session status >status; touch up; exec sleep 60' 3>&- &
	runner=$!
	for ((i = 0; i < 200; i++)); do [ ! -e up ] || break; sleep 0.05; done
	kill -9 "$runner"
	gone "$(jq .result.pid status)"
}

@test "foreground: the document when it answers, 0 when it is ended" {
	export IBMR_SOCKET=$PWD/s.sock
	"$IBMR" session start --foreground --device soft0 >doc &
	for ((i = 0; i < 200; i++)); do [ ! -s doc ] || break; sleep 0.05; done
	good reg a --length 1
	kill "$(jq .result.pid doc)"
	wait $!
	jq -e .ok doc
}

@test "foreground: a service manager has its word when the session answers" {
	export IBMR_SOCKET=$PWD/s.sock
	for name in ./notify @ibmr-test-$$; do
		/usr/bin/python3 - "$name" <<-'EOF2'
		import os, socket, subprocess, sys
		name = sys.argv[1]
		manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
		manager.bind(name.replace("@", "\0"))
		manager.settimeout(30)
		full = os.path.realpath(name) if name[0] == "." else name
		ibmr = os.environ["IBMR"]
		service = subprocess.Popen([ibmr, "session", "start", "--foreground", "--device", "soft0"],
		                           env=dict(os.environ, NOTIFY_SOCKET=full), stdout=subprocess.DEVNULL)
		assert manager.recv(100) == b"READY=1"
		subprocess.run([ibmr, "session", "stop"], check=True, stdout=subprocess.DEVNULL)
		assert service.wait() == 0
		EOF2
	done
}

@test "limits have errors of their own, and flags" {
	session --max-objects 2 --max-locked 64KiB --max-message 4KiB
	good reg a --length 4096
	bad 1 limit reg b --length 1MiB
	holds '.error.cause == "session_locked" and (.error.hint | contains("--max-locked"))'
	good reg lazy --length 1MiB --access on_demand
	bad 1 limit create c --max-klms 1
	holds '.error.cause == "session_objects"'
	bad 1 limit write a --hex "$(printf '00%.0s' {1..3000})"
	holds '.error.cause == "session_message"'
}

@test "a socket with a long name, a name that is no socket, a folder that others may enter" {
	long=$PWD/$(printf 'd%.0s' {1..120})
	mkdir "$long"
	export IBMR_SOCKET=$long/s.sock
	good session start --device soft0
	good show
	good session stop
	echo text >file
	export IBMR_SOCKET=$PWD/file
	bad 5 session session start --device soft0
	holds '.error.cause == "not_a_socket"'
	[ "$(cat file)" = text ]
	unset IBMR_SOCKET
	export XDG_RUNTIME_DIR=$PWD/run
	mkdir -p run/ibmr
	chmod 755 run/ibmr
	bad 5 session session start --device soft0
	holds '.error.cause == "folder"'
	chmod 700 run/ibmr
	good session start --device soft0
	[ -S run/ibmr/session.sock ]
	good session stop
}

@test "the default's folder: made for its user alone, no link, nobody else's" {
	umask 0
	export XDG_RUNTIME_DIR=$PWD/run
	mkdir run
	good session start --device soft0
	[ "$(stat -c %a run/ibmr run/ibmr/session.sock run/ibmr/session.sock.lock | xargs)" = "700 600 600" ]
	good session stop
	rmdir run/ibmr
	mkdir -m 700 elsewhere
	ln -s ../elsewhere run/ibmr
	for command in "session start --device soft0" show; do
		# shellcheck disable=SC2086
		bad 5 session $command
		holds '.error.cause == "folder" and (.error.message | endswith("run/ibmr: not a folder"))'
	done
	[ -z "$(ls elsewhere)" ]
	[ "$(id -u)" = 0 ] || skip "only root can give a folder away"
	rm run/ibmr
	mkdir -m 700 run/ibmr
	chown nobody run/ibmr
	for command in "session start --device soft0" show; do
		# shellcheck disable=SC2086
		bad 5 session $command
		holds '.error.cause == "not_owner"'
	done
	# another's runtime folder, as su leaves it, is not asked at all
	chown nobody run
	bad 5 session show
	holds '(.error.message | contains("/tmp/ibmr-0"))'
}

# A user whom nobody else here is; what is there belongs to him too.
as_user() { # COMMAND...
	unshare --user --map-user="$uid" "$@"
}

@test "without XDG_RUNTIME_DIR, as in a container, the folder is below /tmp" {
	unset XDG_RUNTIME_DIR
	uid=$((60000 + $$ % 5000))
	folder=/tmp/ibmr-$uid
	[ ! -e "$folder" ]
	as_user "$IBMR" session start --device soft0 >doc
	jq -e ".ok and .result.socket == \"$folder/session.sock\"" doc
	[ "$(stat -c %a "$folder")" = 700 ]
	as_user "$IBMR" reg a --length 4096 >doc
	as_user "$IBMR" session stop >doc
	jq -e '.result.mrs == 1' doc
	[ -z "$(ls "$folder")" ]
	rmdir "$folder"
	# a link that somebody else has put there leads nowhere
	mkdir -m 700 target
	ln -s "$PWD/target" "$folder"
	run -5 --separate-stderr as_user "$IBMR" session start --device soft0
	rm "$folder"
	jq -e '.error.cause == "folder"' <<<"$output"
	[ -z "$(ls target)" ]
}

@test "another user is not served, and another user's session not asked" {
	[ "$(id -u)" = 0 ] || skip "only root can become another user"
	session
	chmod 777 "$BATS_TEST_TMPDIR" "$IBMR_SOCKET"
	run /usr/bin/python3 - <<'EOF'
import json, os, socket, struct
os.setgid(65534)
os.setuid(65534)
s = socket.socket(socket.AF_UNIX)
os.chdir("/")
s.connect(os.environ["IBMR_SOCKET"])
n, = struct.unpack(">I", s.recv(4, socket.MSG_WAITALL))
print(json.loads(s.recv(n, socket.MSG_WAITALL))["error"]["cause"])
EOF
	echo "$output"
	[[ "$output" == not_owner || "$output" == *PermissionError* ]]
	# a copy of the command where everybody may run it
	common=$(mktemp -d /tmp/ibmr-common-XXXXXX)
	chmod 755 "$common"
	cp "$IBMR" "$common/ibmr"
	run --separate-stderr env -u LD_PRELOAD setpriv --reuid=65534 --regid=65534 --clear-groups "$common/ibmr" show
	rm -r "$common"
	status_is 5
	holds '.error.cause == "not_owner"'
	chown nobody "$IBMR_SOCKET"
	bad 5 session show
	holds '.error.cause == "not_owner"'
	chown root "$IBMR_SOCKET"
}

@test "another device than the session's is refused" {
	session
	bad 5 session show --device mlx5_7
	holds '.error.cause == "other_device"'
}
