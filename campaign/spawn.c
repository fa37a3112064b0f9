#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "campaign/spawn.h"

#define OUTPUT_MAX ((size_t)256 << 20)

/* In the child.  Reports errno through `report` and ends, or becomes the program. */
static void become(char *const argv[], const struct spawn *how, int out, int report)
{
    int fd = out, code;

    if (how->cwd && chdir(how->cwd))
        goto fail;
    if (how->out)
        fd = open(how->out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if ((how->out && fd < 0) || (fd >= 0 && dup2(fd, STDOUT_FILENO) < 0))
        goto fail;
    if (how->env)
        environ = how->env;
    execvp(argv[0], argv);
fail:
    code = errno;
    if (write(report, &code, sizeof(code)) < 0)
        _exit(126);
    _exit(127);
}

static char *read_output(int fd)
{
    char *text = xcalloc(1, 1);
    size_t len = 0, size = 1;

    for (;;) {
        char buf[4096];
        ssize_t n = read(fd, buf, sizeof(buf));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return text;
        if (len > OUTPUT_MAX)
            continue;
        if (len + (size_t)n >= size) {
            size = (len + (size_t)n + 1) * 2;
            text = xrealloc(text, size, 1);
        }
        memcpy(text + len, buf, (size_t)n);
        len += (size_t)n;
        text[len] = '\0';
    }
}

static void close_pair(int fd[2])
{
    for (int i = 0; i < 2; i++) {
        if (fd[i] >= 0)
            close(fd[i]);
        fd[i] = -1;
    }
}

int spawn_run(char *const argv[], const struct spawn *how, char **text, struct pt_err *err)
{
    static const struct spawn nothing_special;
    int out[2] = {-1, -1}, report[2] = {-1, -1}, status = -1, code = 0;
    pid_t pid = -1;

    if (!how)
        how = &nothing_special;
    fflush(NULL);
    if (pipe2(report, O_CLOEXEC) == 0 && (!text || pipe2(out, O_CLOEXEC) == 0))
        pid = fork();
    if (pid < 0) {
        close_pair(report);
        close_pair(out);
        return pt_err_errno(err, "cannot run '%s'", argv[0]);
    }
    if (pid == 0)
        become(argv, how, out[1], report[1]);
    close(report[1]);
    report[1] = -1;
    if (out[1] >= 0)
        close(out[1]);
    out[1] = -1;
    ssize_t n;
    while ((n = read(report[0], &code, sizeof(code))) < 0 && errno == EINTR)
        ;
    if (text)
        *text = read_output(out[0]);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    close_pair(report);
    close_pair(out);
    if (n == (ssize_t)sizeof(code)) {
        if (text) {
            free(*text);
            *text = NULL;
        }
        errno = code;
        return pt_err_errno(err, "cannot run '%s'", argv[0]);
    }
    return status;
}

char *spawn_self(struct pt_err *err)
{
    char buf[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", buf, sizeof(buf) - 1);

    if (n < 0) {
        pt_err_errno(err, "cannot find out the name of our own program");
        return NULL;
    }
    buf[n] = '\0';
    return xstrdup(buf);
}

static bool executable(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

char *spawn_find(const char *program, struct pt_err *err)
{
    char *self = spawn_self(NULL);
    const char *slash = self ? strrchr(self, '/') : NULL, *path = getenv("PATH");
    char *found = NULL, *absolute;

    if (slash)
        found = xasprintf("%.*s/%s", (int)(slash - self), self, program);
    free(self);
    for (const char *p = path ? path : ""; !(found && executable(found)) && *p;) {
        size_t n = strcspn(p, ":");
        free(found);
        found = xasprintf("%.*s%s%s", (int)n, p, n ? "/" : "./", program);
        p += n + (p[n] == ':');
    }
    if (found && executable(found)) {
        if (*found == '/')
            return found;
        absolute = realpath(found, NULL);
        free(found);
        if (absolute)
            return absolute;
    } else {
        free(found);
    }
    pt_err_set(err,
               "cannot find program '%s': it is neither installed beside ptcampaign nor in PATH",
               program);
    return NULL;
}

const char *spawn_describe(int status, char buf[64])
{
    if (WIFSIGNALED(status))
        snprintf(buf, 64, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(buf, 64, "exit status %d", WEXITSTATUS(status));
    return buf;
}
