/*
 * Other programs: what of them will not be seen is said before they run.
 */
#include "config.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/env.h"
#include "preload/lineage.h"
#include "preload/passed.h"
#include "preload/process.h"
#include "preload/sandbox.h"
#include "preload/sys.h"
#include "preload/tracer.h"

/* ---- this program ----------------------------------------------------------------------- */

/* Where the program lies in memory, from where the kernel says its table is; NULL: unknown. */
static const char *image(const Elf64_Phdr *part, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (part[i].p_type == PT_PHDR)
            return (const char *)part - part[i].p_vaddr;
    return NULL;
}

#define NOTE_WORDS(bytes) (((size_t)(bytes) + 3) & ~(size_t)3)

static int has_note(const char *at, size_t bytes, const char *owner, uint32_t type)
{
    Elf64_Nhdr note;
    size_t len = strlen(owner) + 1;
    while (bytes >= sizeof(note)) {
        memcpy(&note, at, sizeof(note));
        size_t whole = sizeof(note) + NOTE_WORDS(note.n_namesz) + NOTE_WORDS(note.n_descsz);
        if (whole > bytes)
            return 0;
        if (note.n_type == type && note.n_namesz >= len && !memcmp(at + sizeof(note), owner, len))
            return 1;
        at += whole;
        bytes -= whole;
    }
    return 0;
}

#define GO_BUILD_ID 4

/* Go's library makes all system calls by itself, also where the program is a dynamic one. */
static int is_go(void)
{
    const Elf64_Phdr *part = (const Elf64_Phdr *)getauxval(AT_PHDR);
    unsigned n = (unsigned)getauxval(AT_PHNUM);
    const char *base = part ? image(part, n) : NULL;
    for (unsigned i = 0; base && i < n; i++)
        if (part[i].p_type == PT_NOTE &&
            has_note(base + part[i].p_vaddr, part[i].p_memsz, "Go", GO_BUILD_ID))
            return 1;
    return 0;
}

void pt_exec_say_program(struct pt_thread *t)
{
    const char *path = (const char *)getauxval(AT_EXECFN);
    if (t->state != PT_THREAD_READY)
        return;
    if (is_go())
        pt_record_blind(t, "Go program", path ? path : "");
    if (pt_real_is_in_front())
        pt_record_blind(t, "libc preloaded in front of the tracer", path ? path : "");
}

/* ---- can a program be traced? ------------------------------------------------------------- */

#define START_BYTES 1024 /* linkers put the table right behind the head */

/* An ELF file without an interpreter is static: nothing can be preloaded. */
static int is_static(int fd, const char *start, long have)
{
    Elf64_Ehdr head;
    Elf64_Phdr part;

    if (have < (long)sizeof(head))
        return 0;
    memcpy(&head, start, sizeof(head));
    if (memcmp(head.e_ident, ELFMAG, SELFMAG))
        return 0;
    if (head.e_ident[EI_CLASS] != ELFCLASS64)
        return 1; /* a 32-bit program cannot load us either */
    for (int i = 0; i < head.e_phnum && i < 64; i++) {
        uint64_t at = head.e_phoff + (uint64_t)i * head.e_phentsize;
        if (at <= START_BYTES && at + sizeof(part) <= (uint64_t)have)
            memcpy(&part, start + at, sizeof(part));
        else if (pt_sys(SYS_pread64, fd, &part, sizeof(part), at) != sizeof(part))
            return 0;
        if (part.p_type == PT_INTERP)
            return 0;
    }
    return 1;
}

/* The program that a script says it is for; NULL: it is none. */
static char *interpreter(char *start, long have)
{
    char *name = start + 2;
    if (have < 3 || memcmp(start, "#!", 2))
        return NULL;
    start[have < START_BYTES ? have : START_BYTES - 1] = 0;
    name += strspn(name, " \t");
    name[strcspn(name, " \t\n")] = 0;
    return name;
}

static int changes_user(const struct stat *st)
{
    return (st->st_mode & S_ISUID && st->st_uid != (uid_t)pt_sys(SYS_geteuid)) ||
           (st->st_mode & S_ISGID && st->st_gid != (gid_t)pt_sys(SYS_getegid));
}

/* Does that environment lead to us? */
static int is_preloaded(char *const envp[])
{
    static const char preload[] = "LD_PRELOAD=", socket[] = PT_ENV_SOCKET "=";
    int preloads = 0, names_socket = 0;
    for (char *const *e = envp; pt_is_address(e) && pt_is_address(*e); e++) {
        if (!strncmp(*e, preload, sizeof(preload) - 1))
            preloads = strstr(*e, "/libparatrace") != NULL;
        else if (!strncmp(*e, socket, sizeof(socket) - 1))
            names_socket = 1;
    }
    return preloads && names_socket;
}

/*
 * A program file, and what its first bytes say.  To open and read it takes longer than all else
 * here, and a build executes the same few thousands of times: so those that are neither static nor
 * scripts are known to all processes of the step.
 */
struct program {
    struct stat st;
    int is_static;
    char *interpreter; /* of a script, in `start`; NULL: it is none */
    char start[START_BYTES];
};

/* Never 0.  A file that is changed gets another one. */
static uint64_t program_key(const struct stat *st)
{
    const uint64_t parts[] = {st->st_dev, st->st_ino, (uint64_t)st->st_size,
                              (uint64_t)st->st_ctim.tv_sec, (uint64_t)st->st_ctim.tv_nsec};
    uint64_t key = 0;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        key = (key ^ parts[i]) * UINT64_C(0x9e3779b97f4a7c15);
        key ^= key >> 32;
    }
    return key | 1;
}

static void read_start(struct program *p, int dir, const char *path)
{
    long fd = pt_sys(SYS_openat, dir, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    long have = pt_sys(SYS_pread64, fd, p->start, sizeof(p->start), 0);
    p->is_static = is_static((int)fd, p->start, have);
    p->interpreter = interpreter(p->start, have);
    pt_sys(SYS_close, fd);
}

/* 0 if there is no such program. */
static int find_program(struct program *p, int dir, const char *path)
{
    p->is_static = 0;
    p->interpreter = NULL;
    if (pt_sys(SYS_newfstatat, dir, path, &p->st, 0) < 0)
        return 0;
    return S_ISREG(p->st.st_mode) && p->st.st_mode & 0111;
}

static void look_into(struct program *p, struct pt_memory *m, int dir, const char *path)
{
    uint64_t key = program_key(&p->st);
    _Atomic uint64_t *known = &m->known_programs[(key >> 32) % PT_KNOWN_PROGRAMS];
    if (atomic_load_explicit(known, memory_order_relaxed) == key)
        return;
    read_start(p, dir, path);
    if (!p->is_static && !p->interpreter)
        atomic_store_explicit(known, key, memory_order_relaxed);
}

/* Why that program, which is no script, will not be seen, or NULL. */
static const char *why_blind(const struct program *p, char *const envp[])
{
    if (changes_user(&p->st))
        return "set-user-id program";
    if (p->is_static)
        return "static program";
    if (!is_preloaded(envp))
        return "program without our environment";
    if (!pt_process_is_found())
        return "program that cannot find the watchdog";
    return NULL;
}

/*
 * What a child of vfork has found out while its parent had no ring yet: the parent says it, which
 * will wait for the child, if nothing else.
 */
static PT_NEAR const char *unsaid; /* the reason; NULL: nothing */
static PT_FAR char unsaid_path[256];

static void say(const char *reason, const char *path)
{
    struct pt_thread *t = &pt_self;
    if (pt_vforked && t->state == PT_THREAD_NEW) {
        size_t n = strnlen(path, sizeof(unsaid_path) - 1);
        memcpy(unsaid_path, path, n);
        unsaid_path[n] = 0;
        unsaid = reason;
        return;
    }
    if (t->state == PT_THREAD_NEW) /* a fork that only calls exec */
        pt_thread_begin(t);
    if (t->state == PT_THREAD_READY)
        pt_record_blind(t, reason, path);
}

void pt_exec_say_rest(struct pt_thread *t)
{
    const char *reason = unsaid;
    if (!reason)
        return;
    unsaid = NULL;
    pt_record_blind(t, reason, unsaid_path);
}

#define MAX_SCRIPTS 4 /* for one another, as many as the kernel follows */

enum sight { NOT_THERE, UNSEEN, SEEN };

/* Is there such a program, and will it be seen?  Says why not. */
static enum sight look_deeper(int dir, const char *path, char *const envp[], int depth)
{
    struct program p;
    struct pt_memory *m = pt_process_memory();
    if (pt_sandboxed)
        return UNSEEN;
    if (!find_program(&p, dir, path))
        return NOT_THERE;
    if (!m)
        return UNSEEN;
    look_into(&p, m, dir, path);
    if (p.interpreter) {
        int seen =
            depth < MAX_SCRIPTS && look_deeper(AT_FDCWD, p.interpreter, envp, depth + 1) == SEEN;
        return seen ? SEEN : UNSEEN;
    }
    const char *reason = why_blind(&p, envp);
    if (reason)
        say(reason, path);
    return reason ? UNSEEN : SEEN;
}

static enum sight look_at(int dir, const char *path, char *const envp[])
{
    return look_deeper(dir, path, envp, 0);
}

/* The same for a name that is looked for in PATH. */
static enum sight look_for(const char *name, char *const envp[])
{
    char path[PATH_MAX];
    const char *dir = getenv("PATH");
    enum sight sight;
    if (strchr(name, '/') || !dir)
        return look_at(AT_FDCWD, name, envp);
    for (size_t n = strlen(name), len; *dir; dir += len + (dir[len] == ':')) {
        len = strcspn(dir, ":");
        if (len + n + 2 > sizeof(path))
            continue;
        memcpy(path, dir, len);
        path[len] = '/';
        memcpy(path + len + 1, name, n + 1);
        if ((sight = look_at(AT_FDCWD, path, envp)) != NOT_THERE)
            return sight;
    }
    return NOT_THERE;
}

/* ---- exec ------------------------------------------------------------------------------------ */

#define REAL_CALL(rtype, name, params)  \
    static PT_NEAR rtype(*real) params; \
    if (!real)                          \
    real = (rtype(*) params)pt_real(#name)

/*
 * Leaves a number for a program that will be seen.  A forked child that has been nothing itself
 * leaves its own.  A child of vfork speaks for its parent.
 */
static uint64_t leave_number(enum sight sight)
{
    const struct pt_thread *t = &pt_self;
    if (sight != SEEN || (t->forked && pt_vforked))
        return 0;
    return pt_lineage_leave(t->forked ? t->number : pt_lineage_next());
}

/* It only comes back if it has failed. */
#define EXECUTE(sight, call)                 \
    do {                                     \
        uint64_t left = leave_number(sight); \
        int rc = (call);                     \
        pt_lineage_withdraw(left);           \
        return rc;                           \
    } while (0)

PT_EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
    REAL_CALL(int, execve, (const char *, char *const[], char *const[]));
    EXECUTE(look_at(AT_FDCWD, path, envp), real(path, argv, envp));
}

static enum sight look_at_open(int fd, char *const envp[])
{
    char path[PT_PROC_PATH];
    pt_proc_path(path, "/proc/self/fd/", (uint32_t)fd, "", -1);
    return look_at(AT_FDCWD, path, envp);
}

PT_EXPORT int execveat(int dir, const char *path, char *const argv[], char *const envp[], int flags)
{
    REAL_CALL(int, execveat, (int, const char *, char *const[], char *const[], int));
    int is_open = flags & AT_EMPTY_PATH && pt_is_address(path) && !*path;
    EXECUTE(is_open ? look_at_open(dir, envp) : look_at(dir, path, envp),
            real(dir, path, argv, envp, flags));
}

PT_EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
    REAL_CALL(int, fexecve, (int, char *const[], char *const[]));
    EXECUTE(look_at_open(fd, envp), real(fd, argv, envp));
}

PT_EXPORT int execv(const char *path, char *const argv[])
{
    REAL_CALL(int, execv, (const char *, char *const[]));
    EXECUTE(look_at(AT_FDCWD, path, environ), real(path, argv));
}

PT_EXPORT int execvp(const char *name, char *const argv[])
{
    REAL_CALL(int, execvp, (const char *, char *const[]));
    EXECUTE(look_for(name, environ), real(name, argv));
}

PT_EXPORT int execvpe(const char *name, char *const argv[], char *const envp[])
{
    REAL_CALL(int, execvpe, (const char *, char *const[], char *const[]));
    EXECUTE(look_for(name, envp), real(name, argv, envp));
}

/* The arguments of an execl call as an array; `ap` stays behind their NULL. */
#define COLLECT(arg, ap)            \
    size_t n = 1;                   \
    va_list ap;                     \
    va_start(ap, arg);              \
    while (va_arg(ap, char *))      \
        n++;                        \
    va_end(ap);                     \
    char *argv[n + 1];              \
    va_start(ap, arg);              \
    argv[0] = (char *)arg;          \
    for (size_t i = 1; i <= n; i++) \
    argv[i] = va_arg(ap, char *)

PT_EXPORT int execl(const char *path, const char *arg, ...)
{
    COLLECT(arg, ap);
    va_end(ap);
    return execv(path, argv);
}

PT_EXPORT int execlp(const char *name, const char *arg, ...)
{
    COLLECT(arg, ap);
    va_end(ap);
    return execvp(name, argv);
}

PT_EXPORT int execle(const char *path, const char *arg, ...)
{
    COLLECT(arg, ap);
    char *const *envp = va_arg(ap, char *const *);
    va_end(ap);
    return execve(path, argv, envp);
}

/* What is to be said of it may make this process one that has a number to leave. */
#define SPAWN(sight, program)                                              \
    do {                                                                   \
        pid_t child;                                                       \
        uint64_t left = (sight) == SEEN ? pt_lineage_leave_to_child() : 0; \
        int rc = real(&child, program, actions, attr, argv, envp);         \
        if (rc) {                                                          \
            pt_lineage_withdraw(left);                                     \
            return rc;                                                     \
        }                                                                  \
        pt_lineage_hand_on(left, child);                                   \
        if (pid)                                                           \
            *pid = child;                                                  \
        return 0;                                                          \
    } while (0)

PT_EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                          const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
    REAL_CALL(int, posix_spawn,
              (pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
               char *const[], char *const[]));
    SPAWN(look_at(AT_FDCWD, path, envp), path);
}

PT_EXPORT int posix_spawnp(pid_t *pid, const char *name, const posix_spawn_file_actions_t *actions,
                           const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
    REAL_CALL(int, posix_spawnp,
              (pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
               char *const[], char *const[]));
    SPAWN(look_for(name, envp), name);
}
