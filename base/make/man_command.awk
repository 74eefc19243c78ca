# The manual page of a command in troff, from the text of its help ("meshsim COMMAND --help --wide").
# Variables: version, date.
function troff(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    if (text ~ /^[.']/) text = "\\&" text
    return text
}
FNR == 1 {
    split($2, name, ":")
    summary = substr($0, index($0, ":") + 2)
    printf ".TH MESHSIM\\-%s 1 \"%s\" \"meshsim %s\" \"User Commands\"\n", toupper(name[1]), date, version
    printf ".SH NAME\nmeshsim\\-%s \\- %s\n", name[1], troff(summary)
    next
}
/^usage: / {
    arguments = $0
    sub(/^usage: meshsim [^ ]+ /, "", arguments)
    printf ".SH SYNOPSIS\n.B meshsim %s\n%s\n", name[1], troff(arguments)
    next
}
/^example: / { example = substr($0, 10); print ".SH OPTIONS"; next }
/^$/ { next }
/^[^ ]/ { printf ".SS %s\n", troff($0); next }
# an option, with its help behind two spaces or on the next line
/^  [^ ]/ {
    line = substr($0, 3)
    at = index(line, "  ")
    usage = at ? substr(line, 1, at - 1) : line
    printf ".TP\n.B %s\n", troff(usage)
    if (at) { help = substr(line, at); sub(/^ +/, "", help); print troff(help) }
    next
}
{ help = $0; sub(/^ +/, "", help); print troff(help) }
END {
    printf ".SH EXAMPLE\n.nf\n%s\n.fi\n", troff(example)
    print ".SH EXIT STATUS\n0 done, 1 I/O or run\\-time failure, 2 wrong usage or bad input, 3 nothing fits or keeps the limits,"
    print "4 a check failed, 130 interrupted.\n.SH SEE ALSO\n.BR meshsim (1)"
}
