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
#include <time.h>
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
int __dprintf_chk(int fd, int flag, const char *fmt, ...);
int __fwprintf_chk(FILE *f, int flag, const wchar_t *fmt, ...);
int __wprintf_chk(int flag, const wchar_t *fmt, ...);
int __vwprintf_chk(int flag, const wchar_t *fmt, va_list ap);
int _IO_getc(FILE *f);
int _IO_putc(int c, FILE *f);
int old_fscanf(FILE *f, const char *fmt, ...) __asm__("fscanf");
int old_scanf(const char *fmt, ...) __asm__("scanf");
int old_fwscanf(FILE *f, const wchar_t *fmt, ...) __asm__("fwscanf");
int old_wscanf(const wchar_t *fmt, ...) __asm__("wscanf");

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

/* What the stream stood for is closed first, also where the open fails. */
static void reopen_stream(const char *path, const char *mode, FILE *f, int flags)
{
    char here[1024];
    int fd = fileno(f);
    FILE *again = freopen(path, mode, f);
    int error = errno;
    expect(0, "fclose(%d)", fd);
    errno = error;
    if (path)
        expect(again ? fd : -1, "freopen(\"%s\", %#x, 0666)", path, flags);
    else /* the name is known from where the descriptor leads */
        expect(fd, "freopen(\"%s/a\", %#x, 0666)", getcwd(here, sizeof(here)), flags);
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
    reopen_stream("b", "w+", f, FOR_W_PLUS);
    close_stream(f);
    f = open_stream("a", "r", O_RDONLY);
    reopen_stream("no", "r", f, O_RDONLY); /* closes it nevertheless */
    f = open_stream("a", "r", O_RDONLY);
    expect(fclose(f), "fclose(%d)", fd); /* so the descriptor is free again */
    f = open_stream("a", "r", O_RDONLY);
    reopen_stream(NULL, "r+", f, O_RDWR);
    close_stream(f);
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

static int print_to_fd(int fd, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int ret = vdprintf(fd, fmt, ap);
    va_end(ap);
    return ret;
}

/* Straight to a descriptor. */
static void unbuffered(void)
{
    int fd = open("direct", O_WRONLY | O_CREAT, 0600);
    expect(fd, "open(\"direct\", O_WRONLY|O_CREAT, 0600)");
    expect(dprintf(fd, "%d\n", 12), "vdprintf(%d, 3)", fd);
    expect(print_to_fd(fd, "%s\n", "three"), "vdprintf(%d, 6)", fd);
    expect(__dprintf_chk(fd, 1, "%d\n", 4), "__vdprintf_chk(%d, 2)", fd);
    expect(close(fd), "close(%d)", fd);
    fd = open("direct", O_RDONLY);
    expect(fd, "open(\"direct\", O_RDONLY)");
    expect(dprintf(fd, "x"), "vdprintf(%d, 0)", fd);
    expect(close(fd), "close(%d)", fd);
}

static void put_chars(FILE *f)
{
    if (fputc('6', f) != '6' || _IO_putc('\n', f) != '\n' || putc('x', f) != 'x' ||
        fputc_unlocked('7', f) != '7' || putc_unlocked('\n', f) != '\n')
        abort();
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
    put_chars(f); /* through the buffer: they show up together, before the next call */
    int put = putw(0x0a383838, f);
    expect(5, "putc_unlocked(%d, 5)", fd);
    expect(put ? -1 : 4, "putw(%d, 4)", fd);
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
    expect(fputc('6', f) == '6', "fputc(%d, 1)", fd);
    expect(_IO_putc('\n', f) == '\n', "putc(%d, 1)", fd);
    expect(fputc_unlocked('7', f) == '7', "fputc_unlocked(%d, 1)", fd);
    expect(putc_unlocked('\n', f) == '\n', "putc_unlocked(%d, 1)", fd);
    setlinebuf(f);
    expect(0, "setvbuf(%d, %#x, 0)", fd, _IOLBF);
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
    if (fgetc(f) != 'l' || getc(f) != 'i' || fgetc_unlocked(f) != 'n' || getc_unlocked(f) != 'e')
        abort();
    int got = getw(f);
    expect(4, "getc_unlocked(%d, 4)", fd); /* out of the buffer, all together */
    expect(got ? 4 : 0, "getw(%d, 4)", fd);
    expect(getline(&line, &room, f), "getline(%d, 8)", fd);
    expect(getdelim(&line, &room, ' ', f), "getdelim(%d, 5)", fd);
    if (fscanf(f, "%d", &n) != 1)
        abort();
    expect(2, "__isoc99_vfscanf(%d, 2)", fd);
    if (old_fscanf(f, " line %d", &n) != 1)
        abort();
    expect(8, "__isoc99_vfscanf(%d, 8)", fd);
    if (_IO_getc(f) != '\n') /* getc of programs that are some years old */
        abort();
    got = (int)fread(buf, 10, 20, f) * 10;
    expect(1, "getc_unlocked(%d, 1)", fd);
    expect(got, "fread(%d, 200)", fd);
    expect(getline(&line, &room, f) < 0 ? 0 : 1, "getline(%d, 0)", fd);
    expect(fgets(buf, 10, f) ? 1 : 0, "fgets(%d, 10)", fd);
    expect(fgetc(f) != EOF, "fgetc(%d, 1)", fd);
    expect(getw(f) == EOF ? 0 : 4, "getw(%d, 4)", fd);
    free(line);
    close_stream(f);
    f = open_stream("in", "r", O_RDONLY);
    fd = fileno(f);
    setbuf(f, NULL);
    expect(0, "setvbuf(%d, %#x, %d)", fd, _IONBF, BUFSIZ);
    expect(fgetc(f) == 'l', "fgetc(%d, 1)", fd);
    expect(getc(f) == 'i', "getc(%d, 1)", fd);
    expect(fgetc_unlocked(f) == 'n', "fgetc_unlocked(%d, 1)", fd);
    expect(getc_unlocked(f) == 'e', "getc_unlocked(%d, 1)", fd);
    close_stream(f);
}

/* getc_unlocked and putc_unlocked as the compiler makes them: calls only at the buffer's end. */
static int inlined_getc(FILE *f)
{
    return f->_IO_read_ptr < f->_IO_read_end ? *(unsigned char *)f->_IO_read_ptr++ : __uflow(f);
}

static int inlined_putc(int c, FILE *f)
{
    if (f->_IO_write_ptr >= f->_IO_write_end)
        return __overflow(f, (unsigned char)c);
    *f->_IO_write_ptr++ = (char)c;
    return c;
}

/* What is between the calls is an event before the next one: no byte is missing or double. */
static void inlined_reads(void)
{
    char buf[64];
    FILE *f = open_stream("in", "r", O_RDONLY); /* 160 bytes */
    int fd = fileno(f), n = 0;
    for (int i = 0; i < 10; i++)
        inlined_getc(f);
    expect(1, "__uflow(%d, 1)", fd);
    long got = (long)fread(buf, 1, 20, f);
    expect(9, "getc_unlocked(%d, 9)", fd);
    expect(got, "fread(%d, 20)", fd);
    expect((long)fread(buf, 1, 20, f), "fread(%d, 20)", fd); /* nothing in between */
    ungetc(inlined_getc(f), f);
    if (fgetc(f) == EOF) /* the same byte: read once */
        abort();
    for (int i = 0; i < 3; i++)
        inlined_getc(f);
    got = fseek(f, 80, SEEK_SET);
    expect(4, "getc_unlocked(%d, 4)", fd);
    expect(got, "fseek(%d, 80, SEEK_SET)", fd);
    while (inlined_getc(f) != EOF)
        n++;
    if (n != 80)
        abort();
    expect(80, "getc_unlocked(%d, 80)", fd); /* fseek has filled the buffer */
    expect(0, "__uflow(%d, 1)", fd);
    close_stream(f);
}

static void inlined_writes(void)
{
    static char room[100];
    FILE *f = open_stream("puts", "w", FOR_W);
    int fd = fileno(f);
    setbuffer(f, room, sizeof(room));
    expect(0, "setvbuf(%d, %#x, 100)", fd, _IOFBF);
    for (int i = 0; i < 250; i++) /* more than two buffers */
        inlined_putc('x', f);
    expect(1, "__overflow(%d, 1)", fd);
    expect(99, "putc_unlocked(%d, 99)", fd);
    expect(1, "__overflow(%d, 1)", fd);
    expect(99, "putc_unlocked(%d, 99)", fd);
    expect(1, "__overflow(%d, 1)", fd);
    fputc('y', f); /* as if it were inlined, too */
    inlined_putc('z', f);
    int closed = fclose(f);
    expect(51, "putc_unlocked(%d, 51)", fd);
    expect(closed, "fclose(%d)", fd);
}

/* Calls that only move a few bytes in the buffer have shorter records: where those end. */
static void few_bytes(void)
{
    static char bytes[600];
    static const struct {
        int inlined;
        size_t n;
        int pause; /* ms */
    } turns[] = {{0, 1, 0},    {3, 7, 0},   {1023, 256, 0}, {1024, 256, 0}, {1, 257, 0},
                 {5, 511, 0},  {5, 512, 0}, {5, 513, 0},    {2, 9, 30},     {2, 9, 120},
                 {1500, 1, 0}, {0, 600, 0}, {9, 1, 0},      {1, 1, 0}};
    FILE *to[2];
    for (int i = 0; i < 2; i++) {
        to[i] = open_stream(i ? "few1" : "few0", "w", FOR_W);
        expect(setvbuf(to[i], NULL, _IOFBF, 1 << 16), "setvbuf(%d, %#x, 65536)", fileno(to[i]),
               _IOFBF);
        expect((long)fwrite("x", 1, 1, to[i]), "fwrite(%d, 1)", fileno(to[i]));
    }
    memset(bytes, 'b', sizeof(bytes));
    for (size_t i = 0; i < sizeof(turns) / sizeof(turns[0]); i++)
        for (int both = 0; both < 2; both++) {
            FILE *f = to[both];
            struct timespec pause = {0, turns[i].pause * 1000000};
            if (pause.tv_nsec)
                expect_idle(nanosleep(&pause, NULL), "nanosleep()");
            for (int k = 0; k < turns[i].inlined; k++)
                inlined_putc('i', f);
            size_t done = fwrite(bytes, 1, turns[i].n, f);
            if (turns[i].inlined)
                expect(turns[i].inlined, "putc_unlocked(%d, %d)", fileno(f), turns[i].inlined);
            expect((long)done, "fwrite(%d, %zu)", fileno(f), turns[i].n);
            done = (size_t)fputs("text", f);
            expect(done == (size_t)EOF ? -1 : 4, "fputs(%d, 4)", fileno(f));
        }
    for (int i = 0; i < 2; i++)
        close_stream(to[i]);
}

/* Streams that are no files: none of this may show up, and none of their functions may be
 * called more often than by the program itself. */
static int seeks;

static ssize_t cookie_read(void *cookie, char *buf, size_t n)
{
    (void)cookie;
    memset(buf, '7', n);
    return (ssize_t)n;
}

static int cookie_seek(void *cookie, off64_t *off, int whence)
{
    (void)cookie;
    (void)off;
    (void)whence;
    seeks++;
    return -1;
}

static void no_files(void)
{
    cookie_io_functions_t functions = {.read = cookie_read, .seek = cookie_seek};
    char *text, number[8];
    wchar_t *wide;
    size_t n;
    int value;
    FILE *f = fopencookie(NULL, "r", functions);
    if (fscanf(f, "%3d", &value) != 1 || value != 777 || fgetc(f) != '7' || seeks || fclose(f))
        abort();
    f = open_memstream(&text, &n);
    if (fprintf(f, "%d", 42) != 2 || fputc('x', f) != 'x' || inlined_putc('y', f) != 'y' ||
        fclose(f) || strcmp(text, "42xy"))
        abort();
    free(text);
    f = open_wmemstream(&wide, &n);
    if (fwprintf(f, L"%d", 42) != 2 || fclose(f) || wcscmp(wide, L"42"))
        abort();
    free(wide);
    strcpy(number, "12 34");
    f = fmemopen(number, 5, "r");
    if (fscanf(f, "%d", &value) != 1 || value != 12 || inlined_getc(f) != ' ' || fclose(f))
        abort();
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
    expect(fwprintf(f, L"%d\n", 7), "vfwprintf(%d, 2)", fd);
    expect(__fwprintf_chk(f, 1, L"%d\n", 89), "__vfwprintf_chk(%d, 3)", fd);
    expect(fputws(L" one\n", f) < 0 ? -1 : 5, "fputws(%d, 5)", fd);
    expect(fputws_unlocked(L"two\nthree\nfour\nfive\n", f) < 0 ? -1 : 20, "fputws_unlocked(%d, 20)",
           fd);
    close_stream(f);
}

static void wide_reads(void)
{
    wchar_t buf[64];
    int n;
    FILE *f = open_stream("wide", "r", O_RDONLY);
    int fd = fileno(f);
    expect(fgetwc(f) == L'w', "fgetwc(%d, 1)", fd);
    expect(getwc(f) == L'i', "getwc(%d, 1)", fd);
    expect(fgetwc_unlocked(f) == L'd', "fgetwc_unlocked(%d, 1)", fd);
    expect(getwc_unlocked(f) == L'e', "getwc_unlocked(%d, 1)", fd);
    if (fwscanf(f, L"%d", &n) != 1 || n != 7)
        abort();
    expect(1, "__isoc99_vfwscanf(%d, 1)", fd);
    if (old_fwscanf(f, L"%d", &n) != 1 || n != 89)
        abort();
    expect(3, "__isoc99_vfwscanf(%d, 3)", fd);
    expect(fgetwc(f) == L'\n', "fgetwc(%d, 1)", fd);
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
    expect(fwprintf(f, L"%lc", 0x20ac) == 1 ? 3 : -1, "vfwprintf(%d, 3)", fd);
    close_stream(f);
    f = open_stream("bytes", "r", O_RDONLY);
    fd = fileno(f);
    expect(fgetwc(f) == 0xe9 ? 2 : -1, "fgetwc(%d, 2)", fd);
    close_stream(f);
    setlocale(LC_CTYPE, "C");
}

/* ---- standard streams that are files ---------------------------------------------------- */

static int print_wide(int checked, const wchar_t *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int ret = checked ? __vwprintf_chk(1, fmt, ap) : vwprintf(fmt, ap);
    va_end(ap);
    return ret;
}

static int scan_in(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int ret = vscanf(fmt, ap);
    va_end(ap);
    return ret;
}

static int scan_wide(const wchar_t *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int ret = vwscanf(fmt, ap);
    va_end(ap);
    return ret;
}

static void standard_output(void)
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
    reopen_stream("out2", "w", stdout, FOR_W);
    expect(putwchar(L'w') == L'w', "putwchar(1, 1)");
    expect(putwchar_unlocked(L'\n') == L'\n', "putwchar_unlocked(1, 1)");
    expect(wprintf(L"%d\n", 2), "vfwprintf(1, 2)");
    expect(print_wide(0, L"%d\n", 3), "vfwprintf(1, 2)");
    expect(__wprintf_chk(1, L"%d\n", 4), "__vfwprintf_chk(1, 2)");
    expect(print_wide(1, L"%d\n", 5), "__vfwprintf_chk(1, 2)");
    expect(fflush(stdout), "fflush(1)");
}

static void standard_input(void)
{
    int n;
    expect(freopen("in", "r", stdin) ? 0 : -1, "freopen(\"in\", 0, 0666)");
    expect(getchar() == 'l', "getchar(0, 1)");
    expect(getchar_unlocked() == 'i', "getchar_unlocked(0, 1)");
    if (scanf("ne %d", &n) != 1 || old_scanf(" line %d", &n) != 1 || n != 1 ||
        scan_in(" line %d", &n) != 1 || n != 2)
        abort();
    expect(5, "__isoc99_vfscanf(0, 5)");
    expect(8, "__isoc99_vfscanf(0, 8)");
    expect(8, "__isoc99_vfscanf(0, 8)");
    reopen_stream("in", "r", stdin, O_RDONLY);
    expect(getwchar() == L'l', "getwchar(0, 1)");
    expect(getwchar_unlocked() == L'i', "getwchar_unlocked(0, 1)");
    if (wscanf(L"ne %d", &n) != 1 || old_wscanf(L" line %d", &n) != 1 || n != 1 ||
        scan_wide(L" line %d", &n) != 1 || n != 2)
        abort();
    expect(5, "__isoc99_vfwscanf(0, 5)");
    expect(8, "__isoc99_vfwscanf(0, 8)");
    expect(8, "__isoc99_vfwscanf(0, 8)");
}

/* What is left in a buffer at the end; and the end of all streams, which stay open. */
static void last(void)
{
    FILE *f = open_stream("last", "w", FOR_W);
    int fd = fileno(f);
    for (int i = 0; i < 10; i++)
        inlined_putc('x', f);
    expect(1, "__overflow(%d, 1)", fd);
    int ret = fflush(NULL);
    expect(9, "putc_unlocked(%d, 9)", fd);
    expect(ret, "fflush(-1)");
    for (int i = 0; i < 5; i++)
        inlined_putc('x', f);
    ret = fcloseall();
    expect(5, "putc_unlocked(%d, 5)", fd);
    expect(ret, "fcloseall(-1)");
    FILE *g = open_stream("unclosed", "w", FOR_W);
    for (int i = 0; i < 20; i++)
        inlined_putc('x', g);
    expect(1, "__overflow(%d, 1)", fileno(g));
    expect(19, "putc_unlocked(%d, 19)", fileno(g));
}

int main(void)
{
    int out = dup(1); /* not a file: not recorded */
    opens();
    unbuffered();
    writes();
    make_input("in");
    reads();
    inlined_reads();
    inlined_writes();
    few_bytes();
    no_files();
    positions();
    wide_writes();
    wide_reads();
    wide_bytes();
    standard_output();
    standard_input();
    last();
    return expect_print(out);
}
