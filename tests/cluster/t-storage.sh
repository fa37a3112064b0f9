#!/bin/bash
# The three storage systems come up with the rates they promise, survive a
# killed 'up', and go without a trace.
# shellcheck source=../lib.sh
. "$(dirname "$0")/../lib.sh"

need losetup mkfs.ext4 mkfs.xfs mkfs.btrfs findmnt dd
need_root
storage=$top_srcdir/bench/storage
make_tmp
cleanup() {
    "$storage" down --dir "$tmp/s" 2>/dev/null
    rm -rf --one-file-system "$tmp"
}
trap cleanup EXIT

message=$("$storage" up --dir "$tmp/s" 2>&1) || {
    [[ $message != *blkio.throttle* ]] || skip "$message"
    [[ -w /dev/loop-control ]] || skip 'no loop devices'
    fail "up: $message"
}

# elapsed COMMAND...: milliseconds it took.
elapsed() {
    local start=${EPOCHREALTIME/./}
    "$@" 2>/dev/null || fail "command: $*"
    echo $(((${EPOCHREALTIME/./} - start) / 1000))
}

# rate_holds WHAT UNITS PER-SECOND MILLISECONDS: within a quarter of the limit
# from above (the throttle grants a first burst), and half of it from below
# (the machine may be busy).
rate_holds() {
    local rate=$(($2 * 1000 / $4))
    printf '%s: %d/s, limit %d/s\n' "$1" "$rate" "$3"
    ((rate <= $3 * 5 / 4 && rate >= $3 / 2)) || fail "$1 runs at $rate/s, the limit is $3/s"
}

write_file() { dd if=/dev/zero of="$1" bs="$2" count="$3" oflag=direct conv=notrunc; }
read_file() { dd if="$1" of=/dev/null bs="$2" count="$3" iflag=direct; }

# NAME READ-MIB WRITE-MIB READS WRITES, as the table says, each for a second or two.
check() {
    local file=$tmp/s/$1/file
    rate_holds "$1 write MiB" $(($3 * 2)) "$3" "$(elapsed write_file "$file" 1M $(($3 * 2)))"
    rate_holds "$1 read MiB" $(($2 * 3 / 2)) "$2" "$(elapsed read_file "$file" 1M $(($2 * 3 / 2)))"
    if (($5 <= 1000)); then   # beyond, a single dd may be what is too slow
        rate_holds "$1 writes" $(($5 * 2)) "$5" "$(elapsed write_file "$file" 4k $(($5 * 2)))"
        rate_holds "$1 reads" "$4" "$4" "$(elapsed read_file "$file" 4k "$4")"
    fi
}
check ext4 60 40 600 400
check xfs 200 150 4000 3000
check btrfs 120 80 240 160

[[ $(stat -c %a "$tmp/s/xfs") == 1777 ]] || fail 'closed to ordinary users'
expect 'status' "$storage" status --dir "$tmp/s" >/dev/null
expect 'up again' "$storage" up --dir "$tmp/s" >/dev/null
[[ ! -e $tmp/s/ext4/file ]] || fail 'up again kept the old files'
expect 'down' "$storage" down --dir "$tmp/s"

# Killed on its way.
for delay in 0.1 0.3; do
    "$storage" up --dir "$tmp/s" >/dev/null 2>&1 &
    sleep "$delay"
    kill -KILL $! 2>/dev/null
    wait $! 2>/dev/null
    sleep 0.3   # what it had started last
    expect 'up after a killed up' "$storage" up --dir "$tmp/s" >/dev/null
    expect 'down' "$storage" down --dir "$tmp/s"
done

images=/dev/shm/ptstorage-$(printf %s "$tmp/s" | cksum | cut -d' ' -f1)
[[ ! -e $tmp/s && ! -e $images ]] || fail 'files left'
[[ $(losetup -a) != *"$images"* ]] || fail 'loop devices left'
! grep -q " $tmp/s" /proc/mounts || fail 'mounts left'

# Not ours.
mkdir "$tmp/full" && touch "$tmp/full/file"
refuse 'foreign directory' 'other files' "$storage" up --dir "$tmp/full"
