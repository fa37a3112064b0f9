# Sourced by quickstart and runtests: installs what is missing and builds in build/.
# Expects $top, the source directory.

# What a plain Debian 12 lacks.
PT_PACKAGES="
    autoconf automake pkg-config gcc libc6-dev make
    slurmctld slurmd slurm-client libslurm-dev munge libmunge-dev
    openmpi-bin libopenmpi-dev libhdf5-openmpi-dev hdf5-tools
    libconfuse-dev check
    python3 strace git sqlite3 gfortran iproute2 procps passwd util-linux e2fsprogs xfsprogs btrfs-progs
"

say() {
    printf '== %s\n' "$*"
}

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

missing_packages() {
    local package
    for package in $PT_PACKAGES; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed' ||
            printf ' %s' "$package"
    done
}

# apt-get as root; everybody else is told what to ask for.
install_packages() {
    local missing log
    command -v dpkg-query >/dev/null || die "this is not Debian; the packages needed are:" $PT_PACKAGES
    missing=$(missing_packages)
    [ -n "$missing" ] || return 0
    [ "$(id -u)" = 0 ] || die "packages are missing; ask for:$missing"
    say "installing:$missing"
    log=$(mktemp)
    if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y \
        --no-install-recommends $missing; } </dev/null >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        rm -f "$log"
        die "cannot install the packages"
    fi
    rm -f "$log"
}

# Runs a step of the build quietly; shows its output only when it fails.
build_step() {
    local log=$top/build/setup.log
    "$@" >"$log" 2>&1 && return 0
    tail -n 40 "$log" >&2
    die "failed: $*"
}

build() {
    mkdir -p "$top/build" || die "cannot make '$top/build'"
    cd "$top/build" || exit 1
    if [ ! -x "$top/configure" ]; then
        say "generating configure"
        build_step autoreconf -fi "$top"
    fi
    if [ ! -f Makefile ]; then
        say "configuring"
        build_step "$top/configure" "$@"
    fi
    say "building in build/"
    build_step make -j "$(nproc)"
    cd "$top" || exit 1
}
