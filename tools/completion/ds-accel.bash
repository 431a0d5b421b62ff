# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
# shellcheck shell=bash
#
# Completion of ds-accel for bash 4 or newer; needs no other package.

_ds_accel_commands='detect list info explain env topo report config lint conformance doctor memory ops bench cache quarantine note run help'

# Backends that the configuration names, queried once per shell and program.
_ds_accel_known=
_ds_accel_known_by=

# _ds_accel_ask PROGRAM: fill _ds_accel_known. Reads only the configuration; no plugin code runs.
_ds_accel_ask() {
    [[ $_ds_accel_known_by == "$1" ]] && return
    _ds_accel_known_by=$1
    _ds_accel_known=$("${1/#\~\//$HOME/}" config show --json 2>/dev/null | sed -n \
        -e '/"key": "detection_order"/,/\]/s/^ *"\([a-z][a-z0-9_.]*\)",\{0,1\}$/\1/p' \
        -e 's/^ *"key": "backends\.\([a-z][a-z0-9_]*\)\..*/\1/p' \
        -e 's/^ *"key": "backends\.\\"\([a-z][a-z0-9_.]*\)\\".*/\1/p' | sort -u)
}

# _ds_accel_plugins DIRECTORY...: print the names of the plugin files in these directories.
_ds_accel_plugins() {
    local directory file name

    for directory in "$@"; do
        for file in "${directory/#\~\//$HOME/}"/ds_accel_*.so; do
            name=${file##*/ds_accel_}
            name=${name%.so}
            [[ $name =~ ^[a-z][a-z0-9_.]*$ ]] && printf '%s\n' "$name"
        done
    done
}

# _ds_accel_names PREFIX PROGRAM DIRECTORY...: offer names of backends, and of plugins in the
# directories.
_ds_accel_names() {
    local prefix=$1 program=$2
    local directories names

    shift 2
    IFS=: read -r -a directories <<<"${DS_ACCEL_PLUGIN_PATH-}"
    _ds_accel_ask "$program"
    names=$_ds_accel_known$'\n'$(_ds_accel_plugins "$@" "${directories[@]}" /usr/lib/ds-accel)
    _ds_accel_offer "$prefix" "$(sort -u <<<"$names")"
}

# _ds_accel_offer PREFIX WORDS: offer the words that begin with PREFIX.
_ds_accel_offer() {
    local word

    for word in $2; do
        [[ $word == "$1"* ]] && COMPREPLY+=("$word")
    done
}

# _ds_accel_files PREFIX [SUFFIX]: offer directories. With a suffix, also offer files that end with
# it, or all files if nothing else matches.
_ds_accel_files() {
    local prefix=$1 suffix=${2-}
    local path

    case $prefix in
    [\"\']*) prefix=${prefix:1} ;;
    *) prefix=${prefix//\\/} ;;
    esac
    while IFS= read -r path; do
        COMPREPLY+=("$path")
    done < <(compgen -d -- "$prefix")
    [[ -z $suffix ]] || while IFS= read -r path; do
        [[ -d ${path/#\~\//$HOME/} ]] || COMPREPLY+=("$path")
    done < <(compgen -f -X "!*$suffix" -- "$prefix")
    [[ -z $suffix || ${#COMPREPLY[@]} -gt 0 ]] || while IFS= read -r path; do
        COMPREPLY+=("$path")
    done < <(compgen -f -- "$prefix")
    compopt -o filenames 2>/dev/null # also quotes names that need it
}

# _ds_accel_checks PREFIX PROGRAM COLUMN: offer rules or groups of the conformance suite. Runs no
# plugin.
_ds_accel_checks() {
    _ds_accel_offer "$1" "$("${2/#\~\//$HOME/}" conformance --list 2>/dev/null |
        awk -v column="$3" '{ print $column }' | sort -u)"
}

# _ds_accel_groups PREFIX: offer groups for bench --only; after a comma, a further group.
_ds_accel_groups() {
    local done='' word

    [[ $1 != *,* ]] || done=${1%,*},
    for word in copy fill peer alloc event stream launch graph dispatch; do
        [[ $done$word == "$1"* ]] && COMPREPLY+=("$done$word")
    done
}

# _ds_accel_argument COMMAND POSITION BEFORE CURRENT PROGRAM DIRECTORY...: offer words for the
# argument at POSITION of a command, counted from 1; BEFORE is the argument before it. Fails if the
# command accepts no argument there.
_ds_accel_argument() {
    local command=$1 position=$2 before=$3 current=$4

    shift 4
    case $command:$position:$before in
    config:1:*) _ds_accel_offer "$current" "check show" ;;
    cache:1:*) _ds_accel_offer "$current" "show clear" ;;
    quarantine:1:*) _ds_accel_offer "$current" "list clear" ;;
    quarantine:2:clear) _ds_accel_names "$current" "$@" ;;
    help:1:*) _ds_accel_offer "$current" "$_ds_accel_commands" ;;
    info:1:* | explain:1:* | env:1:* | topo:*) _ds_accel_names "$current" "$@" ;;
    bench:1:*)
        _ds_accel_offer "$current" io
        _ds_accel_names "$current" "$@"
        ;;
    bench:2:io) _ds_accel_files "$current" ;;
    memory:1:*) _ds_accel_offer "$current" "show replay" ;;
    ops:1:*) _ds_accel_offer "$current" "list show build clean export import" ;;
    ops:2:export | ops:2:import) _ds_accel_files "$current" ;;
    ops:2:list | ops:3:*) _ds_accel_names "$current" "$@" ;;
    memory:2:*) _ds_accel_files "$current" .json ;;
    note:1:*) _ds_accel_names "$current" "$@" ;;
    lint:1:*) _ds_accel_files "$current" .so ;;
    conformance:1:*)
        _ds_accel_names "$current" "$@"
        _ds_accel_files "$current" .so
        ;;
    *) return 1 ;;
    esac
    return 0
}

# _ds_accel_commands_in_path PREFIX: offer commands of PATH. Without a prefix these are too many.
_ds_accel_commands_in_path() {
    local directory file
    local -a directories

    [[ -n $1 && $1 != */* ]] || return 0
    IFS=: read -r -a directories <<<"$PATH"
    for directory in "${directories[@]}"; do
        for file in "$directory/$1"*; do
            [[ -f $file && -x $file && " ${COMPREPLY[*]} " != *" ${file##*/} "* ]] && COMPREPLY+=("${file##*/}")
        done
    done
    return 0
}

# The options of run that have a value, and the others.
_ds_accel_run_values='--hostfile --include --exclude --num_nodes --num_gpus --num_accelerators
    --min_elastic_nodes --max_elastic_nodes --master_port --master_addr --node_rank --launcher
    --launcher_args --enable_each_rank_log --bind_core_list --ssh_port --venv_script --log_level
    --accelerator --bind-to --config --machine --plugin-dir --reserve-cores --result --root
    --stall-timeout -H -a -e -i'
_ds_accel_run_flags='--module --no_python --no_local_rank --no_ssh --no_ssh_check --force_multi
    --save_pid --elastic_training --bind_cores_to_rank --quiet --help --dry-run --json --pty
    --show-ranks --smt --stall-kill --verbose --version -h -q -v'

# _ds_accel_run_value OPTION CURRENT PROGRAM DIRECTORY...: offer values of an option of run.
_ds_accel_run_value() {
    local option=$1 current=$2

    shift 2
    case $option in
    -a | --accelerator) _ds_accel_names "$current" "$@" ;;
    -H | --hostfile | --venv_script) _ds_accel_files "$current" '*' ;;
    --config | --machine | --result) _ds_accel_files "$current" .json ;;
    --enable_each_rank_log | --plugin-dir | --root) _ds_accel_files "$current" ;;
    --bind-to) _ds_accel_offer "$current" "node socket l3 core exclusive none" ;;
    --launcher) _ds_accel_offer "$current" "pdsh openmpi mvapich slurm mpich impi" ;;
    --log_level) _ds_accel_offer "$current" "debug info warning error critical" ;;
    --master_port) _ds_accel_offer "$current" auto ;;
    esac
}

# _ds_accel_run FIRST PROGRAM DIRECTORY...: offer words for the end of a run command, whose options
# begin at COMP_WORDS[FIRST]. What follows the program to start is completed as files.
_ds_accel_run() {
    local current=${COMP_WORDS[COMP_CWORD]} previous='' only_arguments='' is_module='' value=''
    local program=$2 i word
    local -a directories=("${@:3}")

    for ((i = $1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ -n $previous ]]; then
            [[ $word == = ]] && continue
            [[ $previous == --plugin-dir ]] && directories+=("$word")
            previous=
        elif [[ $word == [=:]* ]]; then # bash has split an argument here
            i=$((i + 1))
            [[ $i -lt $COMP_CWORD ]] || return 0
        elif [[ -n $only_arguments || $word != -?* ]]; then
            _ds_accel_files "$current" '*'
            return
        elif [[ $word == -- ]]; then
            only_arguments=1
        elif [[ $word == --module ]]; then
            is_module=1
        elif [[ $word == --plugin-dir=* ]]; then
            directories+=("${word#*=}")
        elif [[ $word != *=* && " $_ds_accel_run_values " == *[[:space:]]"$word"[[:space:]]* ]]; then
            previous=$word
        fi
    done
    if [[ $current == = && -n $previous ]]; then
        current=
    elif [[ -z $previous && -z $only_arguments && $current == --*=* ]]; then
        previous=${current%%=*}
        value=$previous=
        current=${current#*=}
    fi
    if [[ -n $previous ]]; then
        _ds_accel_run_value "$previous" "$current" "$program" "${directories[@]}"
    elif [[ -z $only_arguments && $current == -* ]]; then
        _ds_accel_offer "$current" "$_ds_accel_run_values $_ds_accel_run_flags"
    elif [[ -z $is_module ]]; then
        _ds_accel_files "$current" .py
        _ds_accel_commands_in_path "$current"
    fi
    COMPREPLY=("${COMPREPLY[@]/#/$value}")
    [[ -n ${COMPREPLY[*]} ]] || COMPREPLY=()
}

_ds_accel() {
    local program=${1:-ds-accel} current=${COMP_WORDS[COMP_CWORD]} previous=
    local command='' argument='' position=0 only_arguments='' word value='' i
    local -a directories=()
    local options='-a --accelerator --config --json --machine --plugin-dir --root -q --quiet -v --verbose
        -h --help --version'

    COMPREPLY=()
    # Find what precedes the current word: the command, the number of its arguments, and an option
    # that needs a value. bash splits --option=value into three words.
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ -n $previous ]]; then
            [[ $word == = && $previous == --* ]] && continue
            [[ $previous == --plugin-dir ]] && directories+=("$word")
            previous=
        elif [[ $word == = && ${COMP_WORDS[i - 1]} == --memory-map ]]; then
            previous=--memory-map # accepts a value only after "="
        elif [[ $word == = ]]; then
            i=$((i + 1)) # "key=value" is three words
        elif [[ -z $only_arguments && $word == -- ]]; then
            only_arguments=1
        elif [[ -z $only_arguments && $word == -* ]]; then
            case $word in
            --accelerator | --config | --machine | --plugin-dir | --root) previous=$word ;;
            --device | --group | --jobs | --only | --output | --plan | --record | --rule | --size | --time | --try) previous=$word ;;
            --plugin-dir=*) directories+=("${word#*=}") ;;
            --*) ;;
            -*a) previous=-a ;;
            -*o) previous=-o ;;
            esac
        elif [[ -z $command ]]; then
            command=$word
            if [[ $command == run ]]; then
                _ds_accel_run $((i + 1)) "$program" "${directories[@]}"
                return
            fi
        else
            position=$((position + 1))
            argument=$word
        fi
    done
    if [[ $current == = && $previous == --* ]]; then
        current=
    elif [[ $current == = && ${COMP_WORDS[COMP_CWORD - 1]} == --memory-map ]]; then
        previous=--memory-map
        current=
    elif [[ -z $previous && -z $only_arguments && $current == --*=* ]]; then
        # The COMP_WORDBREAKS of the user has no "=".
        previous=${current%%=*}
        value=$previous=
        current=${current#*=}
    fi

    case $previous in
    -a | --accelerator) _ds_accel_names "$current" "$program" "${directories[@]}" ;;
    --config | --machine | --memory-map | --plan | --record) _ds_accel_files "$current" .json ;;
    --try) ;;
    -o | --output) _ds_accel_files "$current" '*' ;;
    --plugin-dir | --root) _ds_accel_files "$current" ;;
    --only) _ds_accel_groups "$current" ;;
    --device | --jobs | --size | --time) ;;
    --group) _ds_accel_checks "$current" "$program" 3 ;;
    --rule) _ds_accel_checks "$current" "$program" 1 ;;
    *)
        [[ $command != config ]] || options+=' --env'
        [[ $command != info ]] || options+=' --memory-map'
        [[ $command != report ]] || options+=' --no-redact -o --output --record'
        [[ $command != topo ]] || options+=' --plan --svg'
        [[ $command != memory ]] || options+=' -o --output --pickle --pickle-segments --svg --try'
        [[ $command != conformance ]] || options+=' --device --group --list --rule'
        [[ $command != ops ]] || options+=' --force --jobs'
        [[ $command != note ]] || options+=' -o --output'
        [[ $command != bench ]] || options+=' --device --force --only -o --output --size --time --tune'
        [[ -z $only_arguments ]] || options=''
        if [[ -n $options && $current == -* ]]; then
            _ds_accel_offer "$current" "$options"
        elif [[ -z $command ]]; then
            _ds_accel_offer "$current" "$_ds_accel_commands"
        else
            _ds_accel_argument "$command" $((position + 1)) "$argument" "$current" "$program" \
                "${directories[@]}" || _ds_accel_offer "$current" "$options"
        fi
        ;;
    esac
    COMPREPLY=("${COMPREPLY[@]/#/$value}")
    [[ -n ${COMPREPLY[*]} ]] || COMPREPLY=()
}

complete -F _ds_accel ds-accel
