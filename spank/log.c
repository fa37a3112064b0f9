#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <slurm/spank.h>

#include "spank/log.h"

static enum pt_log_level max_level = PT_LOG_INFO;

void pt_log_set_level(enum pt_log_level level)
{
    max_level = level;
}

void pt_log(enum pt_log_level level, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    if (level > max_level)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    switch (level) {
    case PT_LOG_ERROR:
        slurm_error("paratrace: %s", text);
        break;
    case PT_LOG_INFO:
        slurm_info("paratrace: %s", text);
        break;
    case PT_LOG_DEBUG:
        slurm_debug("paratrace: %s", text);
        break;
    }
}
