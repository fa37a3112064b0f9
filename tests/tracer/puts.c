/*
 * A few bytes at a time into streams, and lines out of them, in every way in which that is more
 * than to copy them to or from a buffer.  Prints what it sees, which is the same with the tracer;
 * t-puts.sh counts the events.
 */
#include "config.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

static char letters[400];

static FILE *start(const char *name)
{
    FILE *f = fopen(name, "w");
    if (!f || fputs("begin\n", f) < 0) /* from now on the stream has its buffer */
        abort();
    return f;
}

/* Prints the length and a sum of what is in the file by now. */
static void show(const char *what, const char *name)
{
    char buf[4096];
    unsigned long sum = 0, all = 0;
    int fd = open(name, O_RDONLY);
    for (ssize_t n; (n = read(fd, buf, sizeof(buf))) > 0; all += (unsigned long)n)
        for (ssize_t i = 0; i < n; i++)
            sum = sum * 31 + (unsigned char)buf[i];
    close(fd);
    printf("%s: %lu bytes, sum %lu\n", what, all, sum);
}

/* 4 + 4 * 301 calls that put something. */
static int sizes(void)
{
    FILE *f = start("sizes");
    unsigned long items = 0;
    for (size_t n = 0; n <= 300; n++) {
        items += fwrite(letters, 1, n, f) + fwrite_unlocked(letters, n ? n : 1, 1, f);
        letters[n] = 0;
        items += (unsigned long)(fputs(letters, f) + fputs_unlocked(letters, f));
        letters[n] = (char)('a' + n % 26);
        if (n % 50 == 0)
            printf("at %ld after %lu\n", ftell(f), items);
    }
    printf("nothing: %zu %zu\n", fwrite(letters, 0, 5, f), fwrite(letters, 5, 0, f));
    show("before the end", "sizes");
    fseek(f, 3, SEEK_SET);
    fputs("XYZ", f);
    rewind(f);
    printf("%d %zu\n", fputs("0123", f), fwrite("ab", 1, 2, f));
    printf("close %d\n", fclose(f));
    show("sizes", "sizes");
    return 0;
}

/* From one call to the next each line, or each byte, has to leave the buffer at once. */
static int lines(void)
{
    FILE *f = start("lines");
    fputs("in the buffer\n", f);
    show("full", "lines");
    setvbuf(f, NULL, _IOLBF, 0);
    fputs("a line\n", f);
    show("line", "lines");
    fputs("half a li", f);
    show("half", "lines");
    fwrite("ne\nand", 1, 6, f);
    show("whole", "lines");
    setvbuf(f, NULL, _IONBF, 0);
    fputs("x", f);
    show("none", "lines");
    fclose(f);
    show("lines", "lines");
    return 0;
}

static int wide(void)
{
    FILE *f = start("wide");
    printf("orientation %d\n", fwide(f, 0) < 0 ? -1 : 1);
    fclose(f);
    f = fopen("wide", "w");
    fputws(L"wide", f);
    printf("%zu\n", fwrite("no", 1, 2, f));
    fclose(f);
    show("wide", "wide");
    return 0;
}

/* Streams in memory have no descriptor, whatever stands where it would; not even 0. */
static int memory(void)
{
    char *text, c;
    size_t n;
    FILE *f = start("memory");
    if (read(0, &c, 1) != 1)
        abort();
    for (int i = 0; i < 3; i++) {
        FILE *m = open_memstream(&text, &n);
        for (int k = 0; k < 100; k++)
            fputs("in memory", m);
        fclose(m);
        printf("%zu bytes, ends with '%s'\n", n, text + n - 6);
        free(text);
        fputs("in the file\n", f);
        fclose(f); /* its memory is likely to be the next stream's */
        f = fopen("memory", "a");
    }
    fclose(f);
    printf("%zd\n", read(0, &c, 1));
    show("memory", "memory");
    return 0;
}

char *__fgets_chk(char *s, size_t size, int n, FILE *f);
char *__fgets_unlocked_chk(char *s, size_t size, int n, FILE *f);

/* Gets a line, or what there is room for, in one of four ways; a sum of all that was in its way. */
static unsigned long get(FILE *f, int how, int room, char **got)
{
    static char buf[600];
    unsigned long sum = 0;
    memset(buf, '~', sizeof(buf)); /* nothing behind the line may be written to */
    switch (how % 4) {
    case 0:
        *got = fgets(buf, room, f);
        break;
    case 1:
        *got = fgets_unlocked(buf, room, f);
        break;
    case 2:
        *got = __fgets_chk(buf, sizeof(buf), room, f);
        break;
    default:
        *got = __fgets_unlocked_chk(buf, sizeof(buf), room, f);
    }
    for (size_t i = 0; i < sizeof(buf); i++)
        sum = sum * 31 + (unsigned char)buf[i];
    return sum;
}

static unsigned long get_all(FILE *f, int between)
{
    unsigned long sum = 0;
    char *got;
    for (int i = 0; !feof(f); i++) {
        sum = sum * 31 + get(f, i, i % 3 ? 500 : 1 + i % 270, &got);
        sum = sum * 31 + (got != NULL);
        if (between && i % 5 == 0)
            sum += (unsigned char)getc_unlocked(f);
        if (between && i % 7 == 0)
            ungetc('u', f);
        if (between && i % 11 == 0)
            sum += (unsigned long)ftell(f);
    }
    return sum;
}

/* Lines of all lengths, at first without zeroes in them; the last one has no end. */
static int gets_(void)
{
    FILE *f = start("gets");
    for (size_t i = 0; i < 1200; i++) {
        fwrite(letters, 1, i * 7 % 311, f);
        fputs(i < 1199 ? "\n" : "", f);
    }
    fclose(f);
    f = fopen("gets", "r");
    printf("all %lu\n", get_all(f, 0));
    fclose(f);
    letters[100] = 0;
    f = fopen("zeroes", "w");
    for (size_t i = 0; i < 300; i++)
        fprintf(f, "%.*s%c%s\n", (int)i, letters, i % 3 ? 0 : 'x', letters);
    fclose(f);
    f = fopen("zeroes", "r+");
    printf("zeroes %lu\n", get_all(f, 0));
    rewind(f);
    printf("others between %lu\n", get_all(f, 1));
    fseek(f, 5, SEEK_SET);
    fputs("written\n", f);
    fseek(f, 0, SEEK_SET);
    printf("both %lu\n", get_all(f, 0));
    rewind(f);
    setvbuf(f, NULL, _IONBF, 0);
    printf("without a buffer %lu\n", get_all(f, 1));
    fclose(f);
    return 0;
}

enum { THREADS = 4, LINES = 20000 };

static FILE *shared;

static void *put_lines(void *which)
{
    char line[32];
    for (int i = 0; i < LINES; i++) {
        snprintf(line, sizeof(line), "%c%05d\n", *(const char *)which, i);
        if (i % 2 ? fputs(line, shared) < 0 : fwrite(line, strlen(line), 1, shared) != 1)
            abort();
    }
    return NULL;
}

/* One stream of all: no line may be torn, none lost. */
static int threads(void)
{
    static const char names[] = "ABCD";
    pthread_t thread[THREADS];
    int next[THREADS] = {0}, right = 0;
    char line[32], expected[32];
    shared = start("threads");
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, put_lines, (void *)&names[i]))
            abort();
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    fputs("end\n", shared);
    fclose(shared);
    FILE *f = fopen("threads", "r");
    while (fgets(line, sizeof(line), f)) {
        const char *name = strchr(names, line[0]);
        if (!name || !*name)
            continue;
        snprintf(expected, sizeof(expected), "%c%05d\n", *name, next[name - names]++);
        right += !strcmp(line, expected);
    }
    fclose(f);
    printf("%d lines as they should be\n", right);
    return right == THREADS * LINES ? 0 : 1;
}

/*
 * A stream that one thread has had to itself, until another puts a line there, too, at any moment
 * of the first one's.
 */
enum { STREAMS = 3000, OWN_LINES = 60 };

static _Atomic int turn;

static void *put_one(void *arg)
{
    (void)arg;
    for (int i = 1; i <= STREAMS; i++) {
        while (turn < i)
            ;
        for (volatile int wait = i % 400; wait; wait--)
            ;
        fputs("other\n", shared);
        turn = -i;
    }
    return NULL;
}

static int second(void)
{
    pthread_t thread;
    char line[32];
    int right = 0;
    shared = start("second");
    pthread_create(&thread, NULL, put_one, NULL);
    for (int i = 1; i <= STREAMS; i++) {
        turn = i;
        for (int k = 0; k < OWN_LINES; k++)
            fputs("first\n", shared);
        while (turn != -i)
            ;
        fclose(shared);
        FILE *f = fopen("second", "r");
        while (fgets(line, sizeof(line), f))
            right += !strcmp(line, "first\n") || !strcmp(line, "other\n");
        fclose(f);
        shared = start("second");
    }
    pthread_join(thread, NULL);
    fclose(shared);
    printf("%d lines as they should be\n", right);
    return right == STREAMS * (OWN_LINES + 1) ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } ways[] = {{"sizes", sizes},     {"lines", lines},   {"wide", wide}, {"memory", memory},
                {"threads", threads}, {"second", second}, {"gets", gets_}};
    for (size_t i = 0; i < sizeof(letters); i++)
        letters[i] = (char)('a' + i % 26);
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        if (argc > 1 && !strcmp(argv[1], ways[i].name))
            return ways[i].run();
    return 2;
}
