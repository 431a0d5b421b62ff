# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# complete.zsh DIRECTORY LINES OUT: write the candidates of zsh for the end of each line of the file
# LINES to the file OUT, using the completion script in DIRECTORY. OUT has one "NUMBER CANDIDATE"
# per line; NUMBER counts the lines of LINES from 1. Completion works only in an interactive zsh on
# a terminal, so this script starts such a zsh on a pseudo-terminal. A widget there sets the command
# line, completes it, and collects the arguments of compadd.
if [[ -z $COMPLETE_INSIDE ]]; then
    zmodload zsh/zpty || exit 1
    export COMPLETE_INSIDE=1 COMPLETE_DIRECTORY=$1 COMPLETE_LINES=$2 COMPLETE_OUT=$3 TERM=dumb
    : >$3
    zpty inside zsh -f -i
    zpty -w inside "source ${(q)0:A}"
    while zpty -r inside talk; do :; done
    exit 0
fi

fpath=($COMPLETE_DIRECTORY $fpath)
autoload -Uz compinit
compinit -u -D
zstyle ':completion:*' menu no
number=0

compadd() {
    local -a hits

    # With -A, -D or -O, compadd only computes matches; every other call adds candidates.
    if (( ! ${argv[(I)-[ADO]]} )); then
        builtin compadd -O hits "$@"
        (( ! $#hits )) || print -rl -- "$number "$^hits >>$COMPLETE_OUT
    fi
    builtin compadd "$@"
}

zle -C offer complete-word _main_complete
zle-line-init() {
    local line

    for line in "${(@f)$(<$COMPLETE_LINES)}"; do
        (( ++number ))
        BUFFER=$line
        CURSOR=$#BUFFER
        zle offer
    done
    BUFFER=exit
    zle accept-line
}
zle -N zle-line-init
