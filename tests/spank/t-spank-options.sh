#!/bin/bash
#
# --ptrace on the way from the command line to a step: what is refused before
# anything is submitted, and which of several requests wins.
set -u

ptcluster=${top_builddir:?}/cluster/ptcluster
skip() { echo "skipped: $*"; exit 77; }
command -v srun >/dev/null || skip "no Slurm"
[ -x "$ptcluster" ] || skip "no ptcluster"
[ -e "$top_builddir/spank/paratrace.so" ] || skip "the plugin is not built"

work=$(mktemp -d "${TMPDIR:-/tmp}/pt-options.XXXXXX") || exit 99
trap '"$ptcluster" stop -d "$work/cluster" >/dev/null 2>&1; rm -rf "$work"' EXIT
trap 'exit 99' INT TERM
"$ptcluster" start -d "$work/cluster" -n 2 >"$work/start.log" 2>&1 ||
    { cat "$work/start.log"; skip "no cluster"; }
eval "$("$ptcluster" env -d "$work/cluster")"
cd "$work" || exit 99

failures=0
check() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@"; then echo "ok - $what"; else echo "FAILED - $what"; ((failures++)); fi
}
has() { grep -qF -- "$2" "$1" || { echo "no '$2' in:"; cat "$1"; return 1; }; }
env_name=SLURM_SPANK__SLURM_SPANK_OPTION_paratrace_ptrace
unset "$env_name" LD_PRELOAD PARATRACE_SOCKET PARATRACE_WATCHDOG

# Refused: exit status not 0, the reason on stderr, no job.
refused() { # REASON COMMAND...
    local reason=$1
    shift
    "$@" >out 2>err && { echo "accepted: $*"; return 1; }
    has err "$reason" && [ ! -s out ] && ! scontrol -o show job 2>/dev/null | grep JobId=
}
printf '#!/bin/sh\n#SBATCH --ptrace=throttle:x\ntrue\n' >bad.sh
check "srun refuses an unknown item" \
    refused "unknown item 'perod=3': valid items are on, off, throttle:none|K|auto, period=P" \
    srun --ptrace=perod=3 true
check "srun refuses a wrong value" \
    refused "period=0: must be a whole number from 1 to" srun --ptrace=on,period=0 true
check "sbatch refuses a wrong value" \
    refused "buffer=1: must be a size" sbatch --ptrace=buffer=1 --wrap true
check "sbatch refuses a wrong directive of the script" \
    refused "throttle:x: must be none, auto" sbatch bad.sh
check "salloc refuses a wrong value" \
    refused "out=%z: unknown pattern" salloc --ptrace=out=%z true
check "srun refuses a wrong default of the user" \
    refused "unknown item 'bad'" env "$env_name=bad" srun true
check "srun --help explains the option" \
    eval 'srun --help | grep -q -e "--ptrace=SPEC"'

# Which request a step gets: the run directory's name tells.
task='[ -z "${PARATRACE_SOCKET:-}" ] || echo traced'
gets() { # TRACED|NOT DIR COMMAND...
    local expected=$1 dir=$2
    shift 2
    rm -rf "$dir" out
    "$@" >out 2>err || { echo "failed: $*"; cat err; return 1; }
    if [ "$expected" = traced ]; then has out traced && [ -d "$dir" ]; else [ ! -s out ]; fi
}
batch() { # OPTIONS... : runs the script, its output becomes ours
    sbatch -W -o batch.out "$@" >/dev/null && cat batch.out
}
printf '#!/bin/sh\n#SBATCH --ptrace=out=directive\nsrun -n1 /bin/sh -c %q\n' "$task" >directive.sh
printf '#!/bin/sh\nsrun -n1 /bin/sh -c %q\n' "$task" >plain.sh
printf '#!/bin/sh\nsrun -n1 --ptrace=off /bin/sh -c %q\n' "$task" >inner-off.sh
printf '#!/bin/sh\n%s\ncat /dev/null >file\n' "$task" >no-srun.sh
printf '#!/bin/sh\n%s\n' "$task" >shell.sh
check "no request, no trace" gets not - srun sh -c "$task"
check "srun --ptrace" gets traced a srun --ptrace=out=a sh -c "$task"
check "srun --ptrace=off" gets not - srun --ptrace=off sh -c "$task"
check "the last of two wins" gets traced b srun --ptrace=out=a --ptrace=out=b sh -c "$task"
check "the user's default" gets traced c env "$env_name=out=c" srun sh -c "$task"
check "the command line beats it" gets not - env "$env_name=out=c" srun --ptrace=off sh -c "$task"
check "sbatch --ptrace reaches the step" gets traced d batch --ptrace=out=d plain.sh
check "#SBATCH --ptrace reaches the step" gets traced directive batch directive.sh
check "sbatch --ptrace beats the directive" gets not - batch --ptrace=off directive.sh
check "srun --ptrace=off in a traced job" gets not - batch --ptrace=out=d inner-off.sh
check "sbatch --export=NONE" gets traced e batch --export=NONE --ptrace=out=e plain.sh
check "salloc --ptrace" gets traced f salloc -Q --ptrace=out=f srun sh -c "$task"
check "a script without srun" gets traced g batch --ptrace=out=g no-srun.sh
check "of which nothing but its shell ran leaves no run" eval '! batch --ptrace=out=h shell.sh || [ ! -e h -a ! -e h.batch ]'
check "patterns of an array" gets traced "$(($(sbatch --parsable -W --wrap true) + 1)).5" \
    batch --array=5 --ptrace=out=%A.%a plain.sh

# The site's file.
plugstack=$work/cluster/etc/plugstack.conf
cp "$plugstack" plugstack.saved
use_conf() { # LINES
    printf '%s\n' "$1" >site.conf
    sed "s|\$| conf=$work/site.conf|" plugstack.saved >"$plugstack"
}
use_conf 'default_spec = "out=site"'
check "the site's default" gets traced site srun sh -c "$task"
check "the user beats it" gets not - srun --ptrace=off sh -c "$task"
use_conf 'output = "elsewhere.%s"'
check "the site's output" gets traced elsewhere.0 srun --ptrace=on sh -c "$task"
check "and tells where it is" has err 'elsewhere.0: '
use_conf 'quiet = true'
check "quiet traces" gets traced q srun --ptrace=out=q sh -c "$task"
check "without a word" eval '! grep paratrace err'
use_conf 'perod = 3'
check "a wrong file does not stop a step" gets not - srun sh -c "$task"
check "nor a request" gets not - srun --ptrace=on sh -c "$task"
check "which names the line" has err "site.conf:1: directive 'perod': unknown"

echo "$failures failed"
[ "$failures" -eq 0 ]
