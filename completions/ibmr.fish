# SPDX-License-Identifier: BSD-2-Clause
# fish completion for ibmr(1).

set -l commands check devices exec run
set -l none "not __fish_seen_subcommand_from $commands"

function __ibmr_devices
    for path in /sys/class/infiniband/*
        basename $path
    end
    echo soft0
end

complete -c ibmr -f
complete -c ibmr -n $none -a check -d 'parse and check, touching no device'
complete -c ibmr -n $none -a devices -d 'devices, and what each reports it can do'
complete -c ibmr -n $none -a exec -d 'run any verbs program on soft0'
complete -c ibmr -n $none -a run -d 'run a plan\'s steps in one process'

set -l ours 'not __fish_seen_subcommand_from exec'
complete -c ibmr -n $ours -l deadline -x -a '1s 10s 1m' -d 'bound of the whole command'
complete -c ibmr -n $ours -l device -x -a '(__ibmr_devices)' -d 'device to use'
complete -c ibmr -n $ours -l format -x -a 'json jsonl text' -d 'form of the answer'
complete -c ibmr -n $ours -l gid-index -x -d 'GID of the port'
complete -c ibmr -n $ours -l help -d 'say how it is used'
complete -c ibmr -n $ours -l port -x -d 'port of the device'
complete -c ibmr -n $ours -l socket -r -d 'socket of a session'
complete -c ibmr -n $ours -l timeout -x -a '1s 10s 1m' -d 'bound of each step'
complete -c ibmr -n $ours -l version -d 'print the version'

complete -c ibmr -n '__fish_seen_subcommand_from check' -l mr -x -d 'an MR of a lone spec: NAME=SIZE'
complete -c ibmr -n '__fish_seen_subcommand_from check' -l target -x -a 'mlx5 rxe soft0' -d 'what to check against'
complete -c ibmr -n '__fish_seen_subcommand_from run' -l keep-going -d 'go on after an unexpected step'
complete -c ibmr -n '__fish_seen_subcommand_from run check' -k -a '(__fish_complete_suffix .json)'
complete -c ibmr -n '__fish_seen_subcommand_from exec' -a '(__fish_complete_subcommand --fcs-skip=2)'
