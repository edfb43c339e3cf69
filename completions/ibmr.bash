# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# bash completion for ibmr(1). test/examples/completion.bats holds it to what `ibmr --help` says.

_ibmr_commands='check compare-swap copy create dereg devices doctor exec fetch-add fill invalidate prefetch read reg report run session show translate validate verify write'
_ibmr_global='--deadline --device --format --gid-index --help --port --socket --timeout --version'

# Options of one command beside the global ones.
_ibmr_options() {
	case $1 in
	check) echo '--mr --target' ;;
	compare-swap) echo '--compare --offset --swap' ;;
	copy) echo '--from --from-offset --length --to --to-offset' ;;
	create) echo '--max-klms --split' ;;
	devices) echo --save-profile ;;
	exec) echo '--' ;;
	fetch-add) echo '--add --offset' ;;
	fill) echo '--access --base --count --layout --split' ;;
	prefetch) echo '--advice --expect-resident --flush --length --offset' ;;
	read) echo '--length --offset --to-file --unchecked' ;;
	reg) echo '--access --attach --create --file --file-offset --hugepages --init-byte --init-file --init-hex --init-ramp --length --map' ;;
	report) echo --baseline ;;
	run) echo '--keep-going' ;;
	session) echo '--foreground --idle-timeout --max-clients --max-locked --max-message --max-objects' ;;
	translate) echo '--from --mr' ;;
	validate) echo '--all --output --require --skip --suite --tag --timestamps' ;;
	write) echo '--byte --file --hex --length --offset --ramp --unchecked' ;;
	esac
}

# Whether an option takes the next word as its value.
_ibmr_takes_value() {
	case $1 in
	--access | --add | --advice | --attach | --base | --baseline | --byte | --compare | --count | \
		--deadline | --device | --file | --file-offset | --flush | --format | --from | \
		--from-offset | --gid-index | --hex | --hugepages | --idle-timeout | \
		--init-byte | --init-file | --init-hex | --init-ramp | --layout | --length | \
		--map | --max-clients | --max-klms | --max-locked | --max-message | --max-objects | --mr | \
		--offset | --output | --port | --ramp | --require | --save-profile | --skip | --socket | \
		--split | --suite | --swap | --tag | --target | \
		--timeout | --to | --to-file | --to-offset) return 0 ;;
	esac
	return 1
}

# MRs of the running session.
_ibmr_mrs() {
	ibmr show --format text 2>/dev/null | sed -n 's/^    name: //p'
}

# What may follow an option that takes a value; nothing where any text may.
_ibmr_values() {
	case $1 in
	--device)
		local path
		for path in /sys/class/infiniband/*; do
			[ ! -e "$path" ] || echo "${path##*/}"
		done
		echo soft0
		;;
	--format)
		echo 'json jsonl text'
		[ "${command:-}" != report ] || echo html
		[ "${command:-}" != validate ] || echo 'tap junit prometheus nagios'
		;;
	--require) echo 'atomics huge_pages implicit odp prefetch umr' ;;
	--suite) echo 'quick full' ;;
	--target) echo 'mlx5 rxe soft0' ;;
	--access) echo 'local_write remote_write remote_read remote_atomic mw_bind on_demand relaxed_ordering hugetlb shared_user_read shared_user_write shared_group_read shared_group_write shared_other_read shared_other_write' ;;
	--advice) echo 'read write no_fault' ;;
	--flush) echo 'true false' ;;
	--from | --to) _ibmr_mrs ;;
	--idle-timeout) echo '10m 1h' ;;
	--layout) echo 'list repeat' ;;
	--map) echo 'private shared' ;;
	--split) echo auto ;;
	--timeout | --deadline) echo '1s 10s 1m' ;;
	esac
}

_ibmr_reply() {
	mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

# The words of a list with commas: those before the last comma stay.
_ibmr_list() {
	local before=''
	[[ $2 != *,* ]] || before=${2%,*},
	mapfile -t COMPREPLY < <(compgen -P "$before" -W "$1" -- "${2##*,}")
}

_ibmr_files() {
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(compgen -d -- "$1"; compgen -f -X '!*.json' -- "$1")
}

# The program that exec runs, and its arguments, from word $1 on.
_ibmr_program() {
	local start=$1
	if [ "$start" -lt "$COMP_CWORD" ] && [ "${COMP_WORDS[start]}" = -- ]; then
		start=$((start + 1))
	fi
	if declare -F _command_offset >/dev/null; then
		_command_offset "$start"
	elif [ "$start" -eq "$COMP_CWORD" ]; then
		mapfile -t COMPREPLY < <(compgen -c -- "$2")
	else
		compopt -o default 2>/dev/null
	fi
}

# The argument number $2 of a command.
_ibmr_argument() {
	case $1,$2 in
	run,0 | check,0 | fill,1 | report,*) _ibmr_files "$3" ;;
	session,0) _ibmr_reply 'start stop status run' "$3" ;;
	translate,0)
		_ibmr_files "$3"
		mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "$(_ibmr_mrs)" -- "$3")
		;;
	reg,* | create,* | copy,* | devices,* | doctor,* | session,* | validate,*) ;;
	*,0) _ibmr_reply "$(_ibmr_mrs)" "$3" ;;
	esac
}

_ibmr() {
	local cur=${COMP_WORDS[COMP_CWORD]} i word command='' value_of='' args=0
	COMPREPLY=()
	# bash splits words at "=": "--format=js" is "--format" "=" "js"
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if [ -n "$value_of" ]; then
			[ "$word" = = ] || value_of=''
		elif _ibmr_takes_value "$word"; then
			value_of=$word
		elif [[ $word != -* && -z $command ]]; then
			command=$word
			if [ "$command" = exec ] && [[ $cur != -* || $((i + 1)) -ne $COMP_CWORD ]]; then
				_ibmr_program $((i + 1)) "$cur"
				return
			fi
		elif [[ $command == session && $word == -- ]]; then
			_ibmr_program "$i" "$cur"
			return
		elif [[ $word != -* ]]; then
			args=$((args + 1))
		fi
	done
	if [ -n "$value_of" ]; then
		[ "$cur" != = ] || cur=''
		case $value_of in
		--socket | --file | --init-file | --to-file | --save-profile | --target | --output | --suite | --baseline)
			compopt -o default 2>/dev/null
			;;
		esac
		if [ "$value_of" = --access ] || [ "$value_of" = --require ]; then
			_ibmr_list "$(_ibmr_values "$value_of")" "$cur"
		else
			_ibmr_reply "$(_ibmr_values "$value_of")" "$cur"
		fi
	elif [[ $cur == -* ]]; then
		_ibmr_reply "$_ibmr_global $(_ibmr_options "$command")" "$cur"
	elif [ -z "$command" ]; then
		_ibmr_reply "$_ibmr_commands" "$cur"
	else
		_ibmr_argument "$command" "$args" "$cur"
	fi
}

complete -F _ibmr ibmr
