#!/bin/sed -f
# Demangled kernels without their anonymous namespace, "void" casts and parameters, before the first tab.
s/(anonymous namespace):://g
s/_GLOBAL__N__[0-9a-f_]*[A-Za-z0-9_]*:://g
s/ void / /
s/([A-Za-z_][A-Za-z0-9_]*)\([0-9]\)/\1/g
s/([^\t]*)\t/\t/
