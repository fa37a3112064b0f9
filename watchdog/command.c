#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/env.h"
#include "watchdog/watchdog.h"

pid_t wd_command_start(struct wd *wd, struct pt_err *err)
{
    pid_t pid = fork();
    if (pid < 0)
        return pt_err_errno(err, "cannot fork");
    if (pid)
        return pid;

    const char *had = getenv("LD_PRELOAD"), *asan = getenv("ASAN_OPTIONS");
    char *preload, *asan_options;
    char pid_text[16];
    sigset_t none;
    sigemptyset(&none);
    snprintf(pid_text, sizeof(pid_text), "%d", getppid());
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (wd->files.rlim_max)
        setrlimit(RLIMIT_NOFILE, &wd->files);
    if (asprintf(&preload, "%s%s%s", had ? had : "", had && *had ? ":" : "", wd->opt.preload) < 0 ||
        asprintf(&asan_options, "%s%s" PT_ASAN_OPTION, asan ? asan : "", asan ? ":" : "") < 0 ||
        setenv("ASAN_OPTIONS", asan_options, 1) || setenv("LD_PRELOAD", preload, 1) ||
        setenv(PT_ENV_SOCKET, wd->opt.socket, 1) || setenv(PT_ENV_WATCHDOG, pid_text, 1))
        _exit(127);
    execvp(wd->opt.command[0], wd->opt.command);
    fprintf(stderr, "ptwatchd: cannot run '%s': %m\n", wd->opt.command[0]);
    _exit(127);
}
