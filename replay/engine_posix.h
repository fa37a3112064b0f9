/*
 * The functions of engine_posix, by family.
 */
#ifndef PT_REPLAY_ENGINE_POSIX_H
#define PT_REPLAY_ENGINE_POSIX_H

#include "replay/engine.h"

/* engine_data.c: on descriptors */
engine_fn posix_close, posix_dup, posix_read, posix_write, posix_pread, posix_pwrite, posix_seek;
engine_fn posix_fsync, posix_fdatasync, posix_sync, posix_syncfs, posix_syncrange, posix_truncate;
engine_fn posix_allocate, posix_advise, posix_readahead, posix_sendfile, posix_copyrange;
engine_fn posix_mmap, posix_munmap, posix_msync;
engine_fn posix_fstat, posix_fstatfs, posix_fchmod, posix_futime, posix_fattribute;

/* engine_name.c: on names */
engine_fn posix_open, posix_unlink, posix_unlinkat, posix_remove, posix_rename, posix_link;
engine_fn posix_symlink, posix_mkdir, posix_rmdir, posix_truncatename, posix_stat, posix_lstat;
engine_fn posix_statfs, posix_access, posix_readlink, posix_chmod, posix_utime, posix_attribute;

/* engine_stream.c: streams and directories */
engine_fn posix_fopen, posix_fread, posix_fwrite, posix_fseek, posix_ftell, posix_fflush;
engine_fn posix_setvbuf, posix_opendir, posix_readdir, posix_rewinddir, posix_scandir;

#endif
