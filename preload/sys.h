/*
 * System calls that bypass libc: no errno, no wrapper of ours, no allocation, no
 * lock.  They return what the kernel returns, -errno on failure.
 */
#ifndef PT_SYS_H
#define PT_SYS_H

#include <stdint.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
static inline long pt_sys6(long nr, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long ret;
    __asm__ volatile("syscall"
                     : "=a"(ret)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return ret;
}
#elif defined(__aarch64__)
static inline long pt_sys6(long nr, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = nr;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}
#else
#error "paratrace's tracer knows x86_64 and aarch64"
#endif

#define PT_SYS_PICK(a, b, c, d, e, f, g, name, ...) name
#define pt_sys(...)                                                                      \
    PT_SYS_PICK(__VA_ARGS__, pt_sys_6, pt_sys_5, pt_sys_4, pt_sys_3, pt_sys_2, pt_sys_1, \
                pt_sys_0, )                                                              \
    (__VA_ARGS__)
#define pt_sys_0(nr)             pt_sys6(nr, 0, 0, 0, 0, 0, 0)
#define pt_sys_1(nr, a)          pt_sys6(nr, (long)(a), 0, 0, 0, 0, 0)
#define pt_sys_2(nr, a, b)       pt_sys6(nr, (long)(a), (long)(b), 0, 0, 0, 0)
#define pt_sys_3(nr, a, b, c)    pt_sys6(nr, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define pt_sys_4(nr, a, b, c, d) pt_sys6(nr, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define pt_sys_5(nr, a, b, c, d, e) \
    pt_sys6(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define pt_sys_6(nr, a, b, c, d, e, f) \
    pt_sys6(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

#define PT_PROC_PATH 64

/* "BEGINnMORE", then `last` unless it is negative; in libc.c. */
void pt_proc_path(char path[PT_PROC_PATH], const char *begin, uint32_t n, const char *more,
                  int64_t last);

#endif
