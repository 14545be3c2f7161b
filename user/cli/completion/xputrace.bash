# SPDX-License-Identifier: BSD-2-Clause
# Completion of xputrace for bash.
# shellcheck shell=bash

# Numbers of the processes that have a library of a runtime; of all where none is known to.
_xputrace_pids() {
	local entry found pattern
	pattern=$(xputrace list runtimes --format json 2>/dev/null | grep -o '"libraries":\[[^]]*' | cut -d '[' -f 2 |
		tr -d '"' | tr ',' '\n' | sed 's/[.+]/\\&/g; s/[*]/[^\/]*/g' | sort -u | paste -s -d '|')
	found=$([ -n "$pattern" ] && grep -lsE "/($pattern)( \\(deleted\\))?\$" /proc/[0-9]*/maps)
	for entry in ${found:-/proc/[0-9]*}; do
		entry=${entry#/proc/}
		echo "${entry%/maps}"
	done
}

_xputrace_runtimes() {
	xputrace list runtimes 2>/dev/null | awk 'NR > 1 { print $1 }'
}

# Completes the last of words with commas between: WORDS CURRENT.
_xputrace_last() {
	local before=""
	[[ $2 == *,* ]] && before=${2%,*},
	mapfile -t COMPREPLY < <(compgen -P "$before" -W "$1" -- "${2##*,}")
}

# Names of the collectors that run, for those who may know.
_xputrace_instances() {
	local entry
	for entry in /run/xputrace/*.sock; do
		[ -S "$entry" ] && basename "$entry" .sock
	done
}

_xputrace() {
	local current=$2 previous=$3 command=${COMP_WORDS[1]} i
	local commands="record profile stream top agent continuous inspect codeobj counters report explain diff merge list check"
	# What saves a window, in agent and continuous start.
	local saving="-o -w --output-dir --window --window-time --save-on --after --cooldown --max-files --max-bytes --on-save --on-save-limit --level"
	# What record, profile, stream, inspect and continuous start have in common; and the first three.
	local watched="-p -a -o -r -n -b -q -v -h --pid --process --all-processes --runtime --only --region --drivers --driver --name --buffer --link --no-wait --wait-limit --why --budget --quiet --verbose --help --"
	local written="-d --output --duration --summary-json"
	COMPREPLY=()

	if [ "$COMP_CWORD" -eq 1 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$commands -h -V --help --version" -- "$current")
		return
	fi
	# After "--" a command of its own begins.
	for ((i = 2; i < COMP_CWORD; i++)); do
		if [[ $command =~ ^(record|profile|stream|top|agent|continuous|inspect|codeobj|counters)$ ]] && [ "${COMP_WORDS[i]}" = -- ]; then
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
		_xputrace_last "$(_xputrace_pids)" "$current"
		return
		;;
	--only)
		_xputrace_last "$(_xputrace_runtimes)" "$current"
		return
		;;
	--exit-status)
		mapfile -t COMPREPLY < <(compgen -W "command own" -- "$current")
		return
		;;
	-o | --output | --output-dir | --save-dir | --textfile | -f | --file | -r | --runtime | --driver)
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
		return
		;;
	--drivers)
		mapfile -t COMPREPLY < <(compgen -W "auto none" -- "$current")
		return
		;;
	--budget)
		mapfile -t COMPREPLY < <(compgen -W "1 2 5 none" -- "$current")
		return
		;;
	--link)
		mapfile -t COMPREPLY < <(compgen -W "auto session multi perf" -- "$current")
		return
		;;
	--format)
		local formats="table json"
		[ "$command" = record ] && formats="chrome perfetto xpt html none ort qnn-csv"
		[ "$command" = inspect ] && formats="chrome perfetto"
		[ "$command" = report ] && formats="chrome perfetto html sqlite csv ort qnn-csv"
		mapfile -t COMPREPLY < <(compgen -W "$formats" -- "$current")
		return
		;;
	--level)
		mapfile -t COMPREPLY < <(compgen -W "basic detailed $([ "$command" != report ] && echo standard)" -- "$current")
		return
		;;
	--process)
		mapfile -t COMPREPLY < <(compgen -W "$(cat /proc/[0-9]*/comm 2>/dev/null)" -- "$current")
		return
		;;
	--save-on)
		mapfile -t COMPREPLY < <(compgen -W "error" -- "$current")
		return
		;;
	--instance)
		mapfile -t COMPREPLY < <(compgen -W "$(_xputrace_instances)" -- "$current")
		return
		;;
	--types)
		mapfile -t COMPREPLY < <(compgen -W "software hardware program.load program.name program.unload execute enqueue wait launch copy alloc free select codeobj.load codeobj.unload operator region task ioctl job error reset memory counter" -- "$current")
		return
		;;
	--activities)
		mapfile -t COMPREPLY < <(compgen -W "system_profile device_profile host_memory cpu_util all" -- "$current")
		return
		;;
	--type)
		mapfile -t COMPREPLY < <(compgen -W "latency trace perfetto" -- "$current")
		return
		;;
	--layout)
		mapfile -t COMPREPLY < <(compgen -W "flat qaic" -- "$current")
		return
		;;
	--mode)
		mapfile -t COMPREPLY < <(compgen -W "symbols memory all" -- "$current")
		return
		;;
	--report-every)
		mapfile -t COMPREPLY < <(compgen -W "500ms 1s 2s 4s" -- "$current")
		return
		;;
	--sample-every)
		mapfile -t COMPREPLY < <(compgen -W "1 2 4 8 16" -- "$current")
		return
		;;
	-e | --event)
		mapfile -t COMPREPLY < <(compgen -W "$(xputrace list counters 2>/dev/null | awk 'NR > 1 { print $1 }')" -- "$current")
		return
		;;
	-w | --window | --window-time | --after | --cooldown | --on-save-limit | --max-files | --max-bytes | -c | --core | --last | -t | --time | --timeout | --gpu | --cpu | --every | --counters | --counters-every | -d | --duration | -n | --name | -s | --sample | -b | --buffer | --region | -P | --program | --samples | --skip | --delay | -m | --match | --rotate | --keep | --offset | --cores | --max-events | --session-id | --wait-limit | --code-wait-limit | --object-limit | --process-limit | --total-limit | -l | --listen | --otlp-traces | --interval | --max-series | --stale-after)
		return
		;;
	esac
	case $command in
	record)
		mapfile -t COMPREPLY < <(compgen -W "$watched $written -P --program -m --match -s --sample --warn-size --format --flame --ops --level --codeobj --code-wait-limit --stacks --samples --counters --counters-every --counters-per-inference --exit-status" -- "$current")
		;;
	profile)
		mapfile -t COMPREPLY < <(compgen -W "$watched $written -P --program --samples --counters --type --layout --summary --skip --delay" -- "$current")
		;;
	stream)
		mapfile -t COMPREPLY < <(compgen -W "$watched $written -m -P -s --match --program --report-every --sample-every --counters --type --layout --summary --append --rotate --keep" -- "$current")
		;;
	top)
		mapfile -t COMPREPLY < <(compgen -W "-p -a -m -d -n -r -b -v -h --pid --process --all-processes --match --interval --batch --tables --save-dir --ops --stacks --samples --why --runtime --only --region --drivers --driver --buffer --link --no-wait --wait-limit --budget --verbose --help --" -- "$current")
		;;
	agent)
		mapfile -t COMPREPLY < <(compgen -W "-p -a -m -l -d -r -b -v -h --pid --process --all-processes --match --listen --textfile --otlp --otlp-traces --otlp-queue --interval --max-series --stale-after --kernels $saving --duration --runtime --only --region --drivers --driver --buffer --link --no-wait --wait-limit --budget --verbose --help --" -- "$current")
		;;
	continuous)
		local answered="-h --instance --timeout --help"
		if [ "$COMP_CWORD" -eq 2 ]; then
			mapfile -t COMPREPLY < <(compgen -W "start save status stop -h --help" -- "$current")
			return
		fi
		case ${COMP_WORDS[2]} in
		start) mapfile -t COMPREPLY < <(compgen -W "$watched $saving -s --instance --background --sample --counters --counters-every --counters-per-inference" -- "$current") ;;
		save) mapfile -t COMPREPLY < <(compgen -W "$answered -p -P -c -n -t -o -q --pid --program --core --last --time --output --format --quiet" -- "$current") ;;
		status) mapfile -t COMPREPLY < <(compgen -W "$answered --format" -- "$current") ;;
		stop) mapfile -t COMPREPLY < <(compgen -W "$answered" -- "$current") ;;
		esac
		;;
	inspect)
		mapfile -t COMPREPLY < <(compgen -W "$watched -d --output-dir --duration --summary-json --on-fail --cores --types --max-events --activities --format --session-id --honour-target-env --counters" -- "$current")
		;;
	codeobj)
		if [ "${COMP_WORDS[2]}" = show ] && [ "$COMP_CWORD" -gt 2 ]; then
			mapfile -t COMPREPLY < <(compgen -f -- "$current")
			[[ $current == -* ]] && mapfile -t COMPREPLY < <(compgen -W "-h --functions --libraries --json --help" -- "$current")
			return
		fi
		mapfile -t COMPREPLY < <(compgen -W "$([ "$COMP_CWORD" -eq 2 ] && echo show) -p -a -o -d -r -q -v -h --pid --process --all-processes --output-dir --mode --duration --snapshot --no-wait --wait-limit --code-wait-limit --object-limit --process-limit --total-limit --functions --libraries --json --runtime --only --link --quiet --verbose --help --" -- "$current")
		;;
	counters)
		mapfile -t COMPREPLY < <(compgen -W "-e -p -d -o -q -h --event --gpu --cpu --pid --every --duration --output --no-multiplex --quiet --help --" -- "$current")
		;;
	report)
		mapfile -t COMPREPLY < <(compgen -f -X '!*.xpt' -- "$current")
		[[ $current == -* ]] && mapfile -t COMPREPLY < <(compgen -W "-o -P -m -p -q -h --output --html --format --level --program --match --pid --from --to --slowest --request --flame --flame-diff --operator --warn-size --summary-json --quiet --help" -- "$current")
		;;
	explain)
		mapfile -t COMPREPLY < <(compgen -f -X '!*.xpt' -- "$current")
		[[ $current == -* ]] && mapfile -t COMPREPLY < <(compgen -W "-P -m -p -n -q -h --program --match --pid --from --to --programs --json --quiet --help" -- "$current")
		;;
	diff)
		mapfile -t COMPREPLY < <(compgen -d -- "$current"; compgen -f -X '!*.xpt' -- "$current")
		[[ $current == -* ]] && mapfile -t COMPREPLY < <(compgen -W "-P -m -q -h --before --after --program --match --all --fail-if --level --run-noise --json --html --quiet --help" -- "$current")
		;;
	merge)
		mapfile -t COMPREPLY < <(compgen -f -X '!*.json' -- "$current")
		[[ $current == -* ]] && mapfile -t COMPREPLY < <(compgen -W "-o -q -h --output --offset --quiet --help" -- "$current")
		;;
	list)
		mapfile -t COMPREPLY < <(compgen -W "runtimes programs sites operators drivers devices counters -p -f -r -d -v -h --gpu --pid --file --format --runtime --driver --only --duration --summary-json --verbose --help" -- "$current")
		;;
	check)
		mapfile -t COMPREPLY < <(compgen -W "--summary-json -h --help" -- "$current")
		;;
	esac
}

complete -o filenames -F _xputrace xputrace
