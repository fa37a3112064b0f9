/*
 * Writing JSON: only what cannot be done with fprintf alone.
 */
#ifndef PT_JSON_H
#define PT_JSON_H

#include <stdio.h>

/* Writes s as a JSON string, with its quotes; NULL becomes null. */
void pt_json_string(FILE *f, const char *s);

#endif
