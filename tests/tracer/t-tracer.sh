#!/usr/bin/env bash
# Programs make calls and print the trace they expect; it must be the one recorded.  And
# every row of the table of calls is called by one of them.
# No Slurm: ptwatchd starts the program itself.
set -u
# The numbers of descriptors are compared: those that we were started with would be in the way.
for fd in /proc/$$/fd/*; do
    fd=${fd##*/}
    ((fd <= 2 || fd == 255)) || exec {fd}>&-
done
: "${top_builddir:?}" "${top_srcdir:?}"
watchd=$top_builddir/watchdog/ptwatchd
tracer=$top_builddir/preload/libparatrace.so
ptdump=$top_builddir/hdf5store/ptdump
programs=$top_builddir/tests/tracer
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
unset "${!SLURM@}" "${!OMPI_@}" "${!PMIX_@}" "${!PMI_@}"

# The events of a run, node by node, as "NODE class call(...) = result [inner]".  The marks
# that the tracer makes itself (exit, inherited, identity) are not the program's calls.  With $polls,
# the number of polls in vain is behind the result as "[N polls]".
events() {
    "$ptdump" "$1"/*.ptrun | grep -E '^[0-9.]+:[0-9]' | sort -s -t: -k1,1V |
        sed -e 's/^\([0-9.]*\):[0-9]* [^ ]* \([a-z]*\) */\1 \2 /' \
            -e "s/ (\([0-9]* polls\)) </${polls:+ [\\1]} </" \
            -e 's/ ([^()]*) \(\[[0-9]* polls\]\) </ \1 </' \
            -e 's/ <[0-9.]*>.* inner$/ inner/' -e 's/ <[0-9.]*>.*//' \
            -e 's/ ([^()]*)\( inner\)\{0,1\}$/\1/' \
            -e '/^[0-9.]* [a-z]* \(exit\|inherited\|identity\)(/d'
}

# Without NODE; a node other than the first has a line "node NODE" in front.
by_node() {
    awk '{
        if ($1 != node && $1 != "0")
            print "node " $1
        node = $1
        sub(/^[^ ]+ /, "")
        print
    }'
}

recorded_all() { events "$1" | by_node; }
# I/O and name events only, without their class.
recorded() { events "$1" | sed -n 's/^\([0-9.]*\) \(io\|name\) /\1 /p' | by_node; }

# Nodes whose events are not in the order in which they began.  A call of MPI-IO is
# written after those below it.
disordered() {
    "$ptdump" "$1"/*.ptrun | grep -E '^[0-9.]+:[0-9]' | grep -v ' inner$' | sort -s -t: -k1,1V |
        awk '{
            node = $1
            sub(/:.*/, "", node)
            if (node == last && $2 < begin)
                print "not in order: " $0
            last = node
            begin = $2
        }'
}

bad() {
    echo "FAIL $1"
    failed=1
}

# same NAME EXPECTED GOT: says what differs.
same() {
    if [ ! -s "$2" ]; then
        bad "$1: the program printed nothing"
    elif ! diff -u "$2" "$3" >"$work/$1.diff"; then
        bad "$1: another trace than expected"
        head -n 60 "$work/$1.diff"
    else
        echo "ok   $1 ($(wc -l <"$3") calls)"
    fi
}

# check NAME EXPECTED-STATUS SPEC COMMAND...: the ranks of MPI print to expected.RANK.
check() {
    local name=$1 want=$2 spec=$3 status
    shift 3
    mkdir "$work/$name" && cd "$work/$name" || exit 1
    timeout -k 2 120 "$watchd" --preload "$tracer" --out "$work/$name.run" --spec "$spec" -- "$@" \
        2>"$work/$name.err" | cat >"$work/$name.expected"
    status=${PIPESTATUS[0]}
    "${form:-recorded}" "$work/$name.run" >"$work/$name.got"
    cd "$work" || exit 1
    if [ "$status" != "$want" ]; then
        bad "$name: exit status $status, not $want"
        cat "$work/$name.err"
        return 1
    fi
    [ ! -e "$work/$name/expected.0" ] ||
        { cat "$work/$name/expected.0" && echo "node 1" && cat "$work/$name/expected.1"; } \
            >"$work/$name.expected"
    cp "$work/$name.got" "$work/$name.all"
    sed -i '/ inner$/d' "$work/$name.got"
    same "$name" "$work/$name.expected" "$work/$name.got"
}

# rows NAME SPEC COMMAND...: all classes, in order, and for the list of rows called.
rows() {
    local name=$1 late
    form=recorded_all check "$1" 0 "${@:2}"
    late=$(disordered "$work/$name.run")
    [ -z "$late" ] || { bad "$name"; head -n 10 <<<"$late"; }
    sed -n 's/^[a-z]* \([A-Za-z0-9_]*\)(.*/\1/p' "$work/$name.got" >>"$work/called"
}

# ---- the table of calls ---------------------------------------------------------------------

rows calls "" "$programs/calls"
rows calls_name "" "$programs/calls_name"
rows calls_stream "" "$programs/calls_stream"
rows calls_data "" "$programs/calls_data"
rows calls_number "" "$programs/calls_number"
polls=1 rows calls_wait 'noexe=*sh' "$programs/calls_wait"
polls=1 rows calls_poll "" "$programs/calls_poll"

if type -P mpirun >/dev/null; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
    export OMPI_MCA_mpi_yield_when_idle=1
    export OMPI_MCA_io=ompio # Open MPI's ROMIO has not all the calls
    other=NONE
    polls=1 rows calls_mpi 'nopath=*expected.*' mpirun -n 2 "$programs/calls_mpi"
    rows calls_mpiio 'nopath=*expected.*' mpirun -n 2 "$programs/calls_mpiio"
    # What MPI_File_write_at does is there too, as inner: the same bytes at the same place.
    lost=$(awk '
        /^io MPI_File_(write|read)_at\(/ {
            split($0, arg, /[(,)] */)
            call = /write_at/ ? "pwrite" : "pread"
            seen++
            if (before !~ "^io " call "v?\\([0-9]+, " arg[3] ", " arg[4] "\\) = " arg[3] " inner$")
                print before " | " $0
        }
        { before = $0 }
        END { if (seen != 4) print seen + 0 " calls, not 4" }' "$work/calls_mpiio.all")
    [ -z "$lost" ] || { bad "calls_mpiio: inner calls"; echo "$lost"; }
else
    echo "skip MPI: no program 'mpirun'"
    other=MPI
fi

# Every row was called, or is on the list of those that are not, with a reason.
sed -n -e 's/^\(CALL\|RES\|ODD\|NUM\|HAND\|ASK\|TRY\|LOCK\)(\([A-Za-z0-9_]*\),.*/\2/p' \
    -e 's/^\(MPI\|MPIODD\|MPICOMM\|MPITEST\|MPIIO\)(\([A-Za-z0-9_]*\),.*/MPI_\2/p' \
    "$top_srcdir/common/calls.def" "$top_srcdir/common/calls_mpi.def" | grep -v "^${other}_" | sort >"$work/table"
grep -v '^#' "$top_srcdir/tests/tracer/not-called.txt" | awk 'NF' | sort >"$work/not-called"
awk 'NF < 2' "$work/not-called" | grep . && bad "rows: on the list without a reason"
awk '{ print $1 }' "$work/not-called" | sort >"$work/excused"
sort -u -o "$work/called" "$work/called"
comm -23 "$work/table" "$work/called" | comm -23 - "$work/excused" | grep . &&
    bad "rows: not called, and not on the list"
comm -12 "$work/excused" "$work/called" | grep . && bad "rows: on the list, but called"
comm -23 "$work/excused" "$work/table" | grep . && bad "rows: on the list, but no row"
echo "rows: $(comm -12 "$work/table" "$work/called" | wc -l) of $(wc -l <"$work/table") called"

# ---- things that break tracers ----------------------------------------------------------------

hazards=$programs/hazards
for hazard in signal fork exec closeall _exit threads errno; do
    check $hazard 0 "" "$hazards" $hazard
done
check kill 137 "" "$hazards" kill
check full 0 buffer=64K "$hazards" full

exit $failed
