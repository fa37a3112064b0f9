# Checks for the packages that paratrace is built on.  A missing one does not
# stop configure at once: all of them are collected, so that one run tells the
# user everything there is to install, by the name of the Debian package.

# PT_MISSING(WHAT, DEBIAN-PACKAGE)
AC_DEFUN([PT_MISSING], [
    AC_MSG_WARN([$1 not found: install the Debian package '$2'])
    pt_missing="$pt_missing $2"
])

# PT_CHECK_LAYOUT: a linker that cannot add to its own script makes a tracer that starts slower.
AC_DEFUN([PT_CHECK_LAYOUT], [
    AC_MSG_CHECKING([whether the linker takes preload/layout.ld])
    pt_save_LDFLAGS=$LDFLAGS
    LDFLAGS="$LDFLAGS -shared -nostartfiles -Wl,-T,$srcdir/preload/layout.ld"
    AC_LINK_IFELSE([AC_LANG_SOURCE([[int pt_layout;]])],
        [LAYOUT_LDFLAGS='-Wl,-T,$(srcdir)/preload/layout.ld'
         AC_MSG_RESULT([yes])],
        [LAYOUT_LDFLAGS=
         AC_MSG_RESULT([no])])
    LDFLAGS=$pt_save_LDFLAGS
    AC_SUBST([LAYOUT_LDFLAGS])
])

# PT_CHECK_PKG(VARIABLE, PKG-CONFIG-NAME, DEBIAN-PACKAGE)
AC_DEFUN([PT_CHECK_PKG], [
    PKG_CHECK_MODULES([$1], [$2], [], [PT_MISSING([$2], [$3])])
])

# PT_CHECK_SLURM: only the headers are needed, a SPANK plugin is not linked
# against Slurm.  A plugin is accepted only by the Slurm release it was built
# for, so say which one that is, and warn if the programs are of another.
AC_DEFUN([PT_CHECK_SLURM], [
    AC_ARG_WITH([slurm],
        [AS_HELP_STRING([--with-slurm=DIR], [Slurm is installed under DIR])],
        [AS_CASE([$with_slurm], [yes|no], [],
            [SLURM_CFLAGS="-I$with_slurm/include"])])
    AC_SUBST([SLURM_CFLAGS])
    pt_save_CPPFLAGS=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS $SLURM_CFLAGS"
    AC_CHECK_HEADER([slurm/spank.h], [
        AC_MSG_CHECKING([for the Slurm release])
        AC_COMPUTE_INT([pt_slurm], [SLURM_VERSION_NUMBER],
            [@%:@include <slurm/slurm_version.h>], [pt_slurm=0])
        SLURM_RELEASE=`printf '%d.%02d' $((pt_slurm >> 16 & 255)) $((pt_slurm >> 8 & 255))`
        AC_MSG_RESULT([$SLURM_RELEASE])
        AS_IF([test "$pt_slurm" -lt $((0x150800))],
            [AC_MSG_ERROR([Slurm $SLURM_RELEASE is too old: 21.08 or newer is needed])],
            [test "$pt_slurm" -ge $((0x1a0000))],
            [AC_MSG_WARN([Slurm $SLURM_RELEASE is newer than those this was written for (21.08 to 25.11)])])
        AC_DEFINE_UNQUOTED([PT_SLURM_RELEASE], ["$SLURM_RELEASE"],
            [Slurm release that the SPANK plugin is built for])
        PT_CHECK_SLURM_PROGRAMS
        PT_CHECK_SLURM_API
    ], [PT_MISSING([slurm/spank.h], [libslurm-dev])])
    CPPFLAGS=$pt_save_CPPFLAGS
])

# PT_CHECK_SLURM_PROGRAMS: the plugin would not be loaded by those of another release.
AC_DEFUN([PT_CHECK_SLURM_PROGRAMS], [
    AC_PATH_PROG([pt_slurmd], [slurmd], [],
        [$with_slurm/sbin$PATH_SEPARATOR$PATH$PATH_SEPARATOR/usr/sbin])
    AS_IF([test -n "$pt_slurmd"], [
        pt_installed=`$pt_slurmd -V 2>/dev/null | sed -n 's/^slurm[[^0-9]]*\(@<:@0-9@:>@*\.@<:@0-9@:>@*\).*/\1/p'`
        AS_IF([test -n "$pt_installed" && test "$pt_installed" != "$SLURM_RELEASE"],
            [AC_MSG_WARN([the headers are those of Slurm $SLURM_RELEASE, but $pt_slurmd is of $pt_installed, which will not load the plugin])])
    ])
])

# PT_CHECK_SLURM_API: what differs between releases in what we call.
AC_DEFUN([PT_CHECK_SLURM_API], [
    AC_MSG_CHECKING([whether slurm_get_job_steps takes a step's id as one])
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([@%:@include <slurm/slurm.h>], [
            slurm_step_id_t id = {0};
            job_step_info_response_msg_t *steps;
            return slurm_get_job_steps(&id, &steps, SHOW_ALL);
        ])],
        [AC_MSG_RESULT([yes])
         AC_DEFINE([PT_SLURM_STEP_ID_API], [1], [slurm_get_job_steps takes a slurm_step_id_t])],
        [AC_MSG_RESULT([no])])
])

# PT_CHECK_MPI: the compiler wrapper tells the flags, so that only the MPI
# programs are built with them.
AC_DEFUN([PT_CHECK_MPI], [
    AC_ARG_VAR([MPICC], [Open MPI's compiler wrapper])
    AC_CHECK_PROGS([MPICC], [mpicc.openmpi mpicc])
    AC_SUBST([MPI_CFLAGS])
    AC_SUBST([MPI_LIBS])
    AS_IF([test -n "$MPICC" && MPI_CFLAGS=`$MPICC --showme:compile 2>/dev/null`],
        [MPI_LIBS=`$MPICC --showme:link`],
        [PT_MISSING([Open MPI], [libopenmpi-dev])])
])

# PT_CHECK_HDF5: the MPI-parallel flavour where there is one.
AC_DEFUN([PT_CHECK_HDF5], [
    PKG_CHECK_MODULES([HDF5], [hdf5-openmpi], [],
        [PKG_CHECK_MODULES([HDF5], [hdf5-mpi], [],
            [PKG_CHECK_MODULES([HDF5], [hdf5], [],
                [PKG_CHECK_MODULES([HDF5], [hdf5-serial], [],
                    [PT_MISSING([HDF5], [libhdf5-openmpi-dev])])])])])
])

# PT_CHECK_MUNGE: may be left out; the watchdogs then know each other by the step's
# secret alone.
AC_DEFUN([PT_CHECK_MUNGE], [
    AC_ARG_WITH([munge],
        [AS_HELP_STRING([--without-munge], [do not use munge between the hosts of a step])],
        [], [with_munge=check])
    AS_IF([test "x$with_munge" != xno], [
        PKG_CHECK_MODULES([MUNGE], [munge],
            [AC_DEFINE([HAVE_MUNGE], [1], [libmunge is there])],
            [AS_IF([test "x$with_munge" = xyes], [PT_MISSING([munge], [libmunge-dev])],
                [AC_MSG_WARN([no munge (Debian package libmunge-dev): built without it])])])
    ])
])

AC_DEFUN([PT_REPORT_MISSING], [
    AS_IF([test -n "$pt_missing"],
        [AC_MSG_ERROR([packages are missing; on Debian: apt-get install$pt_missing])])
])

# PT_WARNINGS: --enable-werror is what CI uses.
AC_DEFUN([PT_WARNINGS], [
    AC_ARG_ENABLE([werror],
        [AS_HELP_STRING([--enable-werror], [treat compiler warnings as errors])])
    WARN_CFLAGS="-Wall -Wextra -Wmissing-prototypes -Wno-unused-parameter"
    AS_IF([test "x$enable_werror" = xyes], [WARN_CFLAGS="$WARN_CFLAGS -Werror"])
    AC_SUBST([WARN_CFLAGS])
])
