# SPDX-License-Identifier: BSD-2-Clause
# fish completion for ibmr(1).

set -l commands check compare-swap copy create dereg devices doctor exec fetch-add fill invalidate prefetch read reg report run session show translate validate verify write
set -l none "not __fish_seen_subcommand_from $commands"

function __ibmr_devices
    for path in /sys/class/infiniband/*
        basename $path
    end
    echo soft0
end

# MRs of the running session.
function __ibmr_mrs
    ibmr show --format text 2>/dev/null | string replace -rf '^    name: ' ''
end

# Access words behind the last comma.
function __ibmr_access
    set -l given (string match -r '.*,' -- (commandline -ct))
    for word in local_write remote_write remote_read remote_atomic mw_bind on_demand relaxed_ordering hugetlb shared_user_read shared_user_write shared_group_read shared_group_write shared_other_read shared_other_write
        echo $given$word
    end
end

complete -c ibmr -f
complete -c ibmr -n $none -a check -d 'parse and check, touching no device'
complete -c ibmr -n $none -a compare-swap -d 'atomic compare and swap'
complete -c ibmr -n $none -a copy -d 'copy bytes from MR to MR'
complete -c ibmr -n $none -a create -d 'make an empty indirect MR'
complete -c ibmr -n $none -a dereg -d 'deregister an MR'
complete -c ibmr -n $none -a devices -d 'devices, and what each reports it can do'
complete -c ibmr -n $none -a doctor -d 'this machine\'s ability to do the job'
complete -c ibmr -n $none -a exec -d 'run any verbs program on soft0'
complete -c ibmr -n $none -a fetch-add -d 'atomic fetch and add'
complete -c ibmr -n $none -a fill -d 'give an indirect MR its KLMs'
complete -c ibmr -n $none -a invalidate -d 'take an indirect MR\'s KLMs away'
complete -c ibmr -n $none -a prefetch -d 'fault the pages of an on-demand MR in'
complete -c ibmr -n $none -a read -d 'read bytes through an MR'
complete -c ibmr -n $none -a reg -d 'register memory'
complete -c ibmr -n $none -a report -d 'what the answers of many nodes say'
complete -c ibmr -n $none -a run -d 'run a plan\'s steps in one process'
complete -c ibmr -n $none -a session -d 'hold a device and its MRs between commands'
complete -c ibmr -n $none -a show -d 'the MRs of the session'
complete -c ibmr -n $none -a translate -d 'which bytes of which buffers'
complete -c ibmr -n $none -a validate -d 'prove that this node\'s devices work'
complete -c ibmr -n $none -a verify -d 'prove a filled MR byte by byte'
complete -c ibmr -n $none -a write -d 'write bytes through an MR'

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
complete -c ibmr -n '__fish_seen_subcommand_from check' -l target -r -F -a 'mlx5 rxe soft0' -d 'what to check against'
complete -c ibmr -n '__fish_seen_subcommand_from devices' -l save-profile -r -F -d 'save the limits of the one device'
complete -c ibmr -n '__fish_seen_subcommand_from compare-swap' -l compare -x -d 'what must be there, 64 bits'
complete -c ibmr -n '__fish_seen_subcommand_from compare-swap' -l offset -x -d 'from the first byte of the MR'
complete -c ibmr -n '__fish_seen_subcommand_from compare-swap' -l swap -x -d 'what takes its place, 64 bits'
complete -c ibmr -n '__fish_seen_subcommand_from copy' -l from -x -a '(__ibmr_mrs)' -d 'MR to copy from'
complete -c ibmr -n '__fish_seen_subcommand_from copy' -l from-offset -x -d 'where in it'
complete -c ibmr -n '__fish_seen_subcommand_from copy' -l length -x -d 'bytes'
complete -c ibmr -n '__fish_seen_subcommand_from copy' -l to -x -a '(__ibmr_mrs)' -d 'MR to copy to'
complete -c ibmr -n '__fish_seen_subcommand_from copy' -l to-offset -x -d 'where in it'
complete -c ibmr -n '__fish_seen_subcommand_from create' -l max-klms -x -d 'most entries of a fill'
complete -c ibmr -n '__fish_seen_subcommand_from create' -l split -x -a 'auto' -d 'auto: more entries than one key holds become a tree'
complete -c ibmr -n '__fish_seen_subcommand_from fetch-add' -l add -x -d 'what to add, 64 bits'
complete -c ibmr -n '__fish_seen_subcommand_from fetch-add' -l offset -x -d 'from the first byte of the MR'
complete -c ibmr -n '__fish_seen_subcommand_from fill' -l access -x -a '(__ibmr_access)' -d 'rights, comma separated; see ibmr-spec(5)'
complete -c ibmr -n '__fish_seen_subcommand_from fill' -l base -x -d 'address of the first byte'
complete -c ibmr -n '__fish_seen_subcommand_from fill' -l count -x -d 'cycles of a repeat'
complete -c ibmr -n '__fish_seen_subcommand_from fill' -l layout -x -a 'list repeat' -d 'list or repeat'
complete -c ibmr -n '__fish_seen_subcommand_from fill' -l split -x -a 'auto' -d 'auto: more entries than one key holds become a tree'
complete -c ibmr -n '__fish_seen_subcommand_from prefetch' -l advice -x -a 'read write no_fault' -d 'what the pages are wanted for'
complete -c ibmr -n '__fish_seen_subcommand_from prefetch' -l expect-resident -d 'pages that are not resident afterwards are a mismatch'
complete -c ibmr -n '__fish_seen_subcommand_from prefetch' -l flush -x -a 'true false' -d 'wait until it is done'
complete -c ibmr -n '__fish_seen_subcommand_from prefetch' -l length -x -d 'bytes'
complete -c ibmr -n '__fish_seen_subcommand_from prefetch' -l offset -x -d 'from the first byte of the MR'
complete -c ibmr -n '__fish_seen_subcommand_from read' -l length -x -d 'bytes'
complete -c ibmr -n '__fish_seen_subcommand_from read' -l offset -x -d 'from the first byte of the MR'
complete -c ibmr -n '__fish_seen_subcommand_from read' -l to-file -r -F -d 'write the bytes there; -: to standard output'
complete -c ibmr -n '__fish_seen_subcommand_from read' -l unchecked -d 'leave it to the device to refuse'
complete -c ibmr -n '__fish_seen_subcommand_from reg' -l access -x -a '(__ibmr_access)' -d 'rights, comma separated; see ibmr-spec(5)'
complete -c ibmr -n '__fish_seen_subcommand_from reg' -l attach -x -d 'the shared name of an MR, of any process'
complete -c ibmr -n '__fish_seen_subcommand_from reg' -l create -d 'make the file, or lengthen it; needs map shared'
complete -c ibmr -n '__fish_seen_subcommand_from reg' -l file -r -F -d 'a file\'s bytes; - is standard input for write'
complete -c ibmr -n '__fish_seen_subcommand_from reg' -l file-offset -x -d 'where in the file the MR begins'
complete -c ibmr -n '__fish_seen_subcommand_from reg' -l hugepages -x -d 'in huge pages of this size, e.g. 2MiB'
complete -c ibmr -n '__fish_seen_subcommand_from reg' -l init-byte -x -d 'memory begins as bytes that all are N'
complete -c ibmr -n '__fish_seen_subcommand_from reg' -l init-file -r -F -d 'memory begins with this file\'s bytes'
complete -c ibmr -n '__fish_seen_subcommand_from reg' -l init-hex -x -d 'memory begins with these bytes, in hex'
complete -c ibmr -n '__fish_seen_subcommand_from reg' -l init-ramp -x -d 'memory begins as bytes N, N+1, ..., modulo 256'
complete -c ibmr -n '__fish_seen_subcommand_from reg' -l length -x -d 'bytes'
complete -c ibmr -n '__fish_seen_subcommand_from reg' -l map -x -a 'private shared' -d 'whether writes reach the file'
complete -c ibmr -n '__fish_seen_subcommand_from report' -l baseline -r -F -d 'an earlier report'
complete -c ibmr -n '__fish_seen_subcommand_from report' -l format -x -a html -d 'form of the answer'
complete -c ibmr -n '__fish_seen_subcommand_from run' -l keep-going -d 'go on after an unexpected step'
complete -c ibmr -n '__fish_seen_subcommand_from session' -l foreground -d 'stay in the foreground'
complete -c ibmr -n '__fish_seen_subcommand_from session' -l idle-timeout -x -a '10m 1h' -d 'end when nothing was asked for so long'
complete -c ibmr -n '__fish_seen_subcommand_from session' -l max-clients -x -d 'most clients at a time'
complete -c ibmr -n '__fish_seen_subcommand_from session' -l max-locked -x -d 'most bytes that MRs lock'
complete -c ibmr -n '__fish_seen_subcommand_from session' -l max-message -x -d 'most bytes of a request'
complete -c ibmr -n '__fish_seen_subcommand_from session' -l max-objects -x -d 'most MRs'
complete -c ibmr -n '__fish_seen_subcommand_from translate' -l from -x -d 'where that byte of a member shows: MR:OFFSET'
complete -c ibmr -n '__fish_seen_subcommand_from translate' -l mr -x -d 'an MR that the spec names: NAME=SIZE'
complete -c ibmr -n '__fish_seen_subcommand_from validate' -l all -d 'every device of this machine'
complete -c ibmr -n '__fish_seen_subcommand_from validate' -l format -x -a 'tap junit prometheus nagios' -d 'form of the answer'
complete -c ibmr -n '__fish_seen_subcommand_from validate' -l output -r -F -d 'write the answer there, whole or not at all'
complete -c ibmr -n '__fish_seen_subcommand_from validate' -l require -x -a 'atomics huge_pages implicit odp prefetch umr' -d 'what has to be there and proved'
complete -c ibmr -n '__fish_seen_subcommand_from validate' -l skip -x -d 'checks to leave out'
complete -c ibmr -n '__fish_seen_subcommand_from validate' -l suite -r -F -a 'quick full' -d 'what is checked'
complete -c ibmr -n '__fish_seen_subcommand_from validate' -l tag -x -d 'a word of yours: NAME=VALUE'
complete -c ibmr -n '__fish_seen_subcommand_from validate' -l timestamps -d 'say when the answer was made'
complete -c ibmr -n '__fish_seen_subcommand_from write' -l byte -x -d 'every byte is N'
complete -c ibmr -n '__fish_seen_subcommand_from write' -l file -r -F -d 'a file\'s bytes; - is standard input for write'
complete -c ibmr -n '__fish_seen_subcommand_from write' -l hex -x -d 'bytes to write, in hex'
complete -c ibmr -n '__fish_seen_subcommand_from write' -l length -x -d 'bytes'
complete -c ibmr -n '__fish_seen_subcommand_from write' -l offset -x -d 'from the first byte of the MR'
complete -c ibmr -n '__fish_seen_subcommand_from write' -l ramp -x -d 'bytes N, N+1, ..., modulo 256'
complete -c ibmr -n '__fish_seen_subcommand_from write' -l unchecked -d 'leave it to the device to refuse'
complete -c ibmr -n '__fish_seen_subcommand_from run report check fill translate' -k -a '(__fish_complete_suffix .json)'
complete -c ibmr -n '__fish_seen_subcommand_from compare-swap dereg fetch-add fill invalidate prefetch read show translate verify write' -a '(__ibmr_mrs)'
complete -c ibmr -n '__fish_seen_subcommand_from session; and not __fish_seen_subcommand_from start stop status run' -a 'start stop status run'
complete -c ibmr -n '__fish_seen_subcommand_from exec' -a '(__fish_complete_subcommand --fcs-skip=2)'
