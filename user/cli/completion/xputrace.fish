# SPDX-License-Identifier: BSD-2-Clause
# Completion of xputrace for fish.

set -l commands record report list check

complete -c xputrace -f
complete -c xputrace -n "not __fish_seen_subcommand_from $commands" -a record -d 'Write a trace of processes or a command'
complete -c xputrace -n "not __fish_seen_subcommand_from $commands" -a report -d 'Trace and summary from a recording'
complete -c xputrace -n "not __fish_seen_subcommand_from $commands" -a list -d 'Runtimes, programs and probe sites'
complete -c xputrace -n "not __fish_seen_subcommand_from $commands" -a check -d 'What kernel and permissions allow'
complete -c xputrace -n "not __fish_seen_subcommand_from $commands" -s V -l version -d 'Print the version'
complete -c xputrace -s h -l help -d 'Print how to use it'

complete -c xputrace -n '__fish_seen_subcommand_from record list' -s p -l pid -x -a '(__fish_complete_pids)' -d 'Process'
complete -c xputrace -n '__fish_seen_subcommand_from record list' -s r -l runtime -r -F -d 'Add a description'
complete -c xputrace -n '__fish_seen_subcommand_from record list' -l only -x -d 'These runtimes only'
complete -c xputrace -n '__fish_seen_subcommand_from record list' -s v -l verbose -d 'Say more'
complete -c xputrace -n '__fish_seen_subcommand_from record report' -s o -l output -r -F -d 'File to write'
complete -c xputrace -n '__fish_seen_subcommand_from record report' -s q -l quiet -d 'No summary'
complete -c xputrace -n '__fish_seen_subcommand_from record' -s a -l all-processes -d 'Every process with a described runtime'
complete -c xputrace -n '__fish_seen_subcommand_from record' -l format -x -a 'chrome xpt none' -d 'What to write'
complete -c xputrace -n '__fish_seen_subcommand_from record' -s d -l duration -x -d 'Stop after this time'
complete -c xputrace -n '__fish_seen_subcommand_from record' -s s -l sample -x -d 'Record one inference in so many'
complete -c xputrace -n '__fish_seen_subcommand_from record' -s n -l name -x -d 'HANDLE=NAME of a program'
complete -c xputrace -n '__fish_seen_subcommand_from record' -s b -l buffer -x -d 'Memory for records on their way'
complete -c xputrace -n '__fish_seen_subcommand_from record' -l link -x -a 'auto session multi perf' -d 'Kind of probe links'
complete -c xputrace -n '__fish_seen_subcommand_from report' -F -d 'Recording'
complete -c xputrace -n '__fish_seen_subcommand_from list' -a 'runtimes programs sites'
complete -c xputrace -n '__fish_seen_subcommand_from list' -s f -l file -r -F -d 'Look at this ELF file'
complete -c xputrace -n '__fish_seen_subcommand_from list' -l format -x -a 'table json' -d 'How to print'
complete -c xputrace -n '__fish_seen_subcommand_from list' -s d -l duration -x -d 'How long to watch'
