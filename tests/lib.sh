# shellcheck shell=bash
# What the tests that start a cluster share. Sourced; sets 'ptcluster' and 'tmp'.

set -u -o pipefail

: "${top_builddir:?}" "${top_srcdir:?}"
# shellcheck disable=SC2034 # for the tests
ptcluster=$top_builddir/cluster/ptcluster
PATH=$PATH:/usr/sbin:/sbin
# The test must see the private cluster only, not one it happens to run in.
unset "${!SLURM@}"

exec 3>&1   # the test's own output, also where a command's is redirected
skip() { printf 'skipped: %s\n' "$*" >&3; exit 77; }
fail() { printf 'FAILED: %s\n' "$*" >&3; exit 1; }

need() {
    local program
    for program; do
        type -P "$program" >/dev/null || skip "no program '$program'"
    done
}

need_root() { ((EUID == 0)) || skip 'needs root'; }

# A short directory: Slurm's sockets below it have little room for names.
# Everybody may pass through it, as a cluster for everybody needs.
make_tmp() {
    tmp=$(mktemp -d /tmp/ptc.XXXXXX) || fail 'cannot make a directory'
    chmod 0755 "$tmp"
}

# expect WHAT COMMAND...: the command must succeed.
expect() {
    local what=$1
    shift
    "$@" || fail "$what"
}

# refuse WHAT PATTERN COMMAND...: the command must exit 1 and say PATTERN.
refuse() {
    local what=$1 pattern=$2 message status
    shift 2
    message=$("$@" 2>&1)
    status=$?
    ((status == 1)) || fail "$what: exit status $status: $message"
    [[ $message == *$pattern* ]] || fail "$what: message was: $message"
}

# on DIR COMMAND...: run a command on the cluster in DIR, for $on_seconds (30) at most.
on() {
    local dir=$1
    shift
    (
        eval "$("$ptcluster" env -d "$dir")"
        timeout -k 2 "${on_seconds:-30}" "$@"
    )
}

# Living processes that name a directory in their command line or environment,
# or hold a file of it, but for this test itself.
processes_of() {
    local pid
    {
        grep -lsF -e "$1/" /proc/[0-9]*/cmdline /proc/[0-9]*/environ
        find /proc/[0-9]*/fd -maxdepth 1 -lname "$1/*" 2>/dev/null
    } | cut -d/ -f3 | sort -u | while read -r pid; do
        [[ $pid != "$$" && $pid != "$BASHPID" ]] || continue
        ! grep -qs '^State:.[ZX]' "/proc/$pid/status" || continue
        # What we look with may name it too, and is gone by now.
        [[ ! -e /proc/$pid ]] || printf '%s %s\n' "$pid" "$(tr '\0' ' ' <"/proc/$pid/cmdline")"
    done
}

# expect_nothing_left DIR [BRIDGE]: other clusters may come and go meanwhile, so
# look for what bears the marks of this one, not for any change of the machine.
expect_nothing_left() {
    local left
    left=$(processes_of "$1")
    [[ -z $left ]] || fail "processes left: $left"
    [[ ! -e $1 ]] || fail "directory left: $(find "$1")"
    ! grep -qF " $1" /proc/mounts || fail "mounts left below '$1'"
    if [[ -n ${2:-} ]]; then
        ! ip -br link | grep -E "^$2(n[0-9]+)?[ @]" || fail "links left of bridge '$2'"
        ! ip netns | grep -w "$2" || fail "namespaces left of bridge '$2'"
    fi
}

build_mpi_program() {
    cat >"$tmp/ring.c" <<'C'
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

/* Pass a large message around the ring, then print where each rank ran. */
int main(int argc, char **argv)
{
    static char out[1 << 20], in[1 << 20];
    char host[256] = "";
    int rank, size, sum;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    gethostname(host, sizeof(host) - 1);
    MPI_Sendrecv(out, sizeof(out), MPI_CHAR, (rank + 1) % size, 0, in, sizeof(in), MPI_CHAR,
                 (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d host %s sum %d uid %d\n", rank, host, sum, (int)getuid());
    MPI_Finalize();
    return 0;
}
C
    mpicc -o "$tmp/ring" "$tmp/ring.c" || fail 'cannot compile the MPI program'
}
