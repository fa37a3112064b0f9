/*
 * Calls on streams, and prints the trace it expects.  Run in an empty directory.
 */
#undef _FORTIFY_SOURCE /* the functions by their names, not what the headers make of them */
#ifndef __NO_INLINE__
#define __NO_INLINE__ 1
#endif
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "tests/tracer/expect.h"

#undef getc_unlocked
#undef putc_unlocked
#undef getchar_unlocked
#undef putchar_unlocked

size_t __fread_chk(void *buf, size_t room, size_t size, size_t n, FILE *f);
size_t __fread_unlocked_chk(void *buf, size_t room, size_t size, size_t n, FILE *f);
char *__fgets_chk(char *s, size_t size, int n, FILE *f);
char *__fgets_unlocked_chk(char *s, size_t size, int n, FILE *f);
wchar_t *__fgetws_chk(wchar_t *s, size_t size, int n, FILE *f);
wchar_t *__fgetws_unlocked_chk(wchar_t *s, size_t size, int n, FILE *f);
int __fprintf_chk(FILE *f, int flag, const char *fmt, ...);
int __vfprintf_chk(FILE *f, int flag, const char *fmt, va_list ap);
int __printf_chk(int flag, const char *fmt, ...);
int __vprintf_chk(int flag, const char *fmt, va_list ap);
int old_fscanf(FILE *f, const char *fmt, ...) __asm__("fscanf");

/* The flags that fopen's modes stand for. */
enum {
    FOR_W = O_WRONLY | O_CREAT | O_TRUNC,
    FOR_A = O_WRONLY | O_CREAT | O_APPEND,
    FOR_W_PLUS = O_RDWR | O_CREAT | O_TRUNC,
    FOR_A_PLUS = O_RDWR | O_CREAT | O_APPEND,
};

static FILE *open_stream(const char *path, const char *mode, int flags)
{
    FILE *f = fopen(path, mode);
    expect(f ? fileno(f) : -1, "fopen(\"%s\", %#x, 0666)", path, flags);
    return f;
}

static void close_stream(FILE *f)
{
    int fd = fileno(f);
    expect(fclose(f), "fclose(%d)", fd);
}

static void opens(void)
{
    FILE *f;
    int fd;
    open_stream("no", "r", O_RDONLY);
    close_stream(open_stream("a", "w", FOR_W));
    close_stream(open_stream("a", "r", O_RDONLY));
    close_stream(open_stream("a", "r+", O_RDWR));
    close_stream(open_stream("a", "a", FOR_A));
    close_stream(open_stream("a", "ab+", FOR_A_PLUS));
    close_stream(open_stream("a", "wb+", FOR_W_PLUS));
    close_stream(open_stream("x", "wx", FOR_W | O_EXCL));
    open_stream("x", "wx", FOR_W | O_EXCL);
    close_stream(open_stream("a", "re", O_RDONLY | O_CLOEXEC));
    f = fopen64("a", "r");
    fd = fileno(f);
    expect(fd, "fopen(\"a\", 0, 0666)");
    expect(freopen("b", "w+", f) ? fd : -1, "freopen(\"b\", %#x, 0666)", FOR_W_PLUS);
    close_stream(f);
    f = fopen("a", "r");
    expect(fileno(f), "fopen(\"a\", 0, 0666)");
    expect(freopen("no", "r", f) ? 0 : -1, "freopen(\"no\", 0, 0666)");
    f = tmpfile();
    expect(fileno(f), "tmpfile(\"/tmp\", %#x, 0600)", O_RDWR | O_TMPFILE);
    close_stream(f);
}

static int print_to(FILE *f, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int ret = vfprintf(f, fmt, ap);
    va_end(ap);
    return ret;
}

static int print_checked(FILE *f, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int ret = f ? __vfprintf_chk(f, 1, fmt, ap) : __vprintf_chk(1, fmt, ap);
    va_end(ap);
    return ret;
}

static int print_out(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int ret = vprintf(fmt, ap);
    va_end(ap);
    return ret;
}

static void writes(void)
{
    static char room[BUFSIZ];
    FILE *f = open_stream("lines", "w", FOR_W);
    int fd = fileno(f);
    expect(setvbuf(f, room, _IOFBF, sizeof(room)), "setvbuf(%d, %#x, %d)", fd, _IOFBF, BUFSIZ);
    expect((long)fwrite("one two\n", 4, 2, f) * 4, "fwrite(%d, 8)", fd);
    expect((long)fwrite_unlocked("three\n", 1, 6, f), "fwrite_unlocked(%d, 6)", fd);
    expect(fputs("four\n", f) < 0 ? -1 : 5, "fputs(%d, 5)", fd);
    expect(fputs_unlocked("five\n", f) < 0 ? -1 : 5, "fputs_unlocked(%d, 5)", fd);
    expect(fputc('6', f) == '6', "fputc(%d, 1)", fd);
    expect(putc('\n', f) == '\n', "putc(%d, 1)", fd);
    expect(fputc_unlocked('7', f) == '7', "fputc_unlocked(%d, 1)", fd);
    expect(putc_unlocked('\n', f) == '\n', "putc_unlocked(%d, 1)", fd);
    expect(putw(0x0a383838, f) ? -1 : 4, "putw(%d, 4)", fd);
    expect(fprintf(f, "%d\n", 9), "vfprintf(%d, 2)", fd);
    expect(print_to(f, "%s\n", "ten"), "vfprintf(%d, 4)", fd);
    expect(__fprintf_chk(f, 1, "%d\n", 11), "__vfprintf_chk(%d, 3)", fd);
    expect(print_checked(f, "%d\n", 12), "__vfprintf_chk(%d, 3)", fd);
    expect(fflush(f), "fflush(%d)", fd);
    expect(fflush_unlocked(f), "fflush_unlocked(%d)", fd);
    expect(fflush(NULL), "fflush(-1)");
    close_stream(f);
    f = open_stream("full", "w", FOR_W);
    fd = fileno(f);
    setbuf(f, NULL);
    expect(0, "setvbuf(%d, %#x, %d)", fd, _IONBF, BUFSIZ);
    expect(__overflow(f, 'x') == 'x', "__overflow(%d, 1)", fd);
    close_stream(f);
    f = open_stream("full", "r", O_RDONLY);
    fd = fileno(f);
    setbuffer(f, room, 100);
    expect(0, "setvbuf(%d, %#x, 100)", fd, _IOFBF);
    expect((long)fwrite("x", 1, 1, f), "fwrite(%d, 1)", fd);
    expect(fputs("x", f) < 0 ? -1 : 1, "fputs(%d, 1)", fd);
    expect(fputc('x', f) == EOF ? -1 : 1, "fputc(%d, 1)", fd);
    close_stream(f);
}

/* The file of numbered lines that most reads are from. */
static void make_input(const char *path)
{
    FILE *f = open_stream(path, "w", FOR_W);
    for (int i = 0; i < 20; i++)
        expect(fprintf(f, "line %02d\n", i), "vfprintf(%d, 8)", fileno(f));
    close_stream(f);
}

static void reads(void)
{
    char buf[256], *line = NULL;
    size_t room = 0;
    FILE *f = open_stream("in", "r", O_RDONLY);
    int fd = fileno(f), n;
    expect((long)fread(buf, 4, 2, f) * 4, "fread(%d, 8)", fd);
    expect((long)fread_unlocked(buf, 1, 8, f), "fread_unlocked(%d, 8)", fd);
    expect((long)__fread_chk(buf, sizeof(buf), 1, 8, f), "__fread_chk(%d, 8)", fd);
    expect((long)__fread_unlocked_chk(buf, sizeof(buf), 8, 1, f) * 8, "__fread_unlocked_chk(%d, 8)",
           fd);
    expect(fgets(buf, 100, f) ? (long)strlen(buf) : 0, "fgets(%d, 100)", fd);
    expect(fgets_unlocked(buf, 5, f) ? (long)strlen(buf) : 0, "fgets_unlocked(%d, 5)", fd);
    expect(__fgets_chk(buf, sizeof(buf), 100, f) ? (long)strlen(buf) : 0, "__fgets_chk(%d, 100)",
           fd);
    expect(__fgets_unlocked_chk(buf, sizeof(buf), 100, f) ? (long)strlen(buf) : 0,
           "__fgets_unlocked_chk(%d, 100)", fd);
    expect(fgetc(f) == 'l', "fgetc(%d, 1)", fd);
    expect(getc(f) == 'i', "getc(%d, 1)", fd);
    expect(fgetc_unlocked(f) == 'n', "fgetc_unlocked(%d, 1)", fd);
    expect(getc_unlocked(f) == 'e', "getc_unlocked(%d, 1)", fd);
    expect(getw(f) ? 4 : 0, "getw(%d, 4)", fd);
    expect(getline(&line, &room, f), "getline(%d, 8)", fd);
    expect(getdelim(&line, &room, ' ', f), "getdelim(%d, 5)", fd);
    if (fscanf(f, "%d", &n) != 1)
        abort();
    expect(2, "__isoc99_vfscanf(%d, 2)", fd);
    if (old_fscanf(f, " line %d", &n) != 1)
        abort();
    expect(8, "__isoc99_vfscanf(%d, 8)", fd);
    expect((long)fread(buf, 10, 20, f) * 10, "fread(%d, 200)", fd);
    expect(getline(&line, &room, f) < 0 ? 0 : 1, "getline(%d, 0)", fd);
    expect(fgets(buf, 10, f) ? 1 : 0, "fgets(%d, 10)", fd);
    expect(fgetc(f) != EOF, "fgetc(%d, 1)", fd);
    expect(getw(f) == EOF ? 0 : 4, "getw(%d, 4)", fd);
    free(line);
    close_stream(f);
}

/* getc_unlocked as the compiler makes it: a call only where the buffer is empty. */
static void inlined(void)
{
    FILE *f = open_stream("in", "r", O_RDONLY);
    int fd = fileno(f), n = 0;
    expect(setvbuf(f, NULL, _IOFBF, 0), "setvbuf(%d, 0, 0)", fd);
    while ((f->_IO_read_ptr < f->_IO_read_end ? *(unsigned char *)f->_IO_read_ptr++ : __uflow(f)) !=
           EOF)
        n++;
    expect(n, "__uflow(%d, %d)", fd, n);
    expect(0, "__uflow(%d, 0)", fd);
    close_stream(f);
}

static void positions(void)
{
    fpos_t pos;
    FILE *f = open_stream("in", "r", O_RDONLY);
    int fd = fileno(f);
    expect(fseek(f, 10, SEEK_SET), "fseek(%d, 10, SEEK_SET)", fd);
    expect(fseek(f, -11, SEEK_CUR), "fseek(%d, -11, SEEK_CUR)", fd);
    expect(fseeko(f, -5, SEEK_END), "fseeko(%d, -5, SEEK_END)", fd);
    expect(ftell(f), "ftell(%d)", fd);
    expect(ftello(f), "ftello(%d)", fd);
    expect(fgetpos(f, &pos), "fgetpos(%d)", fd);
    rewind(f);
    expect(0, "rewind(%d, 0, SEEK_SET)", fd);
    expect(fsetpos(f, &pos), "fsetpos(%d, 155, SEEK_SET)", fd);
    expect(ftello64(f), "ftello(%d)", fd);
    close_stream(f);
}

/* ---- wide characters -------------------------------------------------------------------- */

static void wide_writes(void)
{
    FILE *f = open_stream("wide", "w", FOR_W);
    int fd = fileno(f);
    expect(fputwc(L'w', f) == L'w', "fputwc(%d, 1)", fd);
    expect(putwc(L'i', f) == L'i', "putwc(%d, 1)", fd);
    expect(fputwc_unlocked(L'd', f) == L'd', "fputwc_unlocked(%d, 1)", fd);
    expect(putwc_unlocked(L'e', f) == L'e', "putwc_unlocked(%d, 1)", fd);
    expect(fputws(L" one\n", f) < 0 ? -1 : 5, "fputws(%d, 5)", fd);
    expect(fputws_unlocked(L"two\nthree\nfour\nfive\n", f) < 0 ? -1 : 20, "fputws_unlocked(%d, 20)",
           fd);
    close_stream(f);
}

static void wide_reads(void)
{
    wchar_t buf[64];
    FILE *f = open_stream("wide", "r", O_RDONLY);
    int fd = fileno(f);
    expect(fgetwc(f) == L'w', "fgetwc(%d, 1)", fd);
    expect(getwc(f) == L'i', "getwc(%d, 1)", fd);
    expect(fgetwc_unlocked(f) == L'd', "fgetwc_unlocked(%d, 1)", fd);
    expect(getwc_unlocked(f) == L'e', "getwc_unlocked(%d, 1)", fd);
    expect(fgetws(buf, 60, f) ? (long)wcslen(buf) : 0, "fgetws(%d, 60)", fd);
    expect(fgetws_unlocked(buf, 60, f) ? (long)wcslen(buf) : 0, "fgetws_unlocked(%d, 60)", fd);
    expect(__fgetws_chk(buf, 64, 60, f) ? (long)wcslen(buf) : 0, "__fgetws_chk(%d, 60)", fd);
    expect(__fgetws_unlocked_chk(buf, 64, 60, f) ? (long)wcslen(buf) : 0,
           "__fgetws_unlocked_chk(%d, 60)", fd);
    expect(fgetws(buf, 3, f) ? (long)wcslen(buf) : 0, "fgetws(%d, 3)", fd);
    expect(fgetws(buf, 60, f) ? (long)wcslen(buf) : 0, "fgetws(%d, 60)", fd);
    expect(fgetwc(f) != WEOF, "fgetwc(%d, 1)", fd);
    close_stream(f);
}

/* What is recorded are bytes in the file, also where a character takes several. */
static void wide_bytes(void)
{
    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        return;
    FILE *f = open_stream("bytes", "w", FOR_W);
    int fd = fileno(f);
    expect(fputwc(0xe9, f) == WEOF ? -1 : 2, "fputwc(%d, 2)", fd);
    expect(fputws(L"\u00e9\u20ac\n", f) < 0 ? -1 : 6, "fputws(%d, 6)", fd);
    close_stream(f);
    f = open_stream("bytes", "r", O_RDONLY);
    fd = fileno(f);
    expect(fgetwc(f) == 0xe9 ? 2 : -1, "fgetwc(%d, 2)", fd);
    close_stream(f);
    setlocale(LC_CTYPE, "C");
}

/* ---- standard streams that are files ---------------------------------------------------- */

static void standard(void)
{
    expect(freopen("out", "w", stdout) ? 1 : -1, "freopen(\"out\", %#x, 0666)", FOR_W);
    expect(puts("one") < 0 ? -1 : 4, "puts(1, 4)");
    expect(putchar('c') == 'c', "putchar(1, 1)");
    expect(putchar_unlocked('\n') == '\n', "putchar_unlocked(1, 1)");
    expect(printf("%d\n", 2), "vfprintf(1, 2)");
    expect(print_out("%d\n", 3), "vfprintf(1, 2)");
    expect(__printf_chk(1, "%d\n", 4), "__vfprintf_chk(1, 2)");
    expect(print_checked(NULL, "%d\n", 5), "__vfprintf_chk(1, 2)");
    expect(fflush(stdout), "fflush(1)");
    expect(freopen("out2", "w", stdout) ? 1 : -1, "freopen(\"out2\", %#x, 0666)", FOR_W);
    expect(putwchar(L'w') == L'w', "putwchar(1, 1)");
    expect(putwchar_unlocked(L'\n') == L'\n', "putwchar_unlocked(1, 1)");
    expect(fflush(stdout), "fflush(1)");
    expect(freopen("in", "r", stdin) ? 0 : -1, "freopen(\"in\", 0, 0666)");
    expect(getchar() == 'l', "getchar(0, 1)");
    expect(getchar_unlocked() == 'i', "getchar_unlocked(0, 1)");
}

int main(void)
{
    int out = dup(1); /* not a file: not recorded */
    opens();
    writes();
    make_input("in");
    reads();
    inlined();
    positions();
    wide_writes();
    wide_reads();
    wide_bytes();
    standard();
    return expect_print(out);
}
