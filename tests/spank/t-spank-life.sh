#!/bin/bash
#
# The watchdogs of traced steps where Slurm knows processes by their parents.

# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
start_cluster -n 2

tracking=linuxproc with_limit=yes
# shellcheck source=life.sh
. "$top_srcdir/tests/spank/life.sh"

echo '# what the plugin shows of itself, and has in slurmd'
plugin=$top_builddir/spank/paratrace.so
symbols=$(nm -D --defined-only "$plugin" | awk '{print $3}' | sort | xargs)
check "only what Slurm calls is exported" same "$symbols" "$(printf '%s\n' plugin_name plugin_type \
    plugin_version spank_plugin_version slurm_spank_{exit,init,init_post_opt,local_user_init,task_exit,task_init,user_init} | sort | xargs)"
check "it makes no threads" eval '! nm -D --undefined-only "$plugin" | grep -E "pthread_create|thrd_create|atexit"'
report
