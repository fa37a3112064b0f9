#!/bin/bash
#
# What 'make install' installs is what paratrace(8) speaks of; the site's own file survives
# the next one.
# shellcheck source=../lib.sh
. "$(dirname "$0")/../lib.sh"

need make
make_tmp
trap 'rm -rf "$tmp"' EXIT
# Its own directories, not those of the make that runs the tests.
install() { env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -C "$top_builddir" "$@" DESTDIR="$tmp/root" >"$tmp/log" 2>&1; }
variable() { sed -n "s|^$1 = ||p" "$top_builddir/Makefile"; }
prefix=$(variable prefix)
in_root() { # PATH, with the variables of the Makefile in it
    local path=$1
    path=${path//'$sysconfdir'/$(variable sysconfdir)}
    path=${path//'$sbindir'/$(variable sbindir)}
    path=${path//'$libexecdir'/$(variable libexecdir)}
    path=${path//'$libdir'/$(variable libdir)}
    path=${path//'${exec_prefix}'/$prefix}
    printf '%s\n' "$tmp/root${path//'${prefix}'/$prefix}"
}

install install || { tail "$tmp/log"; fail 'make install'; }
# The files that paratrace(8) lists.
sed -n '/^\.SH FILES/,/^\.SH SEE/s/^\.I \(\$.*\)/\1/p' "$top_srcdir/man/paratrace.8" |
    tr -d '\\' >"$tmp/files"
(($(wc -l <"$tmp/files") >= 5)) || fail "paratrace(8) lists $(cat "$tmp/files")"
while read -r file; do
    [[ -e $(in_root "$file") ]] || fail "not installed: '$file' ($(in_root "$file"))"
done <"$tmp/files"
plugin=$(in_root '$libdir/paratrace/paratrace.so')
snippet=$(in_root '$sysconfdir/paratrace/plugstack-paratrace.conf')
[[ $(sed -n 's/^optional //p' "$snippet") == "${plugin#"$tmp/root"}" ]] ||
    fail "the snippet names another plugin: $(cat "$snippet")"
[[ -e ${plugin%/*}/libparatrace.so ]] || fail 'no tracer'
for page in paratrace.conf.5 paratrace.7 paratrace.8 ptcheckconf.8; do
    [[ -n $(find "$tmp/root" -name "$page") ]] || fail "no manual page $page"
done

# The installed programs have the installed file as theirs.
conf=$(in_root '$sysconfdir/paratrace/paratrace.conf')
[[ $(stat -c %a "$(in_root '$libexecdir/paratrace/ptwatchd')") == 711 ]] || fail 'users can read the watchdog'
# Nobody can debug it, but is traced.
if ((EUID == 0)); then
    mkdir -m 777 "$tmp/other"
    setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups \
        "$(in_root '$libexecdir/paratrace/ptwatchd')" --preload "${plugin%/*}/libparatrace.so" \
        --out "$tmp/other/run" -- sh -c 'cd "$1" && cat "/proc/$PARATRACE_WATCHDOG/environ" >file' \
        sh "$tmp/other" >"$tmp/out" 2>&1 && fail 'its user can look into the installed watchdog'
    grep -q 'events, 0 lost, complete' "$tmp/out" || fail "no trace: $(cat "$tmp/out")"
fi
ptcheckconf=$(in_root '$sbindir/ptcheckconf')
"$ptcheckconf" "$conf" >"$tmp/out" 2>&1 || fail "the installed file: $(cat "$tmp/out")"
"$ptcheckconf" --version | grep -q '^ptcheckconf [0-9]' || fail 'no version'
"$ptcheckconf" --help | grep -q '^usage: ptcheckconf' || fail 'no help'
"$ptcheckconf" a b 2>/dev/null
(($? == 2)) || fail 'wrong use is not 2'

# Every directive is in the file, and in its manual page.
"$ptcheckconf" "$conf" 2>/dev/null | sed -n 's/^# \([a-z_]*\) = .*/\1/p' >"$tmp/directives"
(($(wc -l <"$tmp/directives") > 20)) || fail 'directives are missing'
while read -r directive; do
    grep -q "^# $directive =" "$conf" || fail "the file lacks '$directive'"
    grep -qw "$directive" "$top_srcdir/man/paratrace.conf.5" || fail "the page lacks '$directive'"
done <"$tmp/directives"
# Uncommented, the file's defaults are right, but for examples and paths of other systems.
sed -n 's/^# \([a-z_]* = ..*\)/\1/p' "$conf" >"$tmp/defaults"
"$ptcheckconf" "$tmp/defaults" >"$tmp/out" 2>&1 || fail "the defaults: $(cat "$tmp/out")"

# Once more: what the site has written stays.
echo 'quiet = true' >>"$conf"
install install || fail 'the second make install'
[[ $(tail -n 1 "$conf") == 'quiet = true' ]] || fail "the site's file was overwritten"
install uninstall || { tail "$tmp/log"; fail 'make uninstall'; }
[[ $(find "$tmp/root" -type f) == "$conf" ]] || fail "left: $(find "$tmp/root" -type f)"
echo 'all is there'
