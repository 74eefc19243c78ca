# Completion of commands, options and their words for a shell, from the JSON of "meshsim help" and then of "meshsim help
# COMMAND" for each command. Variable: shell, one of bash, zsh, fish.
function text_of(line) {
    sub(/^[^:]*: "/, "", line); sub(/",?$/, "", line)
    gsub(/\\"/, "\"", line); gsub(/\\\\/, "\\", line)
    return line
}
function quoted(text) { gsub(/'/, shell == "fish" ? "\\'" : "'\\''", text); return "'" text "'" }
function end_option() {
    if (option == "") return
    n = ++num_options[command]
    names[command, n] = option; helps[command, n] = help; kinds[command, n] = kind; words[command, n] = choices
    option = choices = ""
}
# words of an option, or a command that lists them
function values(c, i) {
    if (names[c, i] ~ /^--(model|cluster|stack)$/) return "$(meshsim " substr(names[c, i], 3) " 2>/dev/null | awk '{ print $1 }')"
    if (kinds[c, i] == "switch") return "on off"
    return words[c, i]
}
FNR == 1 { end_option(); command = ""; in_options = 0; file++ }
file == 1 && /^      "name": / { list[++num_commands] = text_of($0) }
file == 1 && /^      "help": / { command_help[list[num_commands]] = text_of($0) }
file == 1 { next }
/^  "name": / { command = text_of($0) }
/^  "options": / { in_options = 1 }
in_options && /^      "name": "--/ { end_option(); option = text_of($0); help = kind = "" }
in_options && /^      "name": "[^-]/ { end_option() }
in_options && /^      "kind": / { kind = text_of($0) }
in_options && /^      "help": / { help = text_of($0) }
in_options && /^        "/ { word = $0; gsub(/^ *"|",?$/, "", word); choices = choices (choices == "" ? "" : " ") word }
in_options && /"choices": \[.*\]/ { line = $0; sub(/^[^[]*\[/, "", line); sub(/\].*$/, "", line); gsub(/[",]/, " ", line); choices = line }
END {
    end_option()
    if (shell == "bash") bash(); else if (shell == "zsh") zsh(); else fish()
}
function all_commands(   i, text) { for (i = 1; i <= num_commands; i++) text = text " " list[i]; return text }
function bash(   c, i, k, text) {
    print "# bash completion of meshsim\n_meshsim()\n{\n    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words= options="
    print "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        COMPREPLY=($(compgen -W \"" all_commands() "\" -- \"$word\"))\n        return\n    fi"
    print "    case ${COMP_WORDS[1]} in"
    for (c = 1; c <= num_commands; c++) {
        k = list[c]; text = ""
        for (i = 1; i <= num_options[k]; i++) text = text " " names[k, i]
        print "    " k ")\n        options=\"" text " \"\n        case $before in"
        for (i = 1; i <= num_options[k]; i++)
            if (values(k, i) != "") print "        " names[k, i] ") words=\"" values(k, i) "\" ;;"
        print "        esac ;;"
    }
    print "    esac\n    if [ \"${COMP_WORDS[1]}\" = help ]; then words=\"" all_commands() "\"; fi"
    print "    if [ -n \"$words\" ]; then\n        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n    elif [[ $word == -* ]]; then"
    print "        COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n    fi\n}\ncomplete -o default -F _meshsim meshsim"
}
function zsh_text(text) { gsub(/\\|\[|\]|:/, "\\\\&", text); return text }
function zsh(   c, i, k, v) {
    print "#compdef meshsim\n_meshsim() {\n    local -a commands\n    commands=("
    for (c = 1; c <= num_commands; c++) print "        " quoted(list[c] ":" zsh_text(command_help[list[c]]))
    print "    )\n    if (( CURRENT == 2 )); then\n        _describe command commands\n        return\n    fi\n    case $words[2] in"
    for (c = 1; c <= num_commands; c++) {
        k = list[c]
        print "    " k ")\n        shift words; (( CURRENT-- ))\n        _arguments \\"
        for (i = 1; i <= num_options[k]; i++) {
            v = values(k, i)
            if (kinds[k, i] == "flag") v = ""
            else if (v ~ /^\$/) v = ":name:(" v ")"
            else if (v != "") v = ":word:(" v ")"
            else v = ":value:_files"
            print "            " (v ~ /\$/ ? "\"" names[k, i] "[" dollars(zsh_text(helps[k, i])) "]" v "\"" : quoted(names[k, i] "[" zsh_text(helps[k, i]) "]" v)) " \\"
        }
        print "            '*:file:_files' ;;"
    }
    print "    esac\n}\n_meshsim \"$@\""
}
function dollars(text) { gsub(/["`$]/, "\\\\&", text); return text }
function fish(   c, i, k, v) {
    for (c = 1; c <= num_commands; c++)
        print "complete -c meshsim -n __fish_use_subcommand -a " list[c] " -d " quoted(command_help[list[c]])
    for (c = 1; c <= num_commands; c++) {
        k = list[c]
        for (i = 1; i <= num_options[k]; i++) {
            v = values(k, i)
            if (v ~ /^\$/) v = "(meshsim " substr(names[k, i], 3) " 2>/dev/null | string split -f1 ' ')"
            print "complete -c meshsim -n '__fish_seen_subcommand_from " k "' -l " substr(names[k, i], 3) (kinds[k, i] == "flag" ? "" : " -r") " -d " quoted(helps[k, i]) (v == "" ? "" : " -xa " quoted(v))
        }
    }
}
