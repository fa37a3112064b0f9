#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "hdf5store/store_table.h"

#define COLUMN(type, name) {#name, offsetof(ROW, name), sizeof(type), (type)-1 < (type)1},
#define COUNT(type, name)  +1
/* clang-format off */
#define TABLE(path, list, rows)                                                                   \
    {.group = path,                                                                               \
     .row_size = sizeof(ROW),                                                                     \
     .ncolumns = 0 list(COUNT),                                                                   \
     .chunk = rows,                                                                               \
     .columns = {list(COLUMN)}}
/* clang-format on */

const struct store_table store_tables[STORE_NTABLES] = {
#define ROW struct store_name_row
    [STORE_NAMES] = TABLE("", STORE_NAME_COLUMNS, 65536),
#undef ROW
#define ROW struct store_call_row
    [STORE_CALLS] = TABLE("/calls", STORE_CALL_COLUMNS, 256),
#undef ROW
#define ROW struct store_node_row
    [STORE_NODES] = TABLE("/nodes", STORE_NODE_COLUMNS, 1024),
#undef ROW
#define ROW struct pt_store_event
    [STORE_EVENTS] = TABLE("/events", PT_STORE_EVENT_COLUMNS, 65536),
#undef ROW
#define ROW struct store_file_row
    [STORE_FILES] = TABLE("/files", STORE_FILE_COLUMNS, 4096),
#undef ROW
#define ROW struct pt_store_edge
    [STORE_EDGES] = TABLE("/edges", STORE_EDGE_COLUMNS, 16384),
#undef ROW
#define ROW struct store_barrier_row
    [STORE_BARRIERS] = TABLE("/barriers", STORE_BARRIER_COLUMNS, 4096),
#undef ROW
#define ROW struct pt_store_member
    [STORE_MEMBERS] = TABLE("/barrier_members", STORE_MEMBER_COLUMNS, 16384),
#undef ROW
#define ROW struct store_run_row
    [STORE_RUNS] = TABLE("/runs", STORE_RUN_COLUMNS, 256),
#undef ROW
};

hid_t store_column_memory_type(const struct store_column *column)
{
    switch (column->size) {
    case 1:
        return column->is_signed ? H5T_NATIVE_INT8 : H5T_NATIVE_UINT8;
    case 2:
        return column->is_signed ? H5T_NATIVE_INT16 : H5T_NATIVE_UINT16;
    case 4:
        return column->is_signed ? H5T_NATIVE_INT32 : H5T_NATIVE_UINT32;
    default:
        return column->is_signed ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64;
    }
}

hid_t store_column_file_type(const struct store_column *column)
{
    switch (column->size) {
    case 1:
        return column->is_signed ? H5T_STD_I8LE : H5T_STD_U8LE;
    case 2:
        return column->is_signed ? H5T_STD_I16LE : H5T_STD_U16LE;
    case 4:
        return column->is_signed ? H5T_STD_I32LE : H5T_STD_U32LE;
    default:
        return column->is_signed ? H5T_STD_I64LE : H5T_STD_U64LE;
    }
}

void store_silence_hdf5(void)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

struct reason {
    char text[1000];
};

static herr_t innermost(unsigned n, const H5E_error2_t *error, void *arg)
{
    struct reason *reason = arg;

    if (n == 0 && error->desc)
        snprintf(reason->text, sizeof(reason->text), "%s", error->desc);
    return 0;
}

/* Of a failed read or write, HDF5 tells also time, file and buffer: the reason is enough. */
static void shorten(char *text)
{
    static const char before[] = "error message = '";
    char *reason = strstr(text, before), *end;

    if (reason) {
        reason += strlen(before);
        end = strchr(reason, '\'');
        if (end)
            *end = '\0';
        memmove(text, reason, strlen(reason) + 1);
    }
    for (; *text; text++)
        if (*text == '\n')
            *text = ' ';
}

int store_fail(struct pt_err *err, const char *fmt, ...)
{
    char text[300];
    struct reason reason = {"unknown HDF5 error"};
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, innermost, &reason);
    shorten(reason.text);
    return pt_err_set(err, "%.180s: %.200s", text, reason.text);
}
