#compdef orrery
# Completion of `orrery` in zsh: the program says what can follow; where it says nothing, zsh offers files.
local -a found
local line
for line in "${(@f)$(${~words[1]} complete -- "${(@)words[2,CURRENT]}" 2> /dev/null)}"; do
  [[ -z $line ]] || found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
done
if (( $#found )); then
  _describe orrery found
else
  _files
fi
