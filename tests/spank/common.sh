# shellcheck shell=bash
# What the tests of traced steps share. Sourced; sets 'ptcluster', 'work' and 'user', and
# leaves us in a directory of the user's below 'work'.

# shellcheck source=../lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

need munged slurmctld slurmd srun setpriv
[[ -e $top_builddir/spank/paratrace.so ]] || skip 'the plugin is not built'
[[ -x $top_builddir/watchdog/ptwatchd ]] || skip 'the watchdog is not built'
unset LD_PRELOAD PARATRACE_SOCKET PARATRACE_WATCHDOG
# shellcheck disable=SC2034 # for the tests
library=$top_builddir/preload/libparatrace.so

make_tmp
work=$tmp
undo=() # commands for the end, the last one first
clean_up() {
    local i
    for ((i = ${#undo[@]} - 1; i >= 0; i--)); do eval "${undo[i]}"; done
    "$ptcluster" stop -d "$work/c" >/dev/null 2>&1
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 99' INT TERM

# The steps are those of an ordinary user: ours, or for root's cluster that of 'nobody'.
user=$(id -un)
if ((EUID == 0)); then user=nobody; fi
as_user() {
    local name=$1
    shift
    if [[ $(id -un) == "$name" ]]; then
        "$@"
    else
        setpriv --reuid="$name" --regid="$(id -g "$name")" --clear-groups \
            env HOME="$work" USER="$name" SHELL=/bin/bash "$@"
    fi
}
as() { as_user "$user" timeout -k 2 60 "$@"; }
as test -r "$library" || skip 'the build tree is closed to other users'

start_cluster() { # OPTIONS OF PTCLUSTER...
    "$ptcluster" start -d "$work/c" "$@" >"$work/start.log" 2>&1 ||
        skip "no cluster: $(tail -n 1 "$work/start.log")"
    eval "$("$ptcluster" env -d "$work/c")"
    mkdir "$work/w"
    chown "$user" "$work/w"
    cd "$work/w" || exit 99
}

failures=0
check() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@"; then echo "ok - $what"; else echo "FAILED - $what"; ((failures++)); fi
}
has() { grep -qE -- "$2" "$1" || { echo "no '$2' in $1:"; cat "$1"; return 1; }; }
lacks() { ! grep -E -- "$2" "$1"; }
same() { [[ $1 == "$2" ]] || { echo "expected '$2', not '$1'"; return 1; }; }
report() {
    echo "$failures failed"
    ((failures == 0))
}

# Within 20 seconds the command succeeds.
eventually() {
    local i
    for ((i = 0; i < 200; i++)); do
        if "$@" >/dev/null 2>&1; then return 0; fi
        sleep 0.1
    done
    "$@"
}

# The watchdogs of this test: their arguments name a run directory below ours.
watchdogs() {
    local dir args
    for dir in /proc/[0-9]*; do
        args=$({ tr '\0' ' ' <"$dir/cmdline"; } 2>/dev/null) || continue
        [[ $args == *"--socket paratrace."*"--out $work/"* ]] && echo "${dir#/proc/}"
    done
}
watchdogs_are() { same "$(watchdogs | wc -l)" "$1"; }
watchdogs_become() { eventually watchdogs_are "$1"; }

# is_complete DIR: all hosts' files are there and tell of whole programs.
is_complete() { has "$1/run.json" '^  "complete": true'; }

# nodes_of DIR PATTERN: the lines of a run's events and nodes that match.
nodes_of() {
    local file
    for file in "$1"/*.ptrun; do
        "$top_builddir/hdf5store/ptdump" "$file"
    done | grep -E "$2"
}

# batch OPTIONS...: runs the script that comes on stdin as a job; its output is in 'out'.
batch() {
    cat >script.sh
    rm -f out
    as sbatch -W -o out "$@" script.sh >submit.out 2>submit.err
}
