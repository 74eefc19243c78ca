# The manual page of the library in troff, from the comments of api/meshsim.h: the first one is the description; each other
# one is about the declaration behind it. Variables: version, date.
function troff(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    if (text ~ /^[.']/) text = "\\&" text
    return text
}
function flush_declaration() {
    if (declaration == "") return
    if (declaration ~ /^typedef struct/) { types = types ".br\n" troff(declaration) "\n"; declaration = comment = ""; return }
    synopsis = synopsis ".PP\n.nf\n" troff(declaration) "\n.fi\n"
    if (comment != "") functions = functions ".SS " troff(name_of(declaration)) "\n" comment
    declaration = comment = ""
}
function name_of(text) {
    if (match(text, /meshsim_[a-z_]+\(/)) return substr(text, RSTART, RLENGTH - 1)
    if (match(text, /\(\*meshsim_[a-z_]+/)) return substr(text, RSTART + 2, RLENGTH - 2)
    return "meshsim_status"
}
function add_comment(text) { comment = comment (text == "" ? ".PP" : troff(text)) "\n" }
/^\/\* ----/ { next }
/^\/\*/ { inside = 1; comment = ""; text = substr($0, 4); one = text ~ /\*\/$/; sub(/ *\*\/$/, "", text); add_comment(text); inside = !one; next }
inside { text = $0; done = text ~ /\*\/$/; sub(/^ \* ?/, "", text); sub(/ *\*\/$/, "", text); add_comment(text); inside = !done
         if (done && description == "") { description = comment; comment = "" }
         next }
/^#|^extern "C"|^}$|^$/ { next }
{ declaration = declaration (declaration == "" ? "" : "\n") $0 }
/;$/ && (declaration !~ /^typedef enum/ || /^}/) { flush_declaration() }
END {
    printf ".TH MESHSIM 3 \"%s\" \"meshsim %s\" \"Library Functions\"\n", date, version
    print ".SH NAME\nmeshsim \\- step time and memory of plans to train language models"
    print ".SH LIBRARY\nlibmeshsim (\\-lmeshsim; pkg\\-config \\-\\-cflags \\-\\-libs meshsim)"
    printf ".SH SYNOPSIS\n.B #include <meshsim.h>\n%s%s", types, synopsis
    printf ".SH DESCRIPTION\n%s", description
    printf ".SH FUNCTIONS\n%s", functions
    print ".SH SEE ALSO\n.BR meshsim (1)"
}
