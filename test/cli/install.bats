#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2016,SC2154 # steps are JSON in single quotes; helpers.bash has the common ones
# Where ibmr finds its other half when it does not stand in a build folder.
# In one device mode: it is about where programs are found.
load helpers

setup_file() {
	# as unprivileged users see it too
	INSTALLED=$(mktemp -d "${BATS_RUN_TMPDIR:-/tmp}/ibmr-install.XXXXXX")
	chmod 755 "$INSTALLED"
	export INSTALLED
	: "${IBMR_BUILD:=$(cd "$(dirname "$IBMR")/../.." && pwd)}"
	DESTDIR=$INSTALLED meson install -C "$IBMR_BUILD" --no-rebuild --quiet >/dev/null
	PREFIX=$INSTALLED$(meson introspect --buildoptions "$IBMR_BUILD" | jq -r '.[] | select(.name == "prefix").value')
	export PREFIX
}

teardown_file() {
	rm -rf "$INSTALLED"
}

@test "an installation that was moved works as a whole" {
	plan "$reg_a" "$create_x" "$fill_x" '{"do":"verify","mr":"x"}'
	IBMR=$PREFIX/bin/ibmr
	good run plan.json
	good devices
	holds '.result.devices[-1].usable'
	ibmr exec -- ibv_devices
	[[ "$output" == *soft0* ]]
	mv "$PREFIX" "$INSTALLED/moved"
	IBMR=$INSTALLED/moved/bin/ibmr
	good run plan.json
	mv "$INSTALLED/moved" "$PREFIX"
}

@test "through a symbolic link and by PATH" {
	plan "$reg_a"
	ln -s "$PREFIX/bin/ibmr" link
	IBMR=./link good run plan.json
	run --separate-stderr env PATH="$PREFIX/bin:$PATH" ibmr run plan.json
	status_is 0 && holds .ok
}

@test "ibmr does not contain softdev" {
	run ! grep -q soft0_counter "$PREFIX/bin/ibmr"
	run ! bash -c "ldd '$PREFIX/bin/ibmr' | grep softdev"
}

@test "without ibmr-soft0 soft0 is told as missing, and real devices still listed" {
	mkdir alone
	cp "$PREFIX/bin/ibmr" alone/
	plan "$reg_a"
	IBMR=alone/ibmr bad 1 no_device run plan.json
	holds '.error.cause == "no_soft0" and .error.hint'
	IBMR=alone/ibmr good devices
	holds '.result.devices[-1] | .name == "soft0" and (.usable | not) and .error.cause == "no_soft0"'
	IBMR=alone/ibmr ibmr exec -- true
	status_is 126
}

@test "a program of that name without softdev does not execute itself for ever" {
	mkdir fake
	cp "$PREFIX/bin/ibmr" fake/ibmr
	cp "$PREFIX/bin/ibmr" fake/ibmr-soft0
	plan "$reg_a"
	IBMR=fake/ibmr bad 1 no_device run plan.json
	holds '.error.cause == "no_soft0"'
}

@test "with file capabilities only the configured place counts" {
	[ "$(id -u)" = 0 ] || skip "only root can give file capabilities"
	chmod 755 "$BATS_TEST_TMPDIR" "$BATS_RUN_TMPDIR"
	cp "$PREFIX/bin/ibmr" capable
	/sbin/setcap cap_ipc_lock+ep capable || skip "setcap is not allowed here"
	cp "$PREFIX/libexec/ibmr/ibmr-soft0" .
	plan "$reg_a"
	chmod 644 plan.json
	run --separate-stderr setpriv --reuid 65534 --regid 65534 --clear-groups "$PWD/capable" run plan.json
	if [ -x "${PREFIX#"$INSTALLED"}/libexec/ibmr/ibmr-soft0" ]; then
		status_is 0
	else
		status_is 1
		holds '.error.cause == "no_soft0" and (.error.message | contains("'"${PREFIX#"$INSTALLED"}"'"))'
	fi
}

@test "with file capabilities an installation at its place works" {
	[ "$(id -u)" = 0 ] || skip "only root can give file capabilities"
	chmod 755 "$BATS_TEST_TMPDIR" "$BATS_RUN_TMPDIR"
	place=${PREFIX#"$INSTALLED"}
	plan "$reg_a"
	chmod 644 plan.json
	unshare -m true || skip "no mount namespaces here"
	/sbin/setcap cap_ipc_lock+ep "$PREFIX/bin/ibmr" || skip "setcap is not allowed here"
	run --separate-stderr unshare -m bash -c "mkdir -p '$place' && mount --bind '$PREFIX' '$place' &&
		exec setpriv --reuid 65534 --regid 65534 --clear-groups '$place/bin/ibmr' run - <'$PWD/plan.json'"
	/sbin/setcap -r "$PREFIX/bin/ibmr"
	status_is 0
	holds '.ok and .device.software'
}
