# Completion of `orrery` in bash: the program says what can follow; where it says nothing, bash offers files.
_orrery() {
  mapfile -t COMPREPLY < <("${1/#\~/$HOME}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null | cut -f 1)
}
complete -o default -F _orrery orrery
