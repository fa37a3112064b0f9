/*
 * old_kernel COMMAND...: runs it as Linux 4.18 would, which many centres have: system calls that
 * came later do not exist, and madvise() does not know what it learnt later.
 */
#include "config.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIRST_LATER_CALL   424 /* pidfd_send_signal(), the same number on every architecture */
#define FIRST_LATER_ADVICE 22  /* MADV_POPULATE_READ */

#define LOAD(member)       BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define RETURN(action)     BPF_STMT(BPF_RET | BPF_K, action)
#define UNLESS_IS(n, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, n, 0, skip)
#define UNLESS_GE(n, skip) BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, n, 0, skip)

int main(int argc, char **argv)
{
    struct sock_filter rules[] = {
        LOAD(nr),
        UNLESS_GE(FIRST_LATER_CALL, 1),
        RETURN(SECCOMP_RET_ERRNO | ENOSYS),
        UNLESS_IS(SYS_madvise, 3),
        LOAD(args[2]),
        UNLESS_GE(FIRST_LATER_ADVICE, 1),
        RETURN(SECCOMP_RET_ERRNO | EINVAL),
        RETURN(SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(rules) / sizeof(rules[0]), rules};
    if (argc < 2)
        return 2;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        perror("old_kernel: cannot hide system calls");
        return 77;
    }
    execvp(argv[1], argv + 1);
    perror(argv[1]);
    return 127;
}
