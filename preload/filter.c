#include "config.h"

#include <string.h>

#include "common/glob.h"
#include "preload/tracer.h"

/*
 * The first filter that matches decides: "-GLOB" no, "+GLOB" and "!GLOB" yes.  A
 * name that matches none is traced unless there is a "+GLOB": then only those are.
 */
int pt_filter_path(const char *path)
{
    const struct pt_shm *shm = pt_process_shm();
    int only = 0;
    if (!shm || !path)
        return 0;
    for (const char *f = shm->filters; *f; f += strlen(f) + 1) {
        if (pt_glob_match(f + 1, path))
            return *f != '-';
        only |= *f == '+';
    }
    return !only;
}
