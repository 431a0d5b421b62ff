# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
# shellcheck shell=bash
#
# complete.bash FILE LINE [BREAKS]: load a completion script and print its candidates for the end of
# LINE. BREAKS lists the characters, besides spaces, that separate words, as in COMP_WORDBREAKS; "="
# by default.
# shellcheck disable=SC1090 # the script under test
. "$1"
COMP_LINE=$2
# shellcheck disable=SC2034 # read by the completion script
COMP_POINT=${#COMP_LINE}
line=$COMP_LINE
[[ ${3-=} != = ]] || line=${line//=/ = }
read -r -a COMP_WORDS <<<"$line"
[[ $line != *' ' ]] || COMP_WORDS+=('')
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
read -r -a spec < <(complete -p "${COMP_WORDS[0]##*/}")
for ((i = 0; i < ${#spec[@]}; i++)); do
    [[ ${spec[i]} != -F ]] || "${spec[i + 1]}" "${COMP_WORDS[0]}" "${COMP_WORDS[COMP_CWORD]}" \
        "${COMP_WORDS[COMP_CWORD - 1]}"
done
[[ ${#COMPREPLY[@]} -eq 0 ]] || printf '%s\n' "${COMPREPLY[@]}"
