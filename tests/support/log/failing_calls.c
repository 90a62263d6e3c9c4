/* Makes calls on files fail, for tests: loaded into a broker with LD_PRELOAD.

   The file that BARNABAS_FAULTS names has lines of CALL ERRNO PART: calls of that kind (read, write, sync) on a
   file whose path contains PART fail with that number. Without the file nothing fails. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static int fails(int fd, const char *call) {
    const char *rules = getenv("BARNABAS_FAULTS");
    if (rules == NULL || access(rules, R_OK) != 0) return 0;
    char link[64], path[4096], line[4300], kind[16], part[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    FILE *file = fopen(rules, "r");
    if (file == NULL) return 0;
    int number, found = 0;
    while (!found && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "%15s %d %4095s", kind, &number, part) == 3 && !strcmp(kind, call) && strstr(path, part))
            found = number;
    fclose(file);
    return errno = found;
}

#define FAILING(type, name, call, parameters, ...)                   \
    type name parameters {                                           \
        static type(*real) parameters;                               \
        if (fails(fd, call)) return -1;                              \
        if (real == NULL) real = (type(*) parameters)dlsym(RTLD_NEXT, #name); \
        return real(__VA_ARGS__);                                    \
    }

FAILING(ssize_t, pread, "read", (int fd, void *to, size_t size, off_t at), fd, to, size, at)
FAILING(ssize_t, pread64, "read", (int fd, void *to, size_t size, off_t at), fd, to, size, at)
FAILING(ssize_t, preadv, "read", (int fd, const struct iovec *to, int count, off_t at), fd, to, count, at)
FAILING(ssize_t, preadv64, "read", (int fd, const struct iovec *to, int count, off_t at), fd, to, count, at)
FAILING(ssize_t, preadv2, "read", (int fd, const struct iovec *to, int count, off_t at, int flags), fd, to, count, at, flags)
FAILING(ssize_t, preadv64v2, "read", (int fd, const struct iovec *to, int count, off_t at, int flags), fd, to, count, at, flags)
FAILING(ssize_t, pwrite, "write", (int fd, const void *from, size_t size, off_t at), fd, from, size, at)
FAILING(ssize_t, pwrite64, "write", (int fd, const void *from, size_t size, off_t at), fd, from, size, at)
FAILING(ssize_t, pwritev, "write", (int fd, const struct iovec *from, int count, off_t at), fd, from, count, at)
FAILING(ssize_t, pwritev64, "write", (int fd, const struct iovec *from, int count, off_t at), fd, from, count, at)
FAILING(ssize_t, pwritev2, "write", (int fd, const struct iovec *from, int count, off_t at, int flags), fd, from, count, at, flags)
FAILING(ssize_t, pwritev64v2, "write", (int fd, const struct iovec *from, int count, off_t at, int flags), fd, from, count, at, flags)
FAILING(int, fdatasync, "sync", (int fd), fd)
FAILING(int, fsync, "sync", (int fd), fd)
