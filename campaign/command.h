/*
 * The subcommands: one row of the table in main.c and one file each.
 */
#ifndef PT_CAMPAIGN_COMMAND_H
#define PT_CAMPAIGN_COMMAND_H

#include "campaign/campaign.h"
#include "common/err.h"

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* Each gets argv[0] = its own name, and returns the exit status. */
int cmd_submit(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_watch(int argc, char **argv);
int cmd_resume(int argc, char **argv);
int cmd_cancel(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_job(int argc, char **argv);

/* "ptcampaign: text" on stderr; returns EXIT_FAILED. */
int complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The same with a hint at --help of that subcommand; returns EXIT_USAGE. */
int usage_error(const char *command, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Arguments of a subcommand that takes a directory and perhaps --json (NULL: not) and
 * --timeout (NULL: not).  The directory, or NULL and the exit status.
 */
const char *parse_dir_args(int argc, char **argv, const char *help, int *json, long *timeout,
                           int *status);

#endif
