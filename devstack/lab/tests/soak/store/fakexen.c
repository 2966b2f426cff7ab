/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for Xen's libraries below oxenstored and xenconsoled (LD_PRELOAD). FAKEXEN names a folder.
 * The file domN is the store's page of domain N. The domain exists as long as the file does.
 * The file consoleN is the page of its console.
 * The datagram socket events belongs to oxenstored. Each message is the number of a port.
 * xenconsoled has a socket channelP for each port P.
 * The file ports has a byte for each port: 1 while it is bound.
 * The socket of the store is there, too, wherever oxenstored wants it.
 * A channel has one number for both ends. Port 1 tells that a domain died.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <xenctrl.h>
#include <xenevtchn.h>
#include <xenforeignmemory.h>
#include <xengnttab.h>

#define PORTS 65536
#define PORT_DEATH 1
#define DOMAINS 32752

struct xenevtchn_handle {
    int fd;
    evtchn_port_t port; /* of a handle with a socket of its own */
};

static unsigned char *ports;

static char *in_folder(const char *name, char *path)
{
    snprintf(path, PATH_MAX, "%s/%s", getenv("FAKEXEN"), name);
    return path;
}

static int bind_next(int fd, const struct sockaddr *address, socklen_t length)
{
    static int (*next)(int, const struct sockaddr *, socklen_t);

    if (!next)
        next = dlsym(RTLD_NEXT, "bind");
    return next(fd, address, length);
}

/* The socket of the store must not be that of this machine. */
int bind(int fd, const struct sockaddr *address, socklen_t length)
{
    struct sockaddr_un ours = { .sun_family = AF_UNIX };
    char path[PATH_MAX];

    if (address->sa_family != AF_UNIX)
        return bind_next(fd, address, length);
    strncpy(ours.sun_path, in_folder("socket", path), sizeof(ours.sun_path) - 1);
    return bind_next(fd, (struct sockaddr *)&ours, sizeof(ours));
}

/* A container may not raise its limit of descriptors, which no test needs. */
int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
    return 0;
}

xc_interface *xc_interface_open(xentoollog_logger *logger, xentoollog_logger *build, unsigned flags)
{
    static int handle;

    return (xc_interface *)&handle;
}

int xc_interface_close(xc_interface *xch)
{
    return 0;
}

/* xl asks for these before it parses a configuration. */
int xc_version(xc_interface *xch, int command, void *answer)
{
    if (command == XENVER_extraversion || command == XENVER_changeset || command == XENVER_capabilities)
        strcpy(answer, "");
    if (command == XENVER_compile_info)
        memset(answer, 0, sizeof(xen_compile_info_t));
    if (command == XENVER_commandline)
        strcpy(answer, "");
    if (command == XENVER_platform_parameters)
        memset(answer, 0, sizeof(xen_platform_parameters_t));
    return command == XENVER_pagesize ? XC_PAGE_SIZE : 0;
}

int xc_get_max_cpus(xc_interface *xch)
{
    return 1;
}

int xc_physinfo(xc_interface *xch, xc_physinfo_t *info)
{
    memset(info, 0, sizeof(*info));
    return 0;
}

long xc_sharing_freed_pages(xc_interface *xch)
{
    return 0;
}

long xc_sharing_used_frames(xc_interface *xch)
{
    return 0;
}

static void *map(const char *format, uint32_t domain, size_t size, int protection)
{
    char name[32], path[PATH_MAX];
    void *page;
    int fd;

    snprintf(name, sizeof(name), format, domain);
    fd = open(in_folder(name, path), O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    page = mmap(NULL, size, protection, MAP_SHARED, fd, 0);
    close(fd);
    return page == MAP_FAILED ? NULL : page;
}

void *xc_map_foreign_range(xc_interface *xch, uint32_t domain, int size, int protection, unsigned long frame)
{
    return map("dom%u", domain, size, protection);
}

/* xenconsoled maps its page by the frame's number then. */
xengnttab_handle *xengnttab_open(xentoollog_logger *logger, unsigned flags)
{
    return NULL;
}

xenforeignmemory_handle *xenforeignmemory_open(xentoollog_logger *logger, unsigned flags)
{
    static int handle;

    return (xenforeignmemory_handle *)&handle;
}

int xenforeignmemory_close(xenforeignmemory_handle *handle)
{
    return 0;
}

void *xenforeignmemory_map(xenforeignmemory_handle *handle, uint32_t domain, int protection, size_t pages,
                           const xen_pfn_t frames[/*pages*/], int errors[/*pages*/])
{
    return map("console%u", domain, pages * XC_PAGE_SIZE, protection);
}

int xenforeignmemory_unmap(xenforeignmemory_handle *handle, void *address, size_t pages)
{
    return munmap(address, pages * XC_PAGE_SIZE);
}

int xc_evtchn_status(xc_interface *xch, xc_evtchn_status_t *status)
{
    status->status = ports[status->port] ? EVTCHNSTAT_interdomain : EVTCHNSTAT_closed;
    return 0;
}

static int exists_alone(uint32_t domain)
{
    char name[32], path[PATH_MAX];

    snprintf(name, sizeof(name), "dom%u", domain);
    return access(in_folder(name, path), F_OK) == 0;
}

/* Those from `first` on, in their order. To ask for one costs as much as in a small folder. */
int xc_domain_getinfolist(xc_interface *xch, uint32_t first, unsigned int most, xc_domaininfo_t *infos)
{
    static char exists[DOMAINS];
    char path[PATH_MAX];
    DIR *folder;
    struct dirent *entry;
    unsigned int domain, count = 0;

    if (most == 1 && exists_alone(first)) {
        memset(infos, 0, sizeof(*infos));
        infos->domain = first;
        return 1;
    }
    folder = opendir(in_folder("", path));
    memset(exists, 0, sizeof(exists));
    while ((entry = readdir(folder)))
        if (sscanf(entry->d_name, "dom%u", &domain) == 1)
            exists[domain] = 1;
    closedir(folder);
    for (domain = first; domain < DOMAINS && count < most; domain++) {
        if (!exists[domain])
            continue;
        memset(&infos[count], 0, sizeof(*infos));
        infos[count++].domain = domain;
    }
    return count;
}

/* The stock xenconsoled asks for one after the other. */
int xc_domain_getinfo(xc_interface *xch, uint32_t first, unsigned int most, xc_dominfo_t *info)
{
    xc_domaininfo_t found;

    if (xc_domain_getinfolist(xch, first, 1, &found) != 1)
        return -1;
    memset(info, 0, sizeof(*info));
    info->domid = found.domain;
    return 1;
}

xenevtchn_handle *xenevtchn_fdopen(struct xentoollog_logger *logger, int fd, unsigned flags)
{
    xenevtchn_handle *handle = calloc(1, sizeof(*handle));
    char path[PATH_MAX];
    int file = open(in_folder("ports", path), O_RDWR | O_CLOEXEC);

    ports = mmap(NULL, PORTS, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    handle->fd = fd;
    return handle;
}

/* Tells xenconsoled, which has a handle for each channel. */
static int has_channels(void)
{
    return getenv("FAKEXEN_CHANNELS") != NULL;
}

static int listen_at(int fd, const char *name)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    char path[PATH_MAX];

    strncpy(address.sun_path, in_folder(name, path), sizeof(address.sun_path) - 1);
    unlink(path);
    return bind_next(fd, (struct sockaddr *)&address, sizeof(address));
}

xenevtchn_handle *xenevtchn_open(struct xentoollog_logger *logger, unsigned flags)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

    if (!has_channels() && listen_at(fd, "events"))
        return NULL;
    return xenevtchn_fdopen(logger, fd, flags);
}

int xenevtchn_fd(xenevtchn_handle *handle)
{
    return handle->fd;
}

xenevtchn_port_or_error_t xenevtchn_bind_virq(xenevtchn_handle *handle, unsigned int virq)
{
    ports[PORT_DEATH] = 1;
    return PORT_DEATH;
}

xenevtchn_port_or_error_t xenevtchn_bind_interdomain(xenevtchn_handle *handle, uint32_t domain, evtchn_port_t port)
{
    if (port >= PORTS || ports[port]) {
        errno = EINVAL;
        return -1;
    }
    if (has_channels()) {
        char name[32];

        snprintf(name, sizeof(name), "channel%u", port);
        if (listen_at(handle->fd, name))
            return -1;
        handle->port = port;
    }
    ports[port] = 1;
    return port;
}

int xenevtchn_close(xenevtchn_handle *handle)
{
    if (handle->port)
        ports[handle->port] = 0;
    close(handle->fd);
    free(handle);
    return 0;
}

static int of_bound_port(evtchn_port_t port)
{
    if (port < PORTS && ports[port])
        return 0;
    errno = EINVAL;
    return -1;
}

int xenevtchn_unbind(xenevtchn_handle *handle, evtchn_port_t port)
{
    int status = of_bound_port(port);

    if (!status)
        ports[port] = 0;
    return status;
}

int xenevtchn_notify(xenevtchn_handle *handle, evtchn_port_t port)
{
    return of_bound_port(port);
}

int xenevtchn_unmask(xenevtchn_handle *handle, evtchn_port_t port)
{
    return 0;
}

xenevtchn_port_or_error_t xenevtchn_pending(xenevtchn_handle *handle)
{
    uint32_t port;

    return recv(handle->fd, &port, sizeof(port), 0) == sizeof(port) ? (int)port : -1;
}
