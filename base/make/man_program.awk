# The manual page of the program in troff, from the text of "meshsim help". Variables: version, date.
function troff(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    return text
}
FNR == 1 {
    printf ".TH MESHSIM 1 \"%s\" \"meshsim %s\" \"User Commands\"\n", date, version
    print ".SH NAME\nmeshsim \\- step time and memory of plans to train language models\n.SH SYNOPSIS\n.B meshsim\n\\fICOMMAND\\fR [options]"
    printf ".SH DESCRIPTION\n%s.\n", troff($0)
}
/^commands/ { part = "commands"; print ".SH COMMANDS"; next }
/^examples/ { part = "examples"; print ".SH EXAMPLES\n.nf"; next }
/^exit codes/ { part = "" }
/^$/ { next }
part == "commands" && /^  / {
    names[++num] = $1
    help = $0; sub(/^ +[^ ]+ +/, "", help)
    printf ".TP\n.BR meshsim\\-%s (1)\n%s\n", $1, troff(help)
}
part == "examples" && /^  / { print troff(substr($0, 3)) }
part == "examples" && /^"/ { part = ""; print ".fi" }
END {
    print ".SH EXIT STATUS\n0 done, 1 I/O or run\\-time failure, 2 wrong usage or bad input, 3 nothing fits or keeps the limits,"
    print "4 a check failed, 130 interrupted."
    print ".SH ENVIRONMENT\n.TP\n.B MESHSIM_CONFIGS\nfolder of models, clusters, profiles and stacks, in place of those installed"
    print ".SH SEE ALSO"
    for (i = 1; i <= num; i++) printf ".BR meshsim\\-%s (1)%s\n", names[i], i < num ? "," : ""
    print ".br\n.BR meshsim (3)"
}
