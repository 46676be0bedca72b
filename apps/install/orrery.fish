# Completion of `orrery` in fish: the program says what can follow; where it says nothing, fish offers files.
function __orrery_complete
    set --local before (commandline --current-process --tokenize --cut-at-cursor)
    set --local last (commandline --current-token --cut-at-cursor)
    set --local found ($before[1] complete -- $before[2..] "$last" 2> /dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path "$last"
    end
end
complete --command orrery --no-files --arguments '(__orrery_complete)'
