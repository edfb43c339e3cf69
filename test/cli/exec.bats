#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2016,SC2154,SC2238 # steps are JSON in single quotes; helpers.bash has the common ones
# ibmr exec: other people's programs on soft0.
load helpers

# refused STATUS TEXT ARG...: no output, the reason on stderr
refused() {
	local want=$1 text=$2
	shift 2
	run "-$want" --separate-stderr "$IBMR" exec "$@"
	[ -z "$output" ]
	[[ "$stderr" == *"$text"* ]] || { show; return 1; }
}

@test "a verbs program finds soft0 and nothing else" {
	ibmr exec -- ibv_devices
	status_is 0
	[[ "$output" == *soft0* ]]
	[ "$(wc -l <<<"$output")" -eq 3 ]
	ibmr exec ibv_devinfo -v
	status_is 0
	[[ "$output" == *"hca_id:"*soft0*ACTIVE* ]]
	[ -z "$stderr" ]
}

@test "python's pyverbs" {
	ibmr exec -- /usr/bin/python3 -c 'from pyverbs.device import Context, get_device_list
print([d.name.decode() for d in get_device_list()]); Context(name="soft0")'
	status_is 0
	[ "$output" = "['soft0']" ]
}

@test "the program's output, input and status are its own" {
	run --separate-stderr bash -c "echo from stdin | '$IBMR' exec -- sh -c 'cat; echo to stderr >&2; exit 7'"
	status_is 7
	[ "$output" = "from stdin" ]
	[ "$stderr" = "to stderr" ]
	ibmr exec -- sh -c 'kill -TERM $$'
	status_is 143
}

@test "options behind the program are its own" {
	ibmr exec echo --device x --help -- --format=jsonl
	status_is 0
	[ "$output" = "--device x --help -- --format=jsonl" ]
	ibmr exec -- echo -- a
	[ "$output" = "-- a" ]
}

@test "nothing of it reaches the program's children" {
	ibmr exec -- sh -c 'echo "[$LD_PRELOAD]"; env | grep -c -e SYSFS -e softdev; ibv_devices'
	[[ "$output" == "[]"* || -n "${LD_PRELOAD:-}" ]]
	[[ "$output" != *soft0* ]]
}

@test "what was preloaded before stays" {
	LD_PRELOAD=libpthread.so.0 ibmr exec -- sh -c 'echo "$LD_PRELOAD"'
	[[ "$output" == *libpthread.so.0* ]]
	[[ "$output" != *softdev* ]]
}

@test "the program has default signals" {
	ibmr exec -- /usr/bin/python3 -c 'import signal
for s in (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    print(s.name, s in signal.pthread_sigmask(signal.SIG_BLOCK, []))'
	status_is 0
	[[ "$output" != *True* ]]
	# SIGPIPE ends it
	run --separate-stderr bash -c "'$IBMR' exec -- yes | head -n 1; echo \${PIPESTATUS[0]}"
	[ "$output" = $'y\n141' ]
}

@test "not found is 127" {
	refused 127 "not found" -- nosuchprogram
	refused 127 "No such file" -- ./nosuchprogram
	refused 127 "No such file" -- /nosuch/program
}

@test "not runnable is 126" {
	touch program77
	refused 126 "denied" -- ./program77
	refused 126 "not a program" -- ./
	refused 126 "directory" -- ./program77/x
	chmod +x program77
	refused 126 "neither a program" -- ./program77
	printf 'just text\n' >program77
	refused 126 "neither a program" -- ./program77
	PATH=$PWD:$PATH refused 126 "neither a program" -- program77
	chmod -x program77
	PATH=$PWD:$PATH refused 126 "not executable" -- program77
}

@test "set-user-ID and set-group-ID programs are refused" {
	cp "$(type -P true)" program
	chmod 4755 program
	refused 126 "set-user-ID" -- ./program
	chmod 2755 program
	refused 126 "set-group-ID" -- ./program
	chmod 755 program
	ibmr exec -- ./program
	status_is 0
}

@test "programs with file capabilities are refused" {
	cp "$(type -P true)" program
	/sbin/setcap cap_net_raw+ep program || skip "setcap is not allowed here"
	refused 126 "file capabilities" -- ./program
}

@test "static programs are refused, and those of other machines" {
	command -v "${CC:-gcc}" || skip "no compiler"
	echo 'int main(void) { return 0; }' >program.c
	"${CC:-gcc}" -static -o static program.c
	refused 126 "statically" -- ./static
	"${CC:-gcc}" -static-pie -o static-pie program.c
	refused 126 "statically" -- ./static-pie
	"${CC:-gcc}" -o program program.c
	ibmr exec -- ./program
	status_is 0
	# machine: another number
	printf '\x08\x00' | dd of=program bs=1 seek=18 conv=notrunc status=none
	refused 126 "another kind" -- ./program
	head -c 30 static >cut
	chmod +x cut
	refused 126 "" -- ./cut
}

@test "of scripts it is the interpreter that counts" {
	printf '#!/bin/sh\necho "script $1"\n' >script
	chmod +x script
	ibmr exec -- ./script one
	status_is 0
	[ "$output" = "script one" ]
	printf '#! %s -x\n' "$PWD/interpreter" >script
	printf '#!%s\n' "$PWD/script" >interpreter
	chmod +x interpreter
	refused 126 "too many" -- ./script
	cp "$(type -P true)" interpreter
	chmod 4755 interpreter
	refused 126 "set-user-ID" -- ./script
	rm interpreter
	refused 127 "No such file" -- ./script
}

@test "ibmr itself runs under ibmr exec" {
	plan "$reg_a" "$create_x" "$fill_x" '{"do":"verify","mr":"x"}'
	ibmr exec -- "$IBMR" run plan.json
	status_is 0
	holds '.ok and .device.software'
	ibmr exec -- "$IBMR" devices
	holds '.result.devices | length == 1'
}
