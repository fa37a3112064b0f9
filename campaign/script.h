/*
 * The user's batch script, and the scripts made from it.  No Slurm and no files
 * in here.
 */
#ifndef PT_CAMPAIGN_SCRIPT_H
#define PT_CAMPAIGN_SCRIPT_H

#include "campaign/util.h"

/* What is known of the user's script and of the options for sbatch. */
struct script {
    struct list lines;     /* the #SBATCH lines that sbatch would honour, in order */
    char *name;            /* of the job: --job-name, or NULL */
    struct list placement; /* --account=, --partition=, --qos=, --reservation= */
};

/*
 * Reads the #SBATCH lines: those before the first command.  `options` are further
 * ones from the command line, one or two words each, which win over the lines.
 * -1 and err for a script that sbatch or we cannot take: no "#!", a job array, a
 * heterogeneous job.
 */
int script_read(struct script *s, const char *text, const struct list *options, struct pt_err *err);
void script_clear(struct script *s);

/* `s` as one word of a shell, for free(). */
char *script_quote(const char *s);

/* `s` as it has to stand in a file name pattern of Slurm, or in out= of a SPEC, for free(). */
char *script_pattern(const char *s);
char *script_spec_value(const char *s);

/*
 * A batch script, for free(): the lines (NULL: none), then `exec` of the words, each
 * quoted, and of the script's own arguments.
 */
char *script_make(const struct list *lines, const char *const words[]);

#endif
