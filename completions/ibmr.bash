# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# bash completion for ibmr(1). test/examples/completion.bats holds it to what `ibmr --help` says.

_ibmr_commands='check devices exec run'
_ibmr_global='--deadline --device --format --gid-index --help --port --socket --timeout --version'

# Options of one command beside the global ones.
_ibmr_options() {
	case $1 in
	check) echo '--mr --target' ;;
	exec) echo '--' ;;
	run) echo '--keep-going' ;;
	esac
}

# Whether an option takes the next word as its value.
_ibmr_takes_value() {
	case $1 in
	--deadline | --device | --format | --gid-index | --mr | --port | --socket | --target | --timeout) return 0 ;;
	esac
	return 1
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
	--format) echo 'json jsonl text' ;;
	--target) echo 'mlx5 rxe soft0' ;;
	--timeout | --deadline) echo '1s 10s 1m' ;;
	esac
}

_ibmr_reply() {
	mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
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

_ibmr() {
	local cur=${COMP_WORDS[COMP_CWORD]} i word command='' value_of=''
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
		fi
	done
	if [ -n "$value_of" ]; then
		[ "$cur" != = ] || cur=''
		[ "$value_of" != --socket ] || compopt -o default 2>/dev/null
		_ibmr_reply "$(_ibmr_values "$value_of")" "$cur"
	elif [[ $cur == -* ]]; then
		_ibmr_reply "$_ibmr_global $(_ibmr_options "$command")" "$cur"
	elif [ -z "$command" ]; then
		_ibmr_reply "$_ibmr_commands" "$cur"
	elif [[ $command == run || $command == check ]]; then
		_ibmr_files "$cur"
	fi
}

complete -F _ibmr ibmr
