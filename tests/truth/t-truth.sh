#!/bin/bash
# Holds find the true dependencies, all of them and no others: programs whose order is known
# by construction, each node held in a run of its own, merged and compared.
#
# Run by hand, from anywhere: t-truth.sh --help.
top_srcdir=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
top_builddir=${top_builddir:-$top_srcdir/build}
export top_srcdir top_builddir
# shellcheck source=../lib.sh
. "$(dirname "$0")/../lib.sh"

# check: exact  the store's order is the true one
#        least  it holds the true one: the program has races, and a run ends them one way
#        io     exact, but for the end of its nodes: they end with their process
#        merge  the runs can be merged: who comes first differs from run to run
# quick: in --quick too.  spec: more items of SPEC.  A variable for the MPI library chooses the
# algorithm that the truth is about.
readonly tuned=OMPI_MCA_coll_tuned_use_dynamic_rules=1,OMPI_MCA_coll_tuned_
SCENARIOS="
# name          program       check  quick spec                          environment
barrier         truth_mpi     exact  yes   -                             -
barrier-8       truth_mpi     exact  no    -                             -
allreduce       truth_mpi     exact  no    -                             -
chain           truth_mpi     exact  yes   -                             -
chain-2         truth_mpi     exact  no    -                             -
relay           truth_mpi     exact  no    -                             -
ring            truth_mpi     exact  no    -                             -
ring-8          truth_mpi     exact  no    -                             -
gather          truth_mpi     exact  yes   -                             ${tuned}gather_algorithm=1
gather-tree     truth_mpi     exact  no    -                             ${tuned}gather_algorithm=2
bcast           truth_mpi     exact  no    -                             ${tuned}bcast_algorithm=1
bcast-tree      truth_mpi     exact  no    -                             ${tuned}bcast_algorithm=6
any             truth_mpi     exact  no    -                             -
farm            truth_mpi     least  no    -                             -
split           truth_mpi     exact  no    -                             -
rendezvous      truth_mpi     exact  yes   -                             -
huge            truth_mpi     exact  no    hold-max=60s                  -
ssend           truth_mpi     exact  no    -                             -
test            truth_mpi     exact  yes   -                             -
iprobe          truth_mpi     exact  no    -                             -
pmpi            truth_mpi     exact  no    -                             -
compute         truth_mpi     exact  no    -                             -
mpi-file        truth_mpi     exact  no    -                             -
none            truth_mpi     exact  yes   -                             -
init            truth_mpi     exact  no    -                             -
init-late       truth_mpi_late exact yes   -                             -
pipes           truth_proc    exact  yes   -                             -
pipes-8         truth_proc    exact  no    -                             -
sockets         truth_proc    exact  yes   -                             -
tcp             truth_proc    exact  yes   -                             -
poll            truth_proc    exact  yes   -                             -
poll-timeout    truth_proc    exact  yes   -                             -
fcntl           truth_proc    exact  yes   -                             -
flock           truth_proc    exact  yes   -                             -
file            truth_proc    exact  yes   -                             -
spin            truth_proc    exact  no    compute-max=100ms,call-max=1s -
nap             truth_proc    exact  yes   -                             -
select-nap      truth_proc    exact  yes   -                             -
fifo            truth_proc    exact  no    -                             -
signal          truth_proc    exact  no    -                             -
late            truth_proc    exact  no    -                             -
one-by-one      truth_proc    exact  no    -                             -
apart           truth_proc    exact  yes   -                             -
thread-barrier  truth_thread  exact  yes   -                             -
thread-barrier-8 truth_thread exact  no    -                             -
thread-cond     truth_thread  exact  yes   -                             -
thread-sem      truth_thread  exact  yes   -                             -
thread-none     truth_thread  exact  yes   -                             -
thread-late     truth_thread  exact  no    -                             -
thread-mutex    truth_thread  merge  yes   -                             -
omp             truth_omp     io     no    -                             -
"
readonly run_seconds=120
period=1
repeat=1
rounds=3
hold_max=10s
hosts=0
load=0
quick=${PT_QUICK:+1}
keep=''
only=()
burners=()

usage() {
    cat <<USAGE
Usage: t-truth.sh [OPTION...] [SCENARIO...]
Runs the scenarios (default: all that can be checked), once for each node held and once
with nobody held, merges the runs and compares the order found with the true one.

  --period P   hold every Pth I/O (default 1)
  --repeat N   do it all N times
  --rounds N   rounds of a scenario (default $rounds)
  --hold-max T how long a hold may take before it counts as wrong (default $hold_max)
  --load       with two processes beside it that use all CPU they get
  --hosts N    under srun, on N isolated hosts: the MPI scenarios only
  --quick      the shorter half
  --keep DIR   leave the runs of what failed there
  --list       list the scenarios
USAGE
}

list() { awk 'NF && $1 != "#" { print $1, $3 }' <<<"$SCENARIOS"; }

# row NAME: its columns.
row() { awk -v name="$1" '$1 == name' <<<"$SCENARIOS"; }

parse_options() {
    while (($#)); do
        case $1 in
            --period | --repeat | --rounds | --hosts)
                [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || { usage >&2; exit 2; }
                printf -v "${1#--}" %s "$2"
                shift ;;
            --hold-max)
                hold_max=${2:?}
                shift ;;
            --keep)
                keep=$(mkdir -p "${2:?}" && cd "$2" && pwd) || exit 1
                shift ;;
            --load | --quick) printf -v "${1#--}" %s 1 ;;
            --list) list; exit 0 ;;
            --help | -h) usage; exit 0 ;;
            *)
                [[ -n $(row "$1") ]] || { usage >&2; exit 2; }
                only+=("$1") ;;
        esac
        shift
    done
}

cleanup() {
    ((!${#burners[@]})) || kill "${burners[@]}" 2>/dev/null
    ((!hosts)) || "$ptcluster" stop -d "$tmp/cluster" >/dev/null 2>&1
    rm -rf "$tmp"
}

prepare() {
    need python3 mpirun
    unset "${!OMPI_@}" "${!PMIX_@}" "${!PMI_@}"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1
    make_tmp
    trap cleanup EXIT
    mkdir "$tmp/files"
    if ((hosts)); then
        need munged slurmctld slurmd srun
        on_seconds=$run_seconds
        need_root
        "$ptcluster" start -d "$tmp/cluster" -n "$hosts" --isolated >"$tmp/start.log" 2>&1 ||
            skip "no isolated hosts here: $(tail -n 1 "$tmp/start.log")"
    fi
    if ((load)); then
        for _ in 1 2; do
            (while :; do :; done) &
            burners+=($!)
        done
    fi
}

# ---- one run ------------------------------------------------------------------------------

# run SPEC OUT COMMAND...: traced, in the directory of the program's files.
run() {
    local spec=$1 out=$2
    shift 2
    find "$tmp/files" -mindepth 1 -delete
    cd "$tmp/files" || return 1
    if ((hosts)); then
        on "$tmp/cluster" env ${environment:+"${environment[@]}"} \
            srun -N "$((nodes < hosts ? nodes : hosts))" -n "$nodes" \
            --ptrace="$spec,out=$out" "$@"
        return
    fi
    [[ $program != truth_mpi* ]] || set -- mpirun -n "$nodes" "$@"
    env ${environment:+"${environment[@]}"} timeout -k 2 "$run_seconds" "$top_builddir/watchdog/ptwatchd" \
        --preload "$top_builddir/preload/libparatrace.so" --spec "$spec" --out "$out" -- "$@"
}

# run_once NAME NODE: with that node held.  Open MPI's TCP transport now and then crashes in
# MPI_Init, untraced as well, when a message comes too early: then it is tried again.
run_once() {
    local try
    for try in 1 2 3; do
        run "discover=hold,throttle:$2,period=$period,hold-max=$hold_max$spec" "$work/run.$2" \
            "$top_builddir/tests/truth/$program" "$1" "$rounds" >"$work/log.$2" 2>&1 && return
        ((hosts)) && grep -q 'Segmentation fault' "$work/log.$2" || return 1
        rm -rf "$work/run.$2"
    done
    return 1
}

# run_all NAME: everybody held once, in $work/run.*; says what went wrong.
run_all() {
    local name=$1 node
    for node in none $(awk '$1 == "node" { print $2 }' "$work/truth"); do
        run_once "$name" "$node" || {
            printf 'run with %s held: %s\n' "$node" "$(tail -n 3 "$work/log.$node")"
            return 1
        }
        grep -q '^  "complete": true' "$work/run.$node/run.json" ||
            printf 'run with %s held is not complete: %s\n' "$node" \
                "$(grep -o '"host": .*' "$work/run.$node/run.json")"
        ! grep -q '"holds_timed_out": [1-9]' "$work/run.$node/run.json" ||
            printf 'holds of %s timed out\n' "$node"
    done
}

# ---- one scenario -----------------------------------------------------------------------------

# examine NAME: prints what is wrong; nothing if all is well.
examine() {
    local name=$1 check environment=() nodes program spec
    read -r _ program check _ spec environment < <(row "$name")
    spec=${spec#-}
    spec=${spec:+,$spec}
    IFS=, read -ra environment <<<"${environment#-}"
    mkdir "$work"
    "$top_builddir/tests/truth/$program" "$name" "$rounds" --edges >"$work/truth" || return
    nodes=$(grep -c '^node' "$work/truth")
    run_all "$name" || return
    "$top_builddir/hdf5store/ptmerge" -o "$work/store.h5" "$work"/run.* >"$work/merge.log" 2>&1 || {
        cat "$work/merge.log"
        return
    }
    [[ $check != merge ]] || return
    "$top_builddir/hdf5store/ptdump" --json "$work/store.h5" >"$work/dump.json"
    local options=()
    [[ $check != least ]] || options+=(--least)
    # Under Slurm a rank may leave MPI_Finalize before one on another host has come there.
    if ((hosts)) || [[ $check == io ]]; then options+=(--no-exit); fi
    python3 "$top_srcdir/tests/truth/compare.py" --period "$period" ${options:+"${options[@]}"} \
        "$work/truth" "$work/dump.json" 2>&1
}

chosen() {
    local name program check quickly
    if ((${#only[@]})); then
        printf '%s\n' "${only[@]}"
        return
    fi
    while read -r name program check quickly _; do
        [[ -n $name && $name != '#' ]] || continue
        [[ $quick != 1 || $quickly == yes ]] || continue
        ((!hosts)) || [[ $program == truth_mpi* ]] || continue
        printf '%s\n' "$name"
    done <<<"$SCENARIOS"
}

# prove WORK: the comparison finds what is missing and what is too much.
prove() {
    local compare=(python3 "$top_srcdir/tests/truth/compare.py")
    grep '^node' "$1/truth" >"$1/truth.none"
    sed -e 's/"waits"/"-"/g' -e 's/"barrier"/"-"/g' "$1/dump.json" >"$1/dump.none"
    [[ $("${compare[@]}" "$1/truth.none" "$1/dump.json") == extra* ]] ||
        fail 'the comparison does not see edges that are too many'
    [[ $("${compare[@]}" "$1/truth" "$1/dump.none") == missing* ]] ||
        fail 'the comparison does not see edges that are missing'
}

main() {
    local name turn work wrong failed=0 proven=0
    parse_options "$@"
    # The hosts share one kernel's CPUs.
    if ((hosts)) && [[ -z ${PT_ONE_CPU_GROUP:-} ]]; then
        exec "$top_srcdir/tools/one-cpu-group" "$0" "$@"
    fi
    prepare
    for ((turn = 1; turn <= repeat; turn++)); do
        for name in $(chosen); do
            work=$tmp/$name.$turn
            wrong=$(examine "$name")
            if [[ -z $wrong ]]; then
                printf '%-15s ok\n' "$name"
                [[ ! -e $work/dump.json ]] || ((proven++)) || prove "$work"
            else
                printf '%-15s WRONG %s\n' "$name" "${wrong//$'\n'/; }"
                failed=$((failed + 1))
                [[ -z $keep ]] || { rm -rf "$keep/$name.$turn" && cp -r "$work" "$keep/"; }
            fi
            rm -rf "$work"
        done
    done
    printf '%d wrong\n' "$failed"
    ((!failed))
}

main "$@"
