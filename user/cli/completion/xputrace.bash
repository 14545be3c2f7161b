# SPDX-License-Identifier: BSD-2-Clause
# Completion of xputrace for bash.
# shellcheck shell=bash

# Numbers of the processes that can be looked at.
_xputrace_pids() {
	local entry
	for entry in /proc/[0-9]*; do
		echo "${entry#/proc/}"
	done
}

_xputrace() {
	local current=$2 previous=$3 command=${COMP_WORDS[1]} commands="record report list check" i
	COMPREPLY=()

	if [ "$COMP_CWORD" -eq 1 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$commands -h -V --help --version" -- "$current")
		return
	fi
	# After "--" a command of its own begins.
	for ((i = 2; i < COMP_CWORD; i++)); do
		if [ "$command" = record ] && [ "${COMP_WORDS[i]}" = -- ]; then
			if declare -F _command_offset >/dev/null; then
				_command_offset $((i + 1))
			else
				mapfile -t COMPREPLY < <(compgen -c -- "$current")
			fi
			return
		fi
	done
	case $previous in
	-p | --pid)
		mapfile -t COMPREPLY < <(compgen -W "$(_xputrace_pids)" -- "$current")
		return
		;;
	-o | --output | -f | --file | -r | --runtime)
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
		return
		;;
	--link)
		mapfile -t COMPREPLY < <(compgen -W "auto session multi perf" -- "$current")
		return
		;;
	--format)
		mapfile -t COMPREPLY < <(compgen -W "$([ "$command" = record ] && echo chrome xpt none || echo table json)" -- "$current")
		return
		;;
	-d | --duration | -n | --name | -s | --sample | -b | --buffer | --only)
		return
		;;
	esac
	case $command in
	record)
		mapfile -t COMPREPLY < <(compgen -W "-p -a -o -d -s -r -n -b -q -v -h --pid --all-processes --output --format --duration --sample --runtime --only --name --buffer --link --quiet --verbose --help --" -- "$current")
		;;
	report)
		mapfile -t COMPREPLY < <(compgen -f -X '!*.xpt' -- "$current")
		[[ $current == -* ]] && mapfile -t COMPREPLY < <(compgen -W "-o -q -h --output --quiet --help" -- "$current")
		;;
	list)
		mapfile -t COMPREPLY < <(compgen -W "runtimes programs sites -p -f -r -d -v -h --pid --file --format --runtime --only --duration --verbose --help" -- "$current")
		;;
	check)
		mapfile -t COMPREPLY < <(compgen -W "-h --help" -- "$current")
		;;
	esac
}

complete -o filenames -F _xputrace xputrace
