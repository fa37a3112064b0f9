#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "common/hosts.h"

/* A port at *at, which moves behind it; 0 if there is none. */
static unsigned long take_port(const char **at)
{
    char *end;
    if (**at < '1' || **at > '9')
        return 0;
    unsigned long port = strtoul(*at, &end, 10);
    *at = end;
    return port > 65535 ? 0 : port;
}

int pt_hosts_ports(const char *text, struct pt_ports *ports, struct pt_err *err)
{
    const char *at = text;
    unsigned long begin = take_port(&at);
    unsigned long end = *at == '-' ? (at++, take_port(&at)) : 0;
    if (!begin || end < begin || *at)
        return pt_err_set(err, "'%s' is no range of ports, such as " PT_HOSTS_PORTS, text);
    *ports = (struct pt_ports){(uint16_t)begin, (uint16_t)end};
    return 0;
}

int pt_hosts_munge(const char *text, enum pt_munge *munge, struct pt_err *err)
{
    static const char *const names[] = {
        [PT_MUNGE_NO] = "no", [PT_MUNGE_AUTO] = "auto", [PT_MUNGE_YES] = "yes"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!strcmp(text, names[i])) {
            *munge = (enum pt_munge)i;
            return 0;
        }
    return pt_err_set(err, "'%s' is not yes, no or auto", text);
}

int pt_hosts_munge_socket(const char *path, struct pt_err *err)
{
    if (path[0] != '/')
        return pt_err_set(err, "'%s' is not an absolute path", path);
    if (strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
        return pt_err_set(err, "'%s' is too long for a socket", path);
    return 0;
}
