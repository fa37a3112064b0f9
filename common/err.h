/*
 * The reason of a failure, for a person to read.  Libraries fill it and return
 * -1 or NULL; only programs print.
 */
#ifndef PT_ERR_H
#define PT_ERR_H

struct pt_err {
    char text[400];
};

/* Sets the text (NULL err: nothing) and returns -1.  errno is kept. */
int pt_err_set(struct pt_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same, with ": strerror(errno)" behind. */
int pt_err_errno(struct pt_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
